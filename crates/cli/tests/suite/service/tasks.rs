//! Submitting, listing, cancelling.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Service, assert_whole, new_id};
use crate::test_environment::Mark;

fn command(line: &str) -> Value {
    json!({ "steps": [{ "action": "shell", "command": line }] })
}

#[test]
fn a_task_is_taken_run_and_shown_in_the_words_of_the_reference() {
    let service = Service::start();
    let client = service.client();
    let body = json!({
        "steps": [
            { "action": "create_directory", "path": "a/b" },
            { "action": "write_file", "path": "a/b/f.txt", "content": "one\n" },
            { "action": "execute_command", "command": "cat f.txt; echo late >&2", "cwd": "a/b" },
            { "action": "read_file", "path": "a/b/f.txt" },
            { "action": "list_directory", "path": "a/b" },
            { "action": "tool", "tool": "LS", "arguments": { "path": "a" } },
        ],
        "priority": "high",
        "timeout_seconds": 60,
        "correlation_id": "mine",
    });
    let taken = client.post("/api/tasks/submit", &body).expect(200);
    let id = taken["task_id"].as_str().unwrap();
    let expected = json!({
        "task_id": id,
        "status": "queued",
        "queue": "workspace:tasks:high",
        "steps": 6,
        "events_url": format!("/api/tasks/{id}/events"),
    });
    assert_eq!(taken, expected);

    let task = client.finished(id);
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!((&task["correlation_id"], &task["attempt"]), (&json!("mine"), &json!(1)));
    let steps = task["result"]["steps"].as_array().unwrap();
    let ends: BTreeSet<_> = steps.iter().map(|step| step["status"].as_str().unwrap()).collect();
    assert_eq!((steps.len(), ends), (6, BTreeSet::from(["completed"])));
    assert_eq!(steps[2]["result"]["stdout"], "one\n");
    assert_eq!(steps[2]["result"]["stderr"], "late\n");
    assert_eq!(steps[3]["result"]["content"], "one\n");
    assert_eq!(steps[4]["result"]["entries"][0]["name"], "f.txt");
    assert_eq!(task["configuration"]["steps"], body["steps"]);

    let other = client.submit(&command("exit 3"));
    assert_eq!(client.finished(&other)["error_message"], "step 1: exit status 3");
    let ids = |query: &[(&str, &str)]| -> Vec<String> {
        let page = client.query("/api/tasks", query).expect(200);
        let tasks = page["tasks"].as_array().unwrap().iter();
        tasks.map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&[]), [other.clone(), id.to_owned()]);
    assert_eq!(ids(&[("limit", "1"), ("offset", "1")]), [id]);
    assert_eq!(ids(&[("status", "failed")]), [other.as_str()]);
    assert_eq!(ids(&[("task_type", "nothing")]), Vec::<String>::new());
    assert_eq!(client.query("/api/tasks", &[("limit", "1")]).expect(200)["total"], 2);
    // The task's own directory is gone with it.
    assert_eq!(client.run("ls tasks"), "");
}

#[test]
fn a_failed_step_ends_the_task_unless_it_says_otherwise() {
    let service = Service::start();
    let client = service.client();
    let steps = |on_error: &str| {
        json!([
            { "action": "shell", "command": "exit 7", "on_error": on_error },
            { "action": "shell", "command": "echo next" },
        ])
    };
    let ends = |task: &Value| -> Vec<String> {
        let steps = task["result"]["steps"].as_array().unwrap().iter();
        steps.map(|step| step["status"].as_str().unwrap().to_owned()).collect()
    };
    let task = client.done(&steps("stop"));
    assert_eq!(
        (&task["status"], ends(&task)),
        (&json!("failed"), vec!["failed".into(), "skipped".into()])
    );
    let task = client.done(&steps("continue"));
    assert_eq!(
        (&task["status"], ends(&task)),
        (&json!("completed"), vec!["failed".into(), "completed".into()])
    );
}

