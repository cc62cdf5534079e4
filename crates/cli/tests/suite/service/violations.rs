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

/// The fields of requests that name files.
const PATH_FIELDS: [&str; 3] = ["path", "paths", "cwd"];

/// The part of a route that names the workspace.
const IN_WORKSPACE: &str = "/api/workspaces/{workspace_id}";

/// Routes below a workspace that no path, command, network or operation of git reaches.
const WITHOUT_BOUNDARY: [(&str, &str); 19] = [
    ("GET", "/forks"),
    ("POST", "/forks"),
    ("GET", "/changes"),
    ("POST", "/promote"),
    ("POST", "/rebase"),
    ("GET", "/tries"),
    ("GET", "/tries/{try}"),
    ("DELETE", "/tries/{try}"),
    ("GET", ""),
    ("DELETE", ""),
    ("GET", "/usage"),
    ("GET", "/credentials"),
    ("PUT", "/credentials/{credential}"),
    ("DELETE", "/credentials/{credential}"),
    ("GET", "/snapshots"),
    // The name of a snapshot is no path: one with a slash is not valid.
    ("POST", "/snapshots"),
    ("DELETE", "/snapshots/{snapshot}"),
    ("GET", "/github/repos"),
    // A host that is not allowed makes an invalid request, and the task has the boundary of its step.
    ("POST", "/github/clone"),
];

/// A request that is refused, the code, and the tool or the route in its event.
struct Refused {
    method: String,
    rest: String,
    body: Option<Value>,
    code: &'static str,
}

impl Refused {
    fn post(rest: &str, body: Value, code: &'static str) -> Self {
        Self { method: "POST".to_owned(), rest: rest.to_owned(), body: Some(body), code }
    }

    fn put(rest: &str, code: &'static str) -> Self {
        let body = Some(json!("x"));
        Self { method: "PUT".to_owned(), rest: rest.to_owned(), body, code }
    }

    fn is_of(&self, method: &str, template: &str) -> bool {
        let path = self.rest.split('?').next().unwrap();
        let (own, of_route) = (path.split('/'), template.split('/'));
        method == self.method
            && own.clone().count() == of_route.clone().count()
            && own.zip(of_route).all(|(own, part)| own == part || part.starts_with('{'))
    }
}

/// A route below a workspace, as the document says it that is made from the table of routes.
struct DocumentedRoute {
    method: String,
    /// Its path after the id of the workspace.
    template: String,
    /// The names of its parameters in the query, and whether each is required.
    query: Vec<(String, bool)>,
    /// The names of the fields of its body, likewise.
    body: Vec<(String, bool)>,
}

impl DocumentedRoute {
    fn all(document: &Value) -> Vec<Self> {
        let paths = document["paths"].as_object().unwrap();
        let below = paths.iter().filter_map(|(path, operations)| {
            Some((path.strip_prefix(IN_WORKSPACE)?, operations.as_object().unwrap()))
        });
        let routes: Vec<_> = below
            .flat_map(|(template, operations)| {
                operations.iter().map(|(method, operation)| Self {
                    method: method.to_uppercase(),
                    template: template.to_owned(),
                    query: query_of(operation),
                    body: body_of(document, operation),
                })
            })
            .collect();
        assert!(routes.len() > 15, "{document}");
        routes
    }

    /// Returns a request for each field that names files and each kind of path that is refused in it.
    fn with_refused_paths(&self) -> Vec<Refused> {
        let mut all = Vec::new();
        let is_path = |(name, _): &&(String, bool)| PATH_FIELDS.contains(&name.as_str());
        for (field, _) in self.query.iter().chain(&self.body).filter(is_path) {
            let kinds = match field.as_str() {
                // A command may work in a directory that is not shown.
                "cwd" => &PATHS[..3],
                // Paths in a snapshot are compared and never opened, so that links lead nowhere.
                _ if self.template.starts_with("/snapshots") => &PATHS[..2],
                _ => &PATHS[..],
            };
            all.extend(kinds.iter().map(|(path, code)| self.with(field, path, code)));
        }
        all
    }

    fn with(&self, field: &str, path: &str, code: &'static str) -> Refused {
        let sent = |fields: &[(String, bool)]| -> Vec<(String, Value)> {
            let sent = fields.iter().filter(|(name, is_required)| *is_required || name == field);
            let value = |name: &str| if name == field { json!(path) } else { sample(name) };
            sent.map(|(name, _)| (name.clone(), value(name))).collect()
        };
        let query: Vec<_> = sent(&self.query)
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
            .collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let template = self.template.replace("{snapshot}", SNAPSHOT);
        let list = |(name, value): (String, Value)| match name.as_str() {
            "paths" => (name, json!([value])),
            _ => (name, value),
        };
        let fields: serde_json::Map<_, _> = sent(&self.body).into_iter().map(list).collect();
        let body = match self.method.as_str() {
            "GET" => None,
            "PUT" => Some(json!("x")),
            _ => Some(Value::Object(fields)),
        };
        let rest = format!("{template}{mark}{}", query.join("&"));
        Refused { method: self.method.clone(), rest, body, code }
    }
}

