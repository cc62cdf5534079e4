//! What an operator sees of the service, and where it stops: audit, figures, room on the disk.

use std::io::Write as _;
use std::net::TcpStream;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, Service};

impl Service {
    /// What was written down about calls of the API.
    fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.test_env.path("data").join("events.jsonl"));
        let text = text.unwrap_or_default();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["event"] == "api.call").collect()
    }

    pub(super) fn audited(&self, what: impl Fn(&Value) -> bool) -> Value {
        crate::eventually("it is written down", || self.audit().iter().any(&what));
        self.audit().into_iter().find(|event| what(event)).unwrap()
    }
}

impl Client {
    fn figure(&self, name: &str) -> Option<u64> {
        let page = self.get("/metrics");
        assert_eq!(page.status, 200, "{page:?}");
        let line = page.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|figure| figure.parse().unwrap())
    }
}

#[test]
fn every_change_and_every_refusal_is_written_down_without_what_was_said() {
    let service = Service::start();
    let ada = service.client_named(&super::test_environment::new_id(), "ada");
    let reply = ada.send(
        &ada.at("/files/write"),
        &["--header", "X-Request-Id: my-own.1"],
        Some(json!({ "path": "a", "content": "not-for-the-log" }).to_string().as_bytes()),
    );
    reply.expect(200);
    assert_eq!(reply.header("x-request-id"), Some("my-own.1"));
    let seen = ada.read("a");
    let made = seen.header("x-request-id").unwrap().to_owned();
    assert!(made.len() == 32 && made.bytes().all(|byte| byte.is_ascii_hexdigit()), "{made}");
    let forged = ada.send("/healthz", &["--header", "X-Request-Id: a b\"c"], None);
    assert_ne!(forged.header("x-request-id"), Some("a b\"c"));

    let wrote = service.audited(|event| event["request_id"] == "my-own.1");
    assert_eq!(
        wrote,
        json!({
            "at": wrote["at"], "sequence": wrote["sequence"], "session": "ada", "interface": "rest",
            "event": "api.call", "method": "POST",
            "route": "/api/workspaces/{workspace_id}/files/write", "workspace": ada.workspace,
            "status": 200, "request_id": "my-own.1", "duration_ms": wrote["duration_ms"],
        })
    );
    let foreign = Client { workspace: super::test_environment::new_id(), ..ada.clone() };
    foreign.read("secret-name").is(403, "E_FORBIDDEN");
    let refused = service.audited(|event| event["status"] == 403);
    assert_eq!(
        (&refused["method"], &refused["session"], &refused["workspace"]),
        (&json!("GET"), &json!("ada"), &json!(foreign.workspace))
    );
    service.stranger().get("/api/tasks").is(401, "E_UNAUTHENTICATED");
    assert_eq!(service.audited(|event| event["status"] == 401)["session"], "nobody");
    let task = ada.submit_command("true");
    ada.finished(&task);
    let submitted = service.audited(|event| event["route"] == "/api/tasks/submit");
    assert_eq!(submitted["workspace"], json!(ada.workspace));
    // What was only looked at is not there, and nothing of what was said.
    let all = Value::from(service.audit()).to_string();
    for word in ["not-for-the-log", "secret-name", ada.token.as_ref().unwrap().as_str()] {
        assert!(!all.contains(word), "{word}: {all}");
    }
    assert!(!service.audit().iter().any(|event| event["request_id"] == json!(made)));
}

#[test]
fn whoever_is_refused_cannot_fill_the_log() {
    let service = Service::start();
    let client = service.client();
    client.write("a", "x").expect(200);
    let (times, told) = (300, 100);
    let line = format!(
        "curl --silent --request POST --output /dev/null 'http://{}/nowhere?[1-{times}]'",
        service.address
    );
    assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success());
    client.write("b", "x").expect(200);
    let nobody = |event: &&Value| event["session"] == "nobody";
    crate::eventually("the last change is there", || {
        service.audit().last().is_some_and(|event| event["status"] == 200)
    });
    let audit = service.audit();
    let written = audit.iter().filter(nobody).count();
    // One a second more, for as long as it took.
    assert!((told..told + 60).contains(&written), "{written}");
    assert_eq!(audit.len() - written, 2);
    let count = "carrel_requests_total{method=\"POST\",route=\"none\",status=\"404\"}";
    assert_eq!(client.figure(count), Some(times));
}