#[test]
fn a_key_makes_a_submission_happen_once() {
    let service = Service::start();
    let client = service.client();
    let mut body = command("echo once >> log");
    body["idempotency_key"] = json!("k");
    let first = client.submit(&body);
    assert_eq!(client.submit(&body), first);
    // The header is the same key.
    let again = client.post_once("/api/tasks/submit", "k", &command("echo once >> log"));
    assert_eq!(again.expect(200)["task_id"], first.as_str());
    client
        .post_once("/api/tasks/submit", "k", &command("echo twice"))
        .is(409, "E_IDEMPOTENCY_MISMATCH");
    client.finished(&first);
    assert_eq!(client.submit(&body), first, "it is known when it is over, too");

    // Many at once are one.
    let many: BTreeSet<String> = std::thread::scope(|scope| {
        let submit = || {
            let reply = client.post_once("/api/tasks/submit", "many", &command("echo many >> log"));
            reply.expect(200)["task_id"].as_str().unwrap().to_owned()
        };
        let all: Vec<_> = (0..8).map(|_| scope.spawn(submit)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(many.len(), 1);
    client.finished(many.first().unwrap());
    assert_eq!(client.run("cat log"), "once\nmany\n");

    // The keys of another workspace are its own.
    assert!(service.client().submit(&body) != first);
}

#[test]
fn a_key_makes_every_other_change_happen_once() {
    let service = Service::start();
    let client = service.client();
    let exec = client.at("/exec");
    let asked = json!({ "command": "echo x >> log; wc -l < log" });
    let replies: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..6).map(|_| scope.spawn(|| client.post_once(&exec, "k", &asked))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for reply in &replies {
        assert_eq!(reply.expect(200)["stdout"], "1\n");
        assert_eq!(reply.body, replies[0].body);
    }
    client.post_once(&exec, "k", &json!({ "command": "ls" })).is(409, "E_IDEMPOTENCY_MISMATCH");
    // Without a key each counts.
    assert_eq!(client.post(&exec, &asked).expect(200)["stdout"], "2\n");

    // A repository is brought once.
    let clone = client.at("/github/clone");
    let asked_for =
        |name: &str| json!({ "repo_url": format!("https://github.com/carrel-suite/{name}") });
    let first = client.post_once(&clone, "c", &asked_for("a")).expect(200);
    assert_eq!(client.post_once(&clone, "c", &asked_for("a")).expect(200), first);
    client.post_once(&clone, "c", &asked_for("b")).is(409, "E_IDEMPOTENCY_MISMATCH");
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 1);

    // A refusal is the first answer, too.
    let refused = json!({ "command": "sudo ls" });
    let first = client.post_once(&exec, "no", &refused);
    first.is(403, "E_COMMAND_REFUSED");
    assert_eq!(client.post_once(&exec, "no", &refused).body, first.body);

    let operator = service.operator();
    let new = json!({ "name": "n" });
    let made = operator.post_once("/api/workspaces", "w", &new).expect(201);
    assert_eq!(operator.post_once("/api/workspaces", "w", &new).expect(201), made);
    client.post_once(&exec, &"k".repeat(256), &asked).is(422, "E_INVALID_REQUEST");
}

#[test]
fn a_client_that_goes_and_comes_again_with_its_key_is_answered() {
    let service = Service::start();
    let client = service.client();
    client.run("true");
    let exec = client.at("/exec");
    let asked = json!({ "command": "echo begun >> log; sleep 1; echo over >> log" });
    let text = asked.to_string();
    for _ in 0..2 {
        let words = ["--header", "Idempotency-Key: k", "--max-time", "0.3"];
        assert!(client.try_send(&exec, &words, Some(text.as_bytes())).is_err());
    }
    assert_eq!(client.post_once(&exec, "k", &asked).expect(200)["exit_code"], 0);
    // Who goes takes the command along.
    let log = client.run("cat log");
    assert_eq!((log.matches("begun").count(), log.matches("over").count()), (3, 1), "{log}");
}

#[test]
fn a_client_that_goes_leaves_no_command_and_no_place_taken() {
    let service = Service::start();
    let client = service.client();
    client.run("true");
    let mark = Mark::new();
    let text = json!({ "command": format!("trap '' TERM; sleep {}", mark.0) }).to_string();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            let (client, text) = (&client, &text);
            let words = ["--max-time", "1"];
            scope
                .spawn(move || client.try_send(&client.at("/exec"), &words, Some(text.as_bytes())));
        }
    });
    crate::eventually("nothing is left", || mark.alive().is_empty());
    client.run("echo there is room");
}

#[test]
fn an_answer_that_is_kept_is_for_those_who_may_ask() {
    let service = Service::start();
    let (client, foreign) = (service.client(), service.client());
    let reader = service.client_for(&client.workspace, "read");
    let exec = client.at("/exec");
    let asked = json!({ "command": "echo private" });
    client.post_once(&exec, "k", &asked).expect(200);
    foreign.post_once(&exec, "k", &asked).is(403, "E_FORBIDDEN");
    reader.post_once(&exec, "k", &asked).is(403, "E_FORBIDDEN");
    // Nor does their refusal become the answer of those who may.
    foreign.post_once(&exec, "other", &asked).is(403, "E_FORBIDDEN");
    assert_eq!(client.post_once(&exec, "other", &asked).expect(200)["stdout"], "private\n");
    for (path, body) in [
        ("/files/write", json!({ "path": "f", "content": "x" })),
        ("/git", json!({ "operation": "status" })),
        ("/tools/Write", json!({ "file_path": "f", "content": "x" })),
        ("/github/clone", json!({ "repo_url": "https://github.com/a/b" })),
    ] {
        reader.post_once(&client.at(path), "first", &body).is(403, "E_FORBIDDEN");
    }
}

