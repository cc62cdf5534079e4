//! Refusals on every route that has a boundary: each is one event, with its code and its workspace.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::cluster::{Cluster, TOKEN};
use super::test_environment::{Client, Reply, Service, new_id};
use crate::violations::{Row, Violations, denied, refused};

const SANDBOX: &str = "E_SANDBOX_VIOLATION";

/// Paths that leave a workspace, or that no route shows: absolute, climbing, by a link, sensitive.
const PATHS: [(&str, &str); 4] = [
    ("/etc/passwd", SANDBOX),
    ("../../x", SANDBOX),
    ("artifacts/deep/out/x", SANDBOX),
    (".ssh/id", "E_SENSITIVE_PATH"),
];

impl Client {
    /// Sends a request about a workspace: a method, the rest of its path, and a body.
    fn ask(&self, method: &str, rest: &str, body: Option<&Value>) -> Reply {
        let body = body.map(Value::to_string);
        self.send(&self.at(rest), &["--request", method], body.as_deref().map(str::as_bytes))
    }
}

/// A request that is refused, the code, and the tool or the route in its event.
struct Refused {
    method: &'static str,
    rest: String,
    body: Option<Value>,
    code: &'static str,
}

impl Refused {
    fn get(rest: String, code: &'static str) -> Self {
        Self { method: "GET", rest, body: None, code }
    }

    fn post(rest: &str, body: Value, code: &'static str) -> Self {
        Self { method: "POST", rest: rest.to_owned(), body: Some(body), code }
    }
}

/// Every route below a workspace with every kind of refusal that it has.
fn requests() -> Vec<Refused> {
    let mut all = Vec::new();
    for (path, code) in PATHS {
        for route in ["/files", "/files/content", "/files/raw"] {
            all.push(Refused::get(format!("{route}?path={path}"), code));
        }
        all.push(Refused::get(format!("/files/grep?pattern=x&path={path}"), code));
        let body = Some(json!("x"));
        all.push(Refused { method: "PUT", rest: format!("/files/raw?path={path}"), body, code });
        all.push(Refused::post("/files/write", json!({ "path": path, "content": "x" }), code));
        all.push(Refused::post("/tools/workspace_read_file", json!({ "path": path }), code));
    }
    for (path, code) in &PATHS[..3] {
        all.push(Refused::post("/exec", json!({ "command": "ls", "cwd": path }), code));
        all.push(Refused::post("/git", json!({ "operation": "status", "cwd": path }), code));
        all.push(Refused::post("/tools/Bash", json!({ "command": "ls", "cwd": path }), code));
    }
    let hook = ".git/hooks/pre-commit";
    let written = Some(json!("x"));
    all.extend([
        Refused {
            method: "PUT",
            rest: format!("/files/raw?path={hook}"),
            body: written,
            code: "E_RUNS_LATER",
        },
        Refused::post("/files/write", json!({ "path": hook, "content": "x" }), "E_RUNS_LATER"),
        Refused::post("/exec", json!({ "command": "sudo true" }), "E_COMMAND_REFUSED"),
        Refused::post("/exec", json!({ "command": "ls", "network": "full" }), "E_NETWORK_REFUSED"),
        Refused::post("/git", json!({ "operation": "log", "args": "--output=x" }), "E_GIT_REFUSED"),
        Refused::post("/tools/Bash", json!({ "command": "sudo true" }), "E_COMMAND_REFUSED"),
        Refused::post(
            "/tools/Bash",
            json!({ "command": "ls", "network": "full" }),
            "E_NETWORK_REFUSED",
        ),
    ]);
    all
}