#[test]
fn figures_tell_of_the_disk_the_workspaces_of_the_caller_and_the_requests() {
    let service = Service::start();
    let (client, other) = (service.client(), service.client());
    client.write("big", &"x".repeat(1 << 20)).expect(200);
    client.run("true");
    other.run("true");
    let own = format!("carrel_workspace_bytes{{workspace=\"{}\"}}", client.workspace);
    assert!(client.figure(&own).is_some());
    let foreign = format!("carrel_workspace_bytes{{workspace=\"{}\"}}", other.workspace);
    assert_eq!(client.figure(&foreign), None);
    assert!(service.operator().figure(&foreign).is_some());
    assert!(client.figure("carrel_root_bytes{state=\"free\"}").unwrap() > 0);
    assert!(client.figure("carrel_root_bytes{state=\"used\"}").unwrap() > 0);
    let route = "/api/workspaces/{workspace_id}/files/write";
    let count =
        format!("carrel_requests_total{{method=\"POST\",route=\"{route}\",status=\"200\"}}");
    assert_eq!(client.figure(&count), Some(1));
    // Whatever strangers ask for, it is one line.
    for path in ["/a", "/b"] {
        client.send(path, &["--request", "BREW"], None).is(404, "E_UNKNOWN_ROUTE");
    }
    let none = "carrel_requests_total{method=\"OTHER\",route=\"none\",status=\"404\"}";
    assert_eq!(client.figure(none), Some(2));
    let task = client.submit_command("sleep 5");
    let open = client.open_events(&task);
    assert_eq!(client.figure("carrel_event_streams"), Some(1));
    drop(open);
    client.post(&format!("/api/tasks/{task}/cancel"), &json!({}));
}

#[test]
fn below_the_floor_nothing_is_begun_and_tasks_wait() {
    let mut service = Service::start();
    let client = service.client();
    client.write("kept", "kept").expect(200);
    service.terminate();
    service.set("CARREL_FREE_SPACE_FLOOR", "1000000T");
    service.begin_again();
    let client = Client { address: service.address, ..client };
    assert_eq!(service.stranger().get("/readyz").expect(200)["space"], "low");
    assert_eq!(client.read("kept").expect(200)["content"], "kept");
    client.exec("true").is(507, "E_DISK_FULL");
    client.write("more", "x").is(507, "E_DISK_FULL");
    service.operator().post("/api/workspaces", &json!({ "name": "a" })).is(507, "E_DISK_FULL");
    service.client().read("a").is(507, "E_DISK_FULL");
    let deleted = client.post(&client.at("/tools/Delete"), &json!({ "path": "kept" }));
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let task = client.submit_command("true");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(client.task(&task)["status"], "queued");
    service.terminate();
    service.set("CARREL_FREE_SPACE_FLOOR", "0");
    service.begin_again();
    let client = Client { address: service.address, ..client };
    let done = client.finished(&task);
    assert_eq!((&done["status"], &done["attempt"]), (&json!("completed"), &json!(1)), "{done}");
    service.terminate();
    let mut wrong = service.serve("127.0.0.1:0");
    let output = wrong.env("CARREL_FREE_SPACE_FLOOR", "much").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("CARREL_FREE_SPACE_FLOOR=much") && said.contains("512M"), "{said}");
}

#[test]
fn a_full_workspace_can_be_emptied() {
    let service = Service::start();
    let client = service.cramped(4.0);
    client.write("big", &"x".repeat(3 << 20)).expect(200);
    let top = service.test_env.path("data").join("workspaces").join(&client.workspace);
    std::fs::write(top.join("more"), vec![0; 8 << 20]).unwrap();
    crate::eventually("it is counted", || client.exec("true").status == 507);
    let deleted = client.post(&client.at("/tools/Delete"), &json!({ "path": "more" }));
    assert_eq!(deleted.status, 200, "{deleted:?}");
    client.post(&client.at("/tools/Delete"), &json!({ "path": "big" })).expect(200);
    client.run("true");
}

#[test]
fn the_keys_of_one_caller_mean_nothing_to_another() {
    let service = Service::start();
    let operator = |name: &str| {
        let scopes = "read,write,exec,net,admin";
        let token = service.token(&["--all", "--scope", scopes, "--subject", name]);
        Client { token: Some(token), ..service.stranger() }
    };
    let body = json!({ "name": "a" });
    let made = |name: &str| {
        let made = operator(name).post_once("/api/workspaces", "same-key", &body).expect(201);
        made["id"].as_str().unwrap().to_owned()
    };
    let first = made("ada");
    assert_eq!(made("ada"), first);
    assert_ne!(made("bob"), first);
}

#[test]
fn the_rate_holds_for_single_tasks_too() {
    let service = Service::start_with(&[("CARREL_RATE_LIMIT", "1")]);
    let client = service.client();
    let task = client.submit_command("true");
    let replies: Vec<_> =
        (0..4).map(|_| client.get(&format!("/api/tasks/{task}")).status).collect();
    assert!(replies.contains(&429), "{replies:?}");
}

#[test]
fn large_bodies_have_room_together_and_no_more() {
    let service = Service::start();
    let client = service.client();
    client.run("true");
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        client.at("/files/write"),
        client.token.as_ref().unwrap(),
        32 << 20,
    );
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = TcpStream::connect(client.address).unwrap();
            connection.write_all(head.as_bytes()).unwrap();
            connection
        })
        .collect();
    let large = "x".repeat(100 << 10);
    crate::eventually("the room is taken", || client.write("a", &large).status == 429);
    client.write("small", "x").expect(200);
    drop(waiting);
    crate::eventually("it is free again", || client.write("a", &large).status == 200);
}