#[test]
fn a_task_is_cancelled_while_it_waits_while_it_runs_and_not_when_it_is_over() {
    let service = Service::start_with(&[("WORKER_CONCURRENCY", "1")]);
    let client = service.client();
    let running = client.submit(&command("echo here; sleep 300"));
    client.until(&running, |task| task["status"] == "running");
    let waiting = client.submit(&command("echo never > trace"));

    let cancel = |id: &str| client.post(&format!("/api/tasks/{id}/cancel"), &json!({}));
    let begun = Instant::now();
    assert_eq!(cancel(&waiting).expect(200), json!({ "id": waiting, "status": "cancelled" }));
    let reply = cancel(&running).expect(200);
    assert_eq!(reply["status"], "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for id in [&waiting, &running] {
        cancel(id).is(409, "E_TASK_FINISHED");
        let events = client.events(id, 0);
        assert_whole(&events);
        assert_eq!(events.last().unwrap().status(), Some("cancelled"));
    }
    let task = client.task(&running);
    assert_eq!(task["result"]["steps"][0]["status"], "cancelled", "{task}");
    client.read("trace").is(404, "E_NOT_FOUND");
    cancel(&new_id()).is(404, "E_TASK_NOT_FOUND");
    cancel("nothing").is(422, "E_INVALID_REQUEST");
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let service = Service::start();
    let client = service.client();
    let step = json!({ "action": "shell", "command": "ls" });
    let with = |name: &str, value: Value| {
        let mut body = json!({ "steps": [step] });
        body[name] = value;
        body
    };
    for (field, body) in [
        ("steps", json!({})),
        ("steps", with("steps", json!([]))),
        ("steps", with("steps", json!(vec![step.clone(); 101]))),
        ("priority", with("priority", json!("urgent"))),
        ("timeout_seconds", with("timeout_seconds", json!(9))),
        ("timeout_seconds", with("timeout_seconds", json!(3601))),
        ("timeout_seconds", with("timeout_seconds", json!(-1))),
        ("max_attempts", with("max_attempts", json!(0))),
        ("idempotency_key", with("idempotency_key", json!(""))),
        ("workspace_id", with("workspace_id", json!("x"))),
        ("colour", with("colour", json!("red"))),
        ("steps[0].action", with("steps", json!([{ "action": "" }]))),
        ("steps[0].action", with("steps", json!([{ "action": "fly" }]))),
        ("steps[0].command", with("steps", json!([{ "action": "shell" }]))),
        (
            "steps[0].timeout",
            with("steps", json!([{ "action": "shell", "command": "ls", "timeout": 0 }])),
        ),
        ("steps[0].content", with("steps", json!([{ "action": "write_file", "path": "f" }]))),
    ] {
        let reply = client.post("/api/tasks/submit", &body);
        reply.is(422, "E_INVALID_REQUEST");
        let named = reply.json()["error"].to_string();
        assert!(named.contains(field), "{field}: {named}");
    }
    for text in
        ["", "{", "[]", "null", "7", "{\"steps\":", "{} {}", "\u{0}", "[[\"shell\",\"ls\"]]"]
    {
        client.send("/api/tasks/submit", &[], Some(text.as_bytes())).is(422, "E_INVALID_REQUEST");
    }
    let deep = format!("{{\"steps\":{}", "[".repeat(100_000));
    let list = br#"{"steps":[["shell","ls"]]}"#;
    client.send("/api/tasks/submit", &[], Some(list)).is(422, "E_INVALID_REQUEST");
    let reply = client.post(
        "/api/tasks/submit",
        &json!({ "steps": [step, { "action": "shell", "command": "ls", "timeout": "x" }] }),
    );
    assert_eq!(reply.json()["error"]["detail"]["field"], "steps[1].timeout", "{reply:?}");
    let twice = r#"{"steps":[{"action":"shell","command":"a","command":"b"}]}"#;
    let bodies: [&[u8]; 4] =
        [deep.as_bytes(), twice.as_bytes(), br#"{"steps":"\ud800"}"#, b"{\"steps\":\"\xff\"}"];
    for body in bodies {
        client.send("/api/tasks/submit", &[], Some(body)).is(422, "E_INVALID_REQUEST");
    }
    for query in [
        "status=foo",
        "limit=0",
        "limit=101",
        "limit=x",
        "offset=-1",
        "offset=99999999999999999999",
        "what=1",
        "limit=1&limit=2",
    ] {
        client.get(&format!("/api/tasks?{query}")).is(422, "E_INVALID_REQUEST");
    }
    for id in ["nothing", "%ff", "%00", "..%2f..", "1", "0198c0de7a1170008000000000000001"] {
        let (status, _) = client.get(&format!("/api/tasks/{id}")).refused();
        assert!(matches!(status, 404 | 422), "{id}: {status}");
    }
    client.get(&format!("/api/tasks/{}", new_id())).is(404, "E_TASK_NOT_FOUND");
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 0, "nothing of it was taken");
}

#[test]
fn ids_are_the_same_in_either_case() {
    let service = Service::start();
    let client = service.client();
    let id = client.submit(&command("true"));
    client.finished(&id);
    let task = client.get(&format!("/api/tasks/{}", id.to_uppercase())).expect(200);
    assert_eq!(task["id"], id.as_str());
    let header = format!("X-Workspace-ID: {}", client.workspace.to_uppercase());
    assert_eq!(client.send("/api/tasks", &["--header", &header], None).expect(200)["total"], 1);
    let upper = client.workspace.to_uppercase();
    client.get(&format!("/api/workspaces/{upper}/files")).expect(200);
}