/// A workspace with a repository and a link to the outside.
fn prepare(client: &Client, directory: &Path) {
    client.write("a", "x").expect(200);
    std::fs::create_dir_all(directory.join(".git")).unwrap();
    std::fs::write(directory.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    // The trust check undoes new links to directories further up.
    std::fs::create_dir_all(directory.join("artifacts/deep")).unwrap();
    std::os::unix::fs::symlink("/etc", directory.join("artifacts/deep/out")).unwrap();
}

/// Sends all requests, and checks that each is one event of its workspace.
fn walk(client: &Client, violations: &Violations, send: impl Fn(&Refused) -> Reply) {
    let before = violations.events().len();
    let requests = requests();
    for (number, request) in requests.iter().enumerate() {
        let Refused { method, rest, body, code } = request;
        let reply = send(request);
        let about = format!("{method} {rest} {body:?}");
        assert_eq!(reply.refused(), (403, (*code).to_owned()), "{about}: {reply:?}");
        let event = violations.until(before + number + 1);
        assert_eq!(event["code"], *code, "{about}: {event}");
        assert_eq!(event["workspace"], json!(client.workspace), "{about}: {event}");
        assert_eq!(
            (&event["layer"], &event["interface"]),
            (&json!("argument"), &json!("rest")),
            "{about}"
        );
    }
    assert_eq!(violations.events().len(), before + requests.len(), "none is told twice");
}

#[test]
fn every_refusal_of_every_route_is_one_event() {
    let service = Service::start();
    let data = service.test_env.path("data");
    let violations = Violations::in_directory(&data);
    let client = service.client_for(&new_id(), "read,write,exec,net");
    client.write("a", "x").expect(200);
    prepare(&client, &data.join("workspaces").join(&client.workspace));
    walk(&client, &violations, |request| {
        client.ask(request.method, &request.rest, request.body.as_ref())
    });
    // A workspace with more network than the operator allows.
    let before = violations.rows();
    let asked = json!({ "name": "x", "network": "full" });
    service.operator().post("/api/workspaces", &asked).is(403, "E_NETWORK_REFUSED");
    violations.until(before.len() + 1);
    let last = violations.rows().pop();
    assert_eq!(last, Some(refused("POST /api/workspaces", "E_NETWORK_REFUSED")));
}

#[test]
fn a_refusal_with_an_idempotency_key_is_one_event_and_its_repetition_none() {
    let service = Service::start();
    let data = service.test_env.path("data");
    let violations = Violations::in_directory(&data);
    let client = service.client();
    prepare(&client, &data.join("workspaces").join(&client.workspace));
    let mut expected: Vec<Row> = Vec::new();
    let hook = "/files/raw?path=.git/hooks/pre-commit";
    let route = "PUT /api/workspaces/{workspace_id}/files/raw";
    let words = ["--request", "PUT", "--header", "Idempotency-Key: one"];
    client.send(&client.at(hook), &words, Some(b"x")).is(403, "E_RUNS_LATER");
    expected.push(refused(route, "E_RUNS_LATER"));
    let body = json!({ "command": "sudo true" });
    client.post_once(&client.at("/exec"), "two", &body).is(403, "E_COMMAND_REFUSED");
    expected.push(refused("workspace_exec", "E_COMMAND_REFUSED"));
    violations.until(2);
    client.post_once(&client.at("/exec"), "two", &body).is(403, "E_COMMAND_REFUSED");
    client.read("../x").is(403, SANDBOX);
    expected.push(refused("workspace_read_file", SANDBOX));
    violations.until(3);
    assert_eq!(violations.rows(), expected);
}

#[test]
fn refusals_of_commands_steps_and_agents_are_one_event_each() {
    let service = Service::start();
    let violations = Violations::in_directory(&service.test_env.path("data"));
    let client = service.client_for(&new_id(), "read,write,exec,net");
    client.exec("touch /usr/planted").expect(200);
    client.post(&client.at("/tools/Bash"), &json!({ "command": "touch /usr/planted" })).expect(200);
    client.done(&json!([
        { "action": "read_file", "path": "../../etc/passwd", "on_error": "continue" },
        { "action": "shell", "command": "sudo true", "on_error": "continue" },
        { "action": "shell", "command": "true", "network": "full", "on_error": "continue" },
        { "action": "shell", "command": "touch /usr/planted", "on_error": "continue" },
    ]));
    let agent = client.agent();
    let workspace = &client.workspace;
    agent.call("Read", &json!({ "file_path": "../x", "workspace": workspace }));
    agent.call("Bash", &json!({ "command": "true", "network": "full", "workspace": workspace }));
    violations.until(8);
    let expected = [
        (denied("workspace_exec"), "rest"),
        (denied("Bash"), "rest"),
        (refused("workspace_read_file", SANDBOX), "task"),
        (refused("workspace_exec", "E_COMMAND_REFUSED"), "task"),
        (refused("workspace_exec", "E_NETWORK_REFUSED"), "task"),
        (denied("workspace_exec"), "task"),
        (refused("Read", SANDBOX), "http"),
        (refused("Bash", "E_NETWORK_REFUSED"), "http"),
    ];
    let rows = violations.rows().into_iter().zip(violations.events());
    let found: Vec<_> =
        rows.map(|(row, event)| (row, event["interface"].as_str().unwrap().to_owned())).collect();
    let expected = expected.map(|(row, interface)| (row, interface.to_owned()));
    assert_eq!(found, expected);
    assert!(violations.events().iter().all(|event| event["workspace"] == json!(workspace)));
}

#[test]
fn every_refusal_of_a_worker_is_one_event_there_and_none_where_it_is_passed_on() {
    let cluster = Cluster::start();
    let api = cluster.api(&[]);
    let worker = cluster.worker("one", &[]);
    let client = api.client_for(&new_id(), "read,write,exec,net");
    crate::eventually("the worker is known", || client.write("a", "one\n").status == 200);
    prepare(&client, &cluster.volume("one").join(&client.workspace));
    let violations = Violations::in_directory(&cluster.volume("one").join(".carrel"));
    let shown = format!("X-Internal-Token: {TOKEN}");
    walk(&client, &violations, |request| {
        let path = format!("/workspaces/{}{}", client.workspace, request.rest);
        let words = ["--request", request.method, "--header", &shown];
        let body = request.body.as_ref().map(Value::to_string);
        worker.client().send(&path, &words, body.as_deref().map(str::as_bytes))
    });
    walk(&client, &violations, |request| {
        client.ask(request.method, &request.rest, request.body.as_ref())
    });
    let here = Violations::in_directory(&api.test_env.path("data"));
    assert_eq!(here.rows(), []);
}
