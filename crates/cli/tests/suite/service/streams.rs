//! Reading events.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, Event, Service, assert_whole, events, new_id};

fn told(events: &[Event]) -> Vec<(&str, Value)> {
    let short = |event: &Event| match event.kind.as_str() {
        "status_changed" => event.data["status"].clone(),
        "progress_update" => event.data["step"].clone(),
        "log_line" => event.data["line"].clone(),
        _ => event.data["error"].clone(),
    };
    events.iter().map(|event| (event.kind.as_str(), short(event))).collect()
}

#[test]
fn a_stream_tells_everything_from_the_start_however_late_one_joins() {
    let service = Service::start();
    let client = service.client();
    let task = client.submit(&json!({ "steps": [
        { "action": "shell", "command": "echo one; sleep 0.2; echo two >&2; sleep 0.2; echo 'three\n\nevent: evil'" },
        { "action": "shell", "command": "exit 4", "description": "the last one" },
    ] }));
    let live = client.events(&task, 0);
    assert_whole(&live);
    let expected = json!([
        ["status_changed", "queued"],
        ["status_changed", "running"],
        ["progress_update", 1],
        ["log_line", "one"],
        ["log_line", "two"],
        ["log_line", "three"],
        ["log_line", ""],
        ["log_line", "event: evil"],
        ["progress_update", 2],
        ["error", "exit status 4"],
        ["status_changed", "failed"],
    ]);
    assert_eq!(json!(told(&live)), expected);
    assert_eq!(live[8].data["description"], "the last one");
    assert_eq!(
        (&live[4].data["stream"], &live[4].data["total_steps"]),
        (&json!("stderr"), &Value::Null)
    );
    assert!(live[10].data["execution_time_ms"].is_u64(), "{live:?}");
    // It is over, and tells the same again.
    assert_eq!(client.events(&task, 0), live);
    assert_eq!(client.events(&task, 9), live[9..]);
    let path = format!("/api/tasks/{task}/events");
    let query = client.get(&format!("{path}?last_event_id=10"));
    assert_eq!(events(&query.body), live[10..]);
    // Behind the last one there is nothing, and a browser stops asking.
    for after in ["11", "12", "18446744073709551615"] {
        let reply = client.send(&path, &["--header", &format!("Last-Event-ID: {after}")], None);
        assert_eq!((reply.status, reply.body.as_str()), (204, ""), "{after}");
    }
    for after in ["-1", "x", "1.5"] {
        client
            .send(&path, &["--header", &format!("Last-Event-ID: {after}")], None)
            .is(422, "E_INVALID_REQUEST");
    }
    let reply = client.get(&path);
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
}

#[test]
fn a_reader_that_reconnects_all_the_time_sees_each_event_once() {
    let service = Service::start();
    let client = service.client();
    let task = client.submit_command("for i in {1..60}; do echo $i; sleep 0.02; done");
    let path = format!("/api/tasks/{task}/events");
    let (mut seen, mut connections) = (Vec::<Event>::new(), 0);
    while !seen.last().is_some_and(Event::is_last) {
        let header = format!("Last-Event-ID: {}", seen.len());
        let words = ["--header", &header, "--max-time", "0.15"];
        let text = client.read_some(&path, &words);
        seen.extend(events(&text));
        connections += 1;
    }
    assert_whole(&seen);
    let lines = seen.iter().filter(|event| event.kind == "log_line");
    let lines: Vec<_> = lines.map(|event| event.data["line"].as_str().unwrap()).collect();
    let expected: Vec<_> = (1..=60).map(|number| number.to_string()).collect();
    assert_eq!(lines, expected);
    assert!(connections > 3, "it was one stream");
}

#[test]
fn a_task_that_is_over_quota_ends_with_a_terminal_event() {
    let service = Service::start();
    let client = service.cramped(4.0);
    client.write("big", &"x".repeat(3 << 20)).expect(200);
    client.exec("cat big big > bigger");
    let task = client.submit_command("echo never");
    let events = client.events(&task, 0);
    assert_whole(&events);
    assert_eq!(events.last().unwrap().status(), Some("failed"));
    let error = events.iter().find(|event| event.kind == "error").unwrap();
    assert_eq!(error.data["code"], "E_QUOTA_EXCEEDED");
    client.exec("ls").is(507, "E_QUOTA_EXCEEDED");
    client.write("more", "x").is(507, "E_QUOTA_EXCEEDED");
}

#[test]
fn a_ticket_opens_the_stream_of_its_task_and_nothing_else() {
    let service = Service::start();
    let client = service.client();
    let (one, two) = (client.submit_command("echo one"), client.submit_command("echo two"));
    let ticket = client.post(&format!("/api/tasks/{one}/events/ticket"), &json!({})).expect(200);
    assert_eq!(ticket["expires_in"], 60);
    let stranger = service.stranger();
    let url = ticket["url"].as_str().unwrap();
    let reply = stranger.get(url);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_whole(&events(&reply.body));
    // A browser comes again with the same address and what it saw last.
    assert_eq!(stranger.send(url, &["--header", "Last-Event-ID: 99"], None).status, 204);
    let word = ticket["ticket"].as_str().unwrap();
    stranger.get(&format!("/api/tasks/{two}/events?ticket={word}")).is(401, "E_UNAUTHENTICATED");
    stranger.get(&format!("/api/tasks/{one}?ticket={word}")).is(401, "E_UNAUTHENTICATED");
    stranger.get(&format!("/api/tasks/{one}/events?ticket=x")).is(401, "E_UNAUTHENTICATED");
    let as_token = Client { token: Some(word.to_owned()), ..client.clone() };
    as_token.get(&format!("/api/tasks/{one}")).is(401, "E_UNAUTHENTICATED");
    client.get(&format!("/api/tasks/{}/events", new_id())).is(404, "E_TASK_NOT_FOUND");
}

#[test]
fn a_token_that_ends_ends_its_streams() {
    let service = Service::start();
    let client = service.client();
    let task = client.submit_command("sleep 300");
    let token = service.token(&["--id", &client.workspace, "--ttl", "2s"]);
    let expiring = Client { token: Some(token), ..client };
    let begun = std::time::Instant::now();
    let told = expiring.events(&task, 0);
    assert!(!told.is_empty() && !told.last().unwrap().is_last(), "{told:?}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
