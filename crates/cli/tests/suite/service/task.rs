//! `carrel task`, and the client below it, with a real server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::test_environment::{Client, Service, assert_whole, new_id};

/// `carrel task` for a client of the server.
fn task(service: &Service, client: &Client, words: &[&str]) -> Command {
    let mut command = service.test_env.carrel();
    command.arg("task").args(words);
    command.env("CARREL_SERVER", format!("http://{}", client.address));
    if let Some(token) = &client.token {
        command.env("CARREL_TOKEN", token);
    }
    command
}

fn run(service: &Service, client: &Client, words: &[&str]) -> Output {
    task(service, client, words).output().unwrap()
}

#[track_caller]
fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_task_is_submitted_followed_listed_and_shown() {
    let service = Service::start();
    let client = service.client();
    let submitted =
        run(&service, &client, &["submit", "-c", "echo one", "--command", "echo two >&2"]);
    let id = text(&submitted).trim_end().to_owned();
    assert!(
        String::from_utf8_lossy(&submitted.stderr).contains(&format!("carrel task watch {id}"))
    );

    let watched = text(&run(&service, &client, &["watch", &id]));
    let shown: Vec<_> = watched.lines().filter(|line| !line.starts_with("step ")).collect();
    assert_eq!(
        shown,
        ["status  queued", "status  running", "stdout  one", "stderr  two", "status  completed"]
    );
    let events = lines(&text(&run(&service, &client, &["watch", &id, "--json"])));
    let numbers: Vec<_> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["data"]["status"], "completed");
    // Behind the last event there is nothing, and the end is still known.
    let last = numbers.len().to_string();
    assert_eq!(text(&run(&service, &client, &["watch", &id, "--after", &last])), "");

    let listed = text(&run(&service, &client, &["ls"]));
    assert!(listed.starts_with("ID ") && listed.contains(&id), "{listed}");
    let listed = lines(&text(&run(&service, &client, &["ls", "--status", "failed", "--json"])));
    assert_eq!((&listed[0]["tasks"], &listed[0]["total"]), (&json!([]), &json!(0)));
    let shown = text(&run(&service, &client, &["show", &id]));
    assert!(shown.contains("status     completed\n") && shown.contains("2     shell"), "{shown}");
    let shown = lines(&text(&run(&service, &client, &["show", &id, "--json"])));
    let mut expected = client.task(&id);
    let fields = expected.as_object_mut().unwrap();
    fields.retain(|_, value| !value.is_null());
    for (name, value) in fields {
        assert_eq!(&shown[0][name.as_str()], value, "{name}");
    }
}

