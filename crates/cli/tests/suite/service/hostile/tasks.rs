//! Tasks, tenants and those who follow them.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::CANARY;
use crate::service::test_environment::{Client, Service, assert_whole};
use crate::test_environment::Mark;

#[test]
fn a_task_that_is_cancelled_in_its_last_step_is_cancelled() {
    let service = Service::start();
    let client = service.client();
    let mark = Mark::new();
    // H-59, and H-60 for what waits longest.
    let task = client.submit(&json!({ "steps": [
        { "action": "shell", "command": "echo first" },
        { "action": "shell", "command": format!("trap '' TERM INT; sleep {}", mark.0) },
    ] }));
    crate::eventually("the last step runs", || !mark.alive().is_empty());
    let begun = Instant::now();
    let reply = client.post(&format!("/api/tasks/{task}/cancel"), &json!({}));
    assert!(matches!(reply.status, 200 | 202), "H-60: {reply:?}");
    let task = client.finished(&task);
    assert!(begun.elapsed() < Duration::from_secs(5), "H-60: {:?}", begun.elapsed());
    assert_eq!(task["status"], "cancelled", "H-59: {task}");
    assert_eq!(task["result"]["steps"][0]["status"], "completed", "H-59: {task}");
    crate::eventually("H-60: nothing is left", || mark.alive().is_empty());
}

#[test]
fn the_end_of_a_task_is_heard_by_everybody() {
    let service = Service::start();
    let client = service.client();
    // H-62: streams that are opened around the end all tell of it.
    let task = client.submit_command("sleep 0.3");
    let all: Vec<Vec<_>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..25)
            .map(|number| {
                let (client, task) = (&client, &task);
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(number * 20));
                    client.events(task, 0)
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    for told in &all {
        assert_whole(told);
        assert_eq!(told, &all[0], "H-61, H-62");
    }
}

#[test]
fn one_tenant_does_not_keep_another_waiting() {
    let service = Service::start_with(&[("WORKER_CONCURRENCY", "1")]);
    let (greedy, other) = (service.client(), service.client());
    other.run("true");
    let body =
        json!({ "steps": [{ "action": "shell", "command": "sleep 0.2" }], "priority": "critical" });
    let many: Vec<_> = (0..30).map(|_| greedy.submit(&body)).collect();
    let low = json!({ "steps": [{ "action": "shell", "command": "true" }], "priority": "low" });
    other.finished(&other.submit(&low));
    let waiting =
        greedy.query("/api/tasks", &[("status", "queued")]).expect(200)["total"].as_u64().unwrap();
    assert!(waiting >= 10, "H-65: {waiting} of {} still wait", many.len());
}

#[test]
fn nobody_is_served_in_a_workspace_that_is_not_theirs() {
    let service = Service::start();
    let (client, victim) = (service.client(), service.client());
    victim.write("f", CANARY).expect(200);
    let header = format!("X-Workspace-ID: {}", victim.workspace);
    let stranger = Client { workspace: victim.workspace.clone(), ..service.stranger() };
    let body = json!({ "steps": [{ "action": "shell", "command": "touch here" }] }).to_string();
    // H-66
    stranger.read("f").is(401, "E_UNAUTHENTICATED");
    stranger.send("/api/tasks", &["--header", &header], None).is(401, "E_UNAUTHENTICATED");
    stranger
        .send("/api/tasks/submit", &["--header", &header], Some(body.as_bytes()))
        .is(401, "E_UNAUTHENTICATED");
    // H-67
    client
        .send("/api/tasks/submit", &["--header", &header], Some(body.as_bytes()))
        .is(403, "E_FORBIDDEN");
    assert_eq!(
        client.get("/api/tasks").expect(200)["total"],
        0,
        "H-67: it landed in the wrong place"
    );
    assert_eq!(victim.get("/api/tasks").expect(200)["total"], 0, "H-67");
}

#[test]
fn a_pattern_is_a_regular_expression() {
    let service = Service::start();
    let client = service.client();
    client.write("a: file.txt", "alpha\nbeta; sudo mount\n").expect(200);
    client.write("binary", "x\0needle\n").expect(200);
    let grep = |pattern: &str| client.query(&client.at("/files/grep"), &[("pattern", pattern)]);
    let found = grep("alpha|beta").expect(200);
    let expected = json!([
        { "file": "a: file.txt", "line": 1, "content": "alpha" },
        { "file": "a: file.txt", "line": 2, "content": "beta; sudo mount" },
    ]);
    assert_eq!(found["matches"], expected, "H-72");
    assert_eq!(grep("sudo").expect(200)["total"], 1, "H-72");
    grep("(").is(422, "E_INVALID_PATTERN");
    client
        .query(&client.at("/files/grep"), &[("pattern", "x"), ("path", "nothing")])
        .is(404, "E_NOT_FOUND");
}

#[test]
fn open_streams_take_nothing_from_others() {
    let service = Service::start();
    let client = service.client();
    let task = client.submit_command("sleep 300");
    client.until(&task, |task| task["status"] == "running");
    let streams: Vec<_> = (0..60).map(|_| client.open_events(&task)).collect();
    for _ in 0..3 {
        assert_eq!(
            client.done(&json!([{ "action": "shell", "command": "true" }]))["status"],
            "completed",
            "H-73"
        );
    }
    client.post(&format!("/api/tasks/{task}/cancel"), &json!({})).expect(200);
    for stream in streams {
        let text = stream.ended();
        assert!(text.contains(r#""status":"cancelled""#), "H-73: {text}");
    }
}

#[test]
fn no_two_workers_have_one_name() {
    let mut service = Service::start();
    let worker = |client: &Client| {
        let task = client.done(&json!([{ "action": "shell", "command": "true" }]));
        task["worker_id"].as_str().unwrap().to_owned()
    };
    let client = service.client();
    let other = Service::start();
    let names = [worker(&client), worker(&other.client())];
    service.kill();
    service.begin_again();
    let third = worker(&Client { address: service.address, ..client });
    assert!(names[0] != names[1] && !names.contains(&third), "H-75: {names:?} {third}");
}