fn query_of(operation: &Value) -> Vec<(String, bool)> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let in_query = parameters.filter(|parameter| parameter["in"] == "query");
    let named = |parameter: &Value| {
        (parameter["name"].as_str().unwrap().to_owned(), parameter["required"] == true)
    };
    in_query.map(named).collect()
}

fn body_of(document: &Value, operation: &Value) -> Vec<(String, bool)> {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let Some(reference) = schema["$ref"].as_str() else { return Vec::new() };
    let schema = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, _)| (name.clone(), required.contains(&json!(name)))).collect()
}

/// Returns a value for a field that a request must have beside the one that is refused.
fn sample(field: &str) -> Value {
    match field {
        "content" | "pattern" => json!("x"),
        "command" => json!("ls"),
        "operation" => json!("status"),
        // Two of them cannot be refused at once.
        "path" => json!("a"),
        other => panic!("a request needs `{other}`; give it a value here"),
    }
}

/// Returns a request for every kind of refusal of every route below a workspace: those of paths by the table of
/// routes, others by hand.
fn requests(document: &Value) -> Vec<Refused> {
    let routes = DocumentedRoute::all(document);
    let mut all: Vec<_> = routes.iter().flat_map(DocumentedRoute::with_refused_paths).collect();
    for (path, code) in PATHS {
        all.push(Refused::post("/tools/workspace_read_file", json!({ "path": path }), code));
    }
    for (path, code) in &PATHS[..3] {
        all.push(Refused::post("/tools/Bash", json!({ "command": "ls", "cwd": path }), code));
    }
    let hook = ".git/hooks/pre-commit";
    let to_full = json!({ "command": "ls", "network": "full" });
    let output = json!({ "operation": "log", "args": "--output=x" });
    let write = json!({ "file_path": hook, "content": "x" });
    all.extend([
        Refused::put(&format!("/files/raw?path={hook}"), "E_RUNS_LATER"),
        Refused::post("/files/write", json!({ "path": hook, "content": "x" }), "E_RUNS_LATER"),
        Refused::post("/tools/Write", write, "E_RUNS_LATER"),
        Refused::post("/exec", json!({ "command": "sudo true" }), "E_COMMAND_REFUSED"),
        Refused::post("/exec", to_full.clone(), "E_NETWORK_REFUSED"),
        Refused::post(
            "/tries",
            json!({ "runs": ["sudo true"], "verify": "true" }),
            "E_COMMAND_REFUSED",
        ),
        Refused::post(
            "/tries",
            json!({ "runs": ["true"], "verify": "true", "network": "full" }),
            "E_NETWORK_REFUSED",
        ),
        Refused::post("/git", output.clone(), "E_GIT_REFUSED"),
        Refused::post("/tools/git", output, "E_GIT_REFUSED"),
        Refused::post("/tools/Bash", json!({ "command": "sudo true" }), "E_COMMAND_REFUSED"),
        Refused::post("/tools/Bash", to_full, "E_NETWORK_REFUSED"),
    ]);
    for DocumentedRoute { method, template, .. } in &routes {
        let is_sent = all.iter().any(|request| request.is_of(method, template));
        let is_without = WITHOUT_BOUNDARY.contains(&(method, template));
        assert!(
            is_sent != is_without,
            "{method} {template}: send a request that it refuses, or list it"
        );
    }
    all
}

/// A workspace with a repository and a link to the outside.
fn prepare(client: &Client, directory: &Path) {
    client.write("a", "x").expect(200);
    client.post(&client.at("/snapshots"), &json!({ "name": SNAPSHOT })).expect(200);
    std::fs::create_dir_all(directory.join(".git")).unwrap();
    std::fs::write(directory.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    // The trust check undoes new links to directories further up.
    std::fs::create_dir_all(directory.join("artifacts/deep")).unwrap();
    std::os::unix::fs::symlink("/etc", directory.join("artifacts/deep/out")).unwrap();
}

/// A snapshot that exists.
const SNAPSHOT: &str = "baseline";

/// Sends all requests, and checks that each is one event of its workspace.
fn walk(client: &Client, violations: &Violations, send: impl Fn(&Refused) -> Reply) {
    let before = violations.events().len();
    let requests = requests(&client.get("/openapi.json").expect(200));
    for (number, request) in requests.iter().enumerate() {
        let Refused { method, rest, body, code } = request;
        let reply = send(request);
        let about = format!("{method} {rest} {body:?}");
        assert_eq!(reply.status, 403, "{about}: {reply:?}");
        assert_eq!(reply.refused().1, *code, "{about}: {reply:?}");
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
        client.ask(&request.method, &request.rest, request.body.as_ref())
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
        let words = ["--request", &request.method, "--header", &shown];
        let body = request.body.as_ref().map(Value::to_string);
        worker.client().send(&path, &words, body.as_deref().map(str::as_bytes))
    });
    walk(&client, &violations, |request| {
        client.ask(&request.method, &request.rest, request.body.as_ref())
    });
    let here = Violations::in_directory(&api.test_env.path("data"));
    assert_eq!(here.rows(), []);
}
