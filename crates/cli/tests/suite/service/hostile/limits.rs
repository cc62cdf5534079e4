//! Time, room and numbers.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::service::test_environment::{Client, Service, assert_whole};
use crate::test_environment::{Mark, is_soak};

#[test]
fn nothing_outlives_its_time() {
    let service = Service::start();
    let client = service.client();
    let mark = Mark::new();
    // H-43
    let done = client.exec(&format!("sleep {} & echo hi", mark.0)).expect(200);
    assert_eq!((&done["stdout"], &done["timed_out"]), (&json!("hi\n"), &json!(false)), "H-43");
    crate::eventually("H-43: nothing is left", || mark.alive().is_empty());
    // H-44
    let begun = Instant::now();
    let body = json!({ "command": format!("sleep {} | cat", mark.0), "timeout": 2 });
    let done = client.post(&client.at("/exec"), &body).expect(200);
    assert_eq!(done["timed_out"], true, "H-44");
    assert!(begun.elapsed() < Duration::from_secs(10), "H-44: {:?}", begun.elapsed());
    // H-45
    client.write("bomb.py", "import os\nwhile True: os.fork()\n").expect(200);
    let body = json!({ "command": "python3 bomb.py", "timeout": 5 });
    let done = client.post(&client.at("/exec"), &body).expect(200);
    assert!(done["exit_code"] != 0, "H-45: {done}");
    client.run("echo alive");
    // H-46
    let body = json!({ "command": "ls", "timeout": 1_000_000_000 });
    client.post(&client.at("/exec"), &body).is(422, "E_INVALID_REQUEST");
    let body = json!({
        "steps": [{ "action": "shell", "command": format!("echo early; sleep {}", mark.0), "timeout": 1_000_000_000 }],
        "timeout_seconds": 10,
    });
    let begun = Instant::now();
    let task = client.finished(&client.submit(&body));
    assert_eq!(task["status"], "timed_out", "H-46: {task}");
    assert_eq!(task["result"]["steps"][0]["result"]["stdout"], "early\n", "H-46: {task}");
    assert!(begun.elapsed() < Duration::from_secs(20), "H-46: {:?}", begun.elapsed());
    crate::eventually("H-46: nothing is left", || mark.alive().is_empty());
}

#[test]
fn a_quota_holds_while_it_is_used_up() {
    let service = Service::start();
    let bystander = service.client();
    let writer = "import sys, time\nwith open(sys.argv[1], 'wb') as f:\n  for _ in range(int(sys.argv[2])):\n    f.write(b'x' * 1048576); f.flush(); time.sleep(0.02)\n";
    let used = |client: &Client| {
        client.get(&client.at("/usage")).expect(200)["usage_bytes"].as_u64().unwrap()
    };
    // H-47
    let client = service.cramped(32.0);
    client.write("w.py", writer).expect(200);
    let task = client.done(&json!([{ "action": "shell", "command": "python3 w.py big 2000" }]));
    assert_eq!(task["status"], "failed", "H-47: {task}");
    crate::eventually("H-47: it is measured", || used(&client) > 16 << 20);
    assert!(used(&client) < 40 << 20, "H-47: {}", used(&client));
    bystander.run("echo unharmed");
    // What is there already counts, however long the server has known the workspace.
    let client = service.cramped(32.0);
    client.write("w.py", writer).expect(200);
    client.run("python3 w.py one 20");
    let done = client.exec("python3 w.py two 100").expect(200);
    assert!(done["exit_code"] != 0, "H-47: {done}");
    client.exec("true").is(507, "E_QUOTA_EXCEEDED");
    assert!(used(&client) < 40 << 20, "H-47: {}", used(&client));
    // H-48
    let client = service.cramped(48.0);
    client.write("w.py", writer).expect(200);
    let tasks: Vec<_> =
        ["a", "b"].map(|name| client.submit_command(&format!("python3 w.py {name} 36"))).into();
    let ends: Vec<_> = tasks.iter().map(|task| client.finished(task)["status"].clone()).collect();
    assert!(ends.contains(&json!("failed")), "H-48: {ends:?}");
    assert!(used(&client) < 60 << 20, "H-48: {}", used(&client));
    // H-64: the next one is told so, and its stream ends.
    let client = service.cramped(4.0);
    client.write("big", &"x".repeat(3 << 20)).expect(200);
    client.exec("cat big big > bigger");
    let events = client.events(&client.submit_command("true"), 0);
    assert_whole(&events);
    // H-49
    let client = service.cramped(32.0);
    client.run("python3 -c 'open(\"sparse\", \"wb\").truncate(30 << 20)'");
    client.run("python3 -c 'open(\"sparse2\", \"wb\").truncate(30 << 20)'");
    let task = client.done(&json!([{ "action": "shell", "command": "echo room" }]));
    assert_eq!(task["status"], "completed", "H-49: {task}");
    assert!(used(&client) < 1 << 20, "H-49: {}", used(&client));
}

#[test]
fn files_are_counted() {
    let service = Service::start();
    let client = service.client();
    client.run("mkdir many && cd many && touch f{1..1000}");
    let usage = || client.get(&client.at("/usage")).expect(200);
    crate::eventually("H-50: they are counted", || usage()["files"].as_u64() >= Some(1001));
    assert_eq!(usage()["quota_files"], 1_000_000, "H-50");
    if is_soak() {
        let program = "import os\nfor d in range(1100):\n  os.mkdir(f'd{d}')\n  for n in range(1000): open(f'd{d}/{n}', 'w').close()\n";
        client.write("many.py", program).expect(200);
        let task = client.submit(&json!({
            "steps": [{ "action": "shell", "command": "python3 many.py", "timeout": 3000 }],
            "timeout_seconds": 3600,
        }));
        while client.task(&task)["completed_at"].is_null() {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(client.task(&task)["status"], "failed", "H-50");
        client.exec("true").is(507, "E_QUOTA_EXCEEDED");
    }
}

#[test]
fn too_much_at_once_is_turned_away() {
    let service = Service::start();
    let (client, other) = (service.client(), service.client());
    client.run("true");
    let replies: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..100).map(|_| scope.spawn(|| client.exec("sleep 2"))).collect();
        let healthy = service.stranger().get("/healthz").status;
        assert_eq!(healthy, 200, "H-51");
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let done = replies.iter().filter(|reply| reply.status == 200).count();
    let away: Vec<_> = replies.iter().filter(|reply| reply.status != 200).collect();
    for reply in &away {
        reply.is(429, "E_OVERLOADED");
        assert!(reply.header("retry-after").is_some(), "H-51: {reply:?}");
    }
    assert!(done >= 16 && !away.is_empty(), "H-51: {done} of {}", replies.len());
    other.run("echo room again");
}

#[test]
fn what_is_too_large_is_refused_before_it_is_kept() {
    let service = Service::start();
    let client = service.client();
    let content = "x".repeat(33 << 20);
    let step = json!({ "action": "write_file", "path": "f", "content": content });
    client.post("/api/tasks/submit", &json!({ "steps": [step] })).is(413, "E_TOO_LARGE");
    assert_eq!(client.get("/api/tasks").expect(200)["total"], 0, "H-52");
}
