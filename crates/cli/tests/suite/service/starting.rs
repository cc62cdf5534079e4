//! From the start of a server to its end.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::test_environment::{Service, assert_whole};
use crate::Run;
use crate::eventually;
use crate::test_environment::Mark;

#[test]
fn a_second_server_for_the_same_data_is_refused() {
    let service = Service::start();
    let run = Run::of({
        let mut command = service.serve("127.0.0.1:0");
        command.arg("--json");
        command
    });
    assert!(run.code != 0 && run.stderr.contains("E_WORKSPACE_BUSY"), "{}", run.stderr);
    service.client().run("echo the first one goes on");
}

#[test]
fn an_address_that_others_reach_needs_a_key() {
    let mut service = Service::start();
    service.kill();
    let mut bare = service.test_env.carrel();
    bare.args(["serve", "--bind", "0.0.0.0:0", "--data"]).arg(service.test_env.path("fresh"));
    let run = Run::of(bare);
    assert!(run.code != 0 && run.stderr.contains("CARREL_TOKEN_SECRET"), "{}", run.stderr);
    // The key of an earlier start will do; the link of the console is for this machine alone.
    let mut server = crate::interfaces::Server::start(
        service.serve("0.0.0.0:0"),
        std::process::Stdio::null(),
        std::process::Stdio::null(),
    );
    eventually("it listens", || server.stderr().contains("listening on http://0.0.0.0:"));
    assert!(!server.stderr().contains("/?token="), "{}", server.stderr());
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait(Duration::from_secs(10)).success());
}

#[test]
fn the_lines_that_are_printed_can_be_typed() {
    let service = Service::start();
    let said = service.server.stderr();
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("  ")).collect();
    let script = lines.join("\n");
    assert_eq!(lines.len(), 3, "{said}");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-euc", &script]).env("HOME", service.test_env.path("home"));
    let run = Run::of(shell);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let events = super::test_environment::events(&run.stdout);
    assert_whole(&events);
    assert!(run.stdout.contains(r#""line":"hello""#), "{}", run.stdout);
    assert_eq!(events.last().unwrap().status(), Some("completed"));
}

#[test]
fn sigterm_with_open_streams_and_running_tasks_ends_with_zero_and_the_next_start_goes_on() {
    let mut service = Service::start();
    let client = service.client();
    let mark = Mark::new();
    let line = format!(
        "echo begun >> log; if [ -e again ]; then echo over; else touch again; sleep {}; fi",
        mark.0
    );
    let task = client.submit_command(&line);
    let streams: Vec<_> = (0..5).map(|_| client.open_events(&task)).collect();
    // Some say nothing, and one is in the middle of a body.
    let silent: Vec<_> = (0..3).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    let mut slow = TcpStream::connect(service.address).unwrap();
    let token = client.token.as_ref().unwrap();
    let head =
        "POST /api/tasks/submit HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\nauthorization: ";
    write!(slow, "{head}Bearer {token}\r\n\r\n{{").unwrap();
    let request = std::thread::spawn({
        let (client, mark) = (client.clone(), mark.clone());
        move || {
            client.try_send(
                &client.at("/exec"),
                &[],
                Some(json!({ "command": format!("sleep {}", mark.0) }).to_string().as_bytes()),
            )
        }
    });
    eventually("both run", || mark.alive().len() >= 2);

    let (status, took) = service.terminate();
    assert!(status.success(), "{status:?}: {}", service.server.stderr());
    // Two seconds are the promise; a busy machine may take a little longer to say so.
    assert!(took < Duration::from_secs(4), "{took:?}");
    for stream in streams {
        let text = stream.ended();
        assert!(text.contains("event: status_changed") && !text.contains("completed"), "{text}");
    }
    let _ = request.join().unwrap();
    drop((silent, slow));
    eventually("nothing is left", || mark.alive().is_empty());

    service.begin_again();
    let client = super::test_environment::Client { address: service.address, ..client };
    let task = client.finished(&task);
    assert_eq!((&task["status"], &task["attempt"]), (&json!("completed"), &json!(2)), "{task}");
    assert_eq!(client.run("cat log"), "begun\nbegun\n");
}

#[test]
fn what_was_finished_is_there_after_a_restart() {
    let mut service = Service::start();
    let client = service.client();
    client.write("f", "kept").expect(200);
    let task = client.submit_command("echo hi");
    let (before, events) = (client.finished(&task), client.events(&task, 0));
    let key = client.post_once(&client.at("/exec"), "k", &json!({ "command": "date +%N" }));
    let (status, _) = service.terminate();
    assert!(status.success());
    service.begin_again();
    let client = super::test_environment::Client { address: service.address, ..client };
    assert_eq!(client.task(&task), before);
    assert_eq!(client.events(&task, 0), events);
    assert_eq!(client.read("f").expect(200)["content"], "kept");
    assert_eq!(
        client.post_once(&client.at("/exec"), "k", &json!({ "command": "date +%N" })).body,
        key.body
    );
}
