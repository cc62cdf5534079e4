//! What endless work costs.

use std::time::{Duration, Instant};

use serde_json::json;

use super::test_environment::Service;
use crate::test_environment::is_soak;

#[test]
fn endless_output_costs_the_server_little() {
    let service = Service::start();
    let (client, meter) = (service.client(), service.meter());
    let mebibytes = if is_soak() { 10 << 10 } else { 500 };
    let program = format!(
        "import sys\nline = b'y' * 99 + b'\\n'\nblock = line * 10486\nfor _ in range({mebibytes}): sys.stdout.buffer.write(block)\n"
    );
    client.write("yes.py", &program).expect(200);
    let body = json!({
        "steps": [{ "action": "shell", "command": "python3 yes.py", "timeout": 3000 }],
        "timeout_seconds": 3600,
    });
    let begun = Instant::now();
    let task = client.submit(&body);
    let patience = Duration::from_mins(if is_soak() { 15 } else { 2 });
    while client.task(&task)["completed_at"].is_null() {
        assert!(begun.elapsed() < patience, "it never ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    let task = client.task(&task);
    eprintln!("{mebibytes} MiB in {:?}", begun.elapsed());
    meter.shows_little();
    assert!(service.stranger().get("/healthz").status == 200);
    let step = &task["result"]["steps"][0];
    assert!(step["result"]["truncated"] == true, "{task}");
    assert!(step["result"]["stdout"].as_str().unwrap().len() <= 110_000);
}

#[test]
fn an_answer_with_endless_output_is_small_too() {
    let service = Service::start();
    let (client, meter) = (service.client(), service.meter());
    let line = "python3 -c 'import sys\nfor _ in range(300): sys.stdout.write(\"y\" * 1000000)'";
    let done =
        client.post(&client.at("/exec"), &json!({ "command": line, "timeout": 120 })).expect(200);
    assert!(done["truncated"] == true && done["stdout"].as_str().unwrap().len() <= 110_000);
    meter.shows_little();
}

#[test]
fn lines_that_a_task_tells_are_counted_over_all_its_steps() {
    let service = Service::start();
    let client = service.client();
    let step = json!({ "action": "shell", "command": "for i in {1..3000}; do echo $i; done" });
    let task = client.submit(&json!({ "steps": [step, step, step] }));
    let events = client.events(&task, 0);
    super::test_environment::assert_whole(&events);
    let lines: Vec<_> = events.iter().filter(|event| event.kind == "log_line").collect();
    assert_eq!(lines.len(), 5000);
    let last = lines.last().unwrap().data["line"].as_str().unwrap();
    assert!(last.starts_with("[more lines follow"), "{last}");
    // The result has the end of each.
    let task = client.task(&task);
    for step in task["result"]["steps"].as_array().unwrap() {
        assert!(step["result"]["stdout"].as_str().unwrap().ends_with("3000\n"), "{step}");
    }
}

#[test]
fn a_task_that_floods_its_readers_can_be_cancelled() {
    let service = Service::start();
    let client = service.client();
    let task = client.submit_command("python3 -c 'while True: print(\"y\" * 99)'");
    let streams: Vec<_> = (0..3).map(|_| client.open_events(&task)).collect();
    client.until(&task, |task| task["last_event"].as_u64() > Some(500));
    let begun = Instant::now();
    let reply = client.post(&format!("/api/tasks/{task}/cancel"), &json!({}));
    assert!(matches!(reply.status, 200 | 202), "{reply:?}");
    client.until(&task, |task| task["status"] == "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for stream in streams {
        let text = stream.ended();
        let events = super::test_environment::events(text.split_once("\r\n\r\n").unwrap().1);
        super::test_environment::assert_whole(&events);
    }
}

#[test]
fn a_task_that_is_asked_to_end_right_after_it_began_does() {
    let service = Service::start();
    let client = service.client();
    for _ in 0..10 {
        let task = client.submit_command("sleep 300");
        let begun = Instant::now();
        let reply = client.post(&format!("/api/tasks/{task}/cancel"), &json!({}));
        assert!(matches!(reply.status, 200 | 202), "{reply:?}");
        client.until(&task, |task| task["status"] == "cancelled");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