#[test]
fn a_watched_task_ends_with_its_own_outcome() {
    let service = Service::start();
    let client = service.client();
    let done = run(&service, &client, &["submit", "--watch", "-c", "echo well"]);
    assert!(text(&done).contains("stdout  well\n"));
    let failed = run(&service, &client, &["submit", "--watch", "-c", "exit 3"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(String::from_utf8_lossy(&failed.stdout).ends_with("status  failed\n"), "{failed:?}");
    let id = client.submit_command("sleep 300");
    let cancelled = run(&service, &client, &["cancel", &id]);
    assert_eq!(text(&cancelled), "cancelled\n");
    assert_eq!(run(&service, &client, &["watch", &id]).status.code(), Some(1));
    let again = run(&service, &client, &["cancel", &id, "--json"]);
    assert_eq!(again.status.code(), Some(1));
    let error = lines(&String::from_utf8(again.stderr).unwrap());
    assert_eq!(error.last().unwrap()["error"]["code"], "E_TASK_FINISHED");
}

#[test]
fn an_interrupted_watch_leaves_the_task_running_and_says_how_to_end_it() {
    let service = Service::start();
    let client = service.client();
    let id = client.submit_command("echo begun; sleep 300");
    let mut watch = task(&service, &client, &["watch", &id]);
    let mut child = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(output.any(|line| line.unwrap() == "stdout  begun"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains(&format!("carrel task cancel {id}")), "{said}");
    assert_eq!(client.task(&id)["status"], "running");
    run(&service, &client, &["cancel", &id]);
}

#[test]
fn steps_come_from_a_file_or_from_stdin_and_a_key_makes_one_task_of_two_requests() {
    let service = Service::start();
    let client = service.client();
    let steps = json!([
        { "action": "write_file", "path": "a.txt", "content": "from a file\n" },
        { "action": "read_file", "path": "a.txt" },
    ]);
    let file = service.test_env.path("steps.json");
    std::fs::write(&file, steps.to_string()).unwrap();
    let words = ["submit", "--file", file.to_str().unwrap(), "--idempotency-key", "once", "--json"];
    let first = lines(&text(&run(&service, &client, &words)));
    let second = lines(&text(&run(&service, &client, &words)));
    assert_eq!((&first[0]["steps"], &first), (&json!(2), &second));
    let id = first[0]["task_id"].as_str().unwrap();
    assert_eq!(client.finished(id)["status"], "completed");

    let request = json!({ "steps": steps, "priority": "low", "correlation_id": "mine" });
    let words = ["submit", "--file", "-", "--priority", "high", "--timeout", "77"];
    let mut command = task(&service, &client, &words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let id = text(&child.wait_with_output().unwrap()).trim_end().to_owned();
    let made = client.finished(&id);
    assert_eq!(
        (&made["priority"], &made["timeout_seconds"], &made["correlation_id"]),
        (&json!("high"), &json!(77), &json!("mine"))
    );
}

#[test]
fn what_is_wrong_is_said_before_anything_is_sent() {
    let service = Service::start();
    let client = service.client();
    let file = service.test_env.path("bad.json");
    std::fs::write(&file, "{\"steps\": 1}").unwrap();
    let bad = file.to_str().unwrap();
    let missing = service.test_env.path("missing");
    for (words, code, message) in [
        (vec!["submit"], 2, "--command"),
        (vec!["submit", "-c", "ls", "--file", "-"], 2, "cannot be used with"),
        (vec!["submit", "-c", "ls", "--priority", "urgent"], 2, "known are critical"),
        (vec!["submit", "--file", bad], 2, "no list `steps`"),
        (vec!["submit", "--file", missing.to_str().unwrap()], 1, "could not read the steps"),
        (vec!["submit", "-c", "ls", "--timeout", "1"], 1, "timeout_seconds"),
        (vec!["ls", "--server", "127.0.0.1:8080"], 2, "http://127.0.0.1:8080"),
        (vec!["ls", "--server", "http://user:secret@127.0.0.1"], 2, "a token is not part"),
        (vec!["ls", "--token-file", missing.to_str().unwrap()], 1, "could not read the token"),
        (vec!["show", "nonsense"], 2, "not a task id"),
        (vec!["show", &new_id()], 1, "E_TASK_NOT_FOUND"),
        (vec!["ls", "--id", &new_id()], 1, "does not cover workspace"),
    ] {
        let output = run(&service, &client, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(message) && !said.contains("secret"), "{words:?}: {said}");
    }
    assert_eq!(client.query("/api/tasks", &[]).expect(200)["total"], 0);

    let mut without = service.test_env.carrel();
    let output = without.args(["task", "ls"]).env_remove("CARREL_TOKEN").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("carrel token new"), "{output:?}");
}

#[test]
fn a_server_that_is_not_there_is_named_at_once() {
    let service = Service::start();
    let client = service.client();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let begun = Instant::now();
    let output = run(&service, &client, &["submit", "-c", "ls", "--server", &nowhere]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains(&nowhere) && said.contains("E_SERVER_UNREACHABLE"), "{said}");
}

#[test]
fn a_watch_outlives_the_death_of_the_server_and_misses_nothing() {
    let mut service = Service::start();
    let client = service.client();
    let id = client.submit_command("for i in 1 2 3; do echo $i; done; sleep 2; echo end");
    let mut watch = task(&service, &client, &["watch", &id, "--json"]);
    let mut child = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while !seen.iter().any(|line: &String| line.contains(r#""line":"3""#)) {
        seen.push(output.next().unwrap().unwrap());
    }
    service.kill();
    service.begin_again_here();
    seen.extend(output.map(|line| line.unwrap()));
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let events = lines(&seen.join("\n"));
    assert_whole(&client.events(&id, 0));
    let numbers: Vec<_> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.len(), client.events(&id, 0).len());
}
