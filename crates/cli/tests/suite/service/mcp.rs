//! `/mcp` of the service: every group of tools, as far as a token reaches.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpStream;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::test_environment::{Client, Reply, Service, new_id};
use crate::test_environment::Mark;

const JSON: [&str; 4] = [
    "--header",
    "Content-Type: application/json",
    "--header",
    "Accept: application/json, text/event-stream",
];

/// A client of the revision with sessions.
pub(super) struct Agent {
    client: Client,
    session: String,
}

impl Client {
    fn mcp(&self, words: &[&str], body: &Value) -> Reply {
        self.send("/mcp", &[&JSON, words].concat(), Some(body.to_string().as_bytes()))
    }

    /// Shakes hands.
    pub(super) fn agent(&self) -> Agent {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        }});
        let reply = self.mcp(&[], &body);
        assert_eq!(reply.expect(200)["result"]["protocolVersion"], "2025-11-25");
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let agent = Agent { client: self.clone(), session };
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(agent.send(&body).status, 202);
        agent
    }

    /// Asks in the revision without sessions.
    pub(super) fn stateless(&self, method: &str, params: Value) -> Reply {
        self.stateless_with(None, method, params)
    }

    /// Calls a tool in the revision without sessions, and returns the result.
    fn stateless_call(&self, handle: Option<&str>, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.stateless_with(handle, "tools/call", params).expect(200)["result"].clone()
    }

    fn stateless_with(&self, handle: Option<&str>, method: &str, mut params: Value) -> Reply {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if let Some(handle) = handle {
            params["_meta"]["dev.carrel/session"] = json!(handle);
        }
        let method_header = format!("Mcp-Method: {method}");
        let name = params["name"].as_str().map(|name| format!("Mcp-Name: {name}"));
        let mut words =
            vec!["--header", "MCP-Protocol-Version: 2026-07-28", "--header", &method_header];
        words.extend(name.iter().flat_map(|name| ["--header", name.as_str()]));
        self.mcp(&words, &json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }))
    }
}

impl Agent {
    fn send(&self, body: &Value) -> Reply {
        let header = format!("Mcp-Session-Id: {}", self.session);
        self.client.mcp(&["--header", &header], body)
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
        self.send(&body).expect(200)
    }

    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Value {
        let reply = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        reply["result"].clone()
    }

    fn tools(&self) -> BTreeSet<String> {
        let listed = self.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn an_agent_gets_the_tools_that_its_token_reaches_in_both_revisions() {
    let service = Service::start();
    let client = service.client();
    let agent = client.agent();
    let all = agent.tools();
    for name in ["workspace_exec", "workspace_read_file", "Bash", "Edit", "Read"] {
        assert!(all.contains(name), "{name}");
    }
    assert!(!all.contains("workspaces"), "the token covers one");
    assert!(!all.contains("secret"));
    // One workspace needs no name, and a file that was read can be changed.
    let wrote = agent.call("Write", &json!({ "file_path": "a.txt", "content": "one\n" }));
    assert_eq!(wrote["isError"], false, "{wrote}");
    let edited = agent
        .call("Edit", &json!({ "file_path": "a.txt", "old_string": "one", "new_string": "two" }));
    assert_eq!(edited["isError"], false, "{edited}");
    assert_eq!(client.read("a.txt").expect(200)["content"], "two\n");
    let ran = agent.call("workspace_exec", &json!({ "command": "cat a.txt" }));
    assert!(ran["content"][0]["text"].as_str().unwrap().contains("two"), "{ran}");

    let reader = service.client_for(&client.workspace, "read").agent();
    let few = reader.tools();
    assert!(few.contains("Read") && few.is_subset(&all), "{few:?}");
    for name in ["Write", "Edit", "Bash", "workspace_exec", "workspace_git"] {
        assert!(!few.contains(name), "{name}");
        let refused = reader.call(name, &json!({}));
        assert_eq!(refused["structuredContent"]["error"]["code"], "E_FORBIDDEN", "{refused}");
    }
    let writer = service.client_for(&client.workspace, "read,write").agent().tools();
    assert!(writer.contains("Write") && !writer.contains("Bash"), "{writer:?}");

    let listed = client.stateless("tools/list", json!({})).expect(200);
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), all.len());
    let arguments = json!({ "path": "a.txt" });
    let called = json!({ "name": "workspace_read_file", "arguments": arguments });
    let read = client.stateless("tools/call", called).expect(200);
    assert_eq!(read["result"]["content"][0]["text"], "two\n", "{read}");
}

/// Its workspaces have a registry each, and ids of tasks and resources would not say which.
#[test]
fn the_service_declares_tools_and_has_no_other_methods() {
    let service = Service::start();
    let agent = service.client().agent();
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "carrel://files/a/b" })),
        ("resources/subscribe", json!({ "uri": "carrel://files/a/b" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "review" })),
        ("tasks/get", json!({ "taskId": "job_00000000000000000000000000" })),
        ("tasks/get", json!({})),
    ] {
        let reply = agent.ask(method, &params);
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
}

#[test]
fn an_agent_reaches_the_workspaces_of_its_token_and_no_other() {
    let service = Service::start();
    let (one, two, foreign) = (new_id(), new_id(), new_id());
    let token = service.token(&["--id", &one, "--id", &two]);
    let client = Client { token: Some(token), ..service.stranger() };
    let agent = client.agent();
    assert!(agent.tools().contains("workspaces"), "the token covers several");
    let listed = agent.call("workspaces", &json!({}));
    let text = listed["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&one) && text.contains(&two) && text.lines().count() == 2, "{text}");
    let write = |workspace: Value| {
        let arguments = json!({ "path": "a", "content": "x", "workspace": workspace });
        let done = agent.call("workspace_write_file", &arguments);
        done["structuredContent"]["error"]["code"].as_str().map(str::to_owned)
    };
    assert_eq!(write(json!(one)), None);
    assert_eq!(write(json!(two)), None);
    assert_eq!(write(json!(foreign)).as_deref(), Some("E_FORBIDDEN"));
    assert_eq!(write(json!("nonsense")).as_deref(), Some("E_UNKNOWN_WORKSPACE"));
    assert_eq!(write(json!("all")).as_deref(), Some("E_UNKNOWN_WORKSPACE"));
    assert_eq!(write(Value::Null).as_deref(), Some("E_INVALID_REQUEST"));
    let bash = json!({ "command": "true", "workspace": one, "network": "full" });
    let refused = agent.call("Bash", &bash);
    assert_eq!(refused["structuredContent"]["error"]["code"], "E_FORBIDDEN", "{refused}");
}

#[test]
fn a_session_answers_to_whoever_began_it_and_to_nobody_else() {
    let service = Service::start();
    let workspace = new_id();
    let client = service.client_named(&workspace, "bearer");
    let mark = Mark::new();
    let agent = client.agent();
    let body = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    let line = json!({ "command": format!("sleep {}", mark.0), "run_in_background": true });
    assert_eq!(agent.call("Bash", &line)["isError"], false);
    for other in [
        service.client(),
        service.operator(),
        service.client_named(&client.workspace, "somebody else"),
        // Without a subject nothing says that two tokens belong together.
        service.client_for(&client.workspace, "read,write,exec"),
    ] {
        let thief = Agent { client: other.clone(), session: agent.session.clone() };
        assert_eq!(thief.send(&body).status, 404);
        let header = format!("Mcp-Session-Id: {}", agent.session);
        let gone = other.send("/mcp", &["--request", "DELETE", "--header", &header], None);
        assert_eq!(gone.status, 404);
    }
    let nobody = Agent { client: service.stranger(), session: agent.session.clone() };
    nobody.send(&body).is(401, "E_UNAUTHENTICATED");
    // A new token of the same bearer goes on.
    let words = ["--id", &workspace, "--subject", "bearer", "--scope", "read"];
    let renewed = Client { token: Some(service.token(&words)), ..client.clone() };
    let renewed = Agent { client: renewed, session: agent.session.clone() };
    assert!(!renewed.tools().contains("Bash"));
    let foreign = new_id();
    renewed.call("workspace_read_file", &json!({ "workspace": foreign, "path": "a" }));
    let refused = service.audited(|event| event["workspace"] == json!(foreign));
    assert_eq!((&refused["route"], &refused["status"]), (&json!("/mcp"), &json!(403)));
    assert!(!refused["request_id"].as_str().unwrap().is_empty(), "{refused}");
    let evil = client.mcp(&["--header", "Origin: https://evil.example"], &body);
    evil.is(403, "E_HOST_REFUSED");

    // What it left running ends with it.
    assert!(!mark.alive().is_empty());
    let header = format!("Mcp-Session-Id: {}", agent.session);
    let gone = client.send("/mcp", &["--request", "DELETE", "--header", &header], None);
    assert_eq!(gone.status, 204);
    crate::eventually("it ended", || mark.alive().is_empty());
}

fn code(result: &Value) -> Option<&str> {
    result["structuredContent"]["error"]["code"].as_str()
}

/// Two tokens for one workspace, in both revisions: neither sees what the other read or started, even if it
/// knows the id of the job.
#[test]
fn a_token_sees_nothing_of_what_another_token_read_or_started() {
    let service = Service::start();
    let workspace = new_id();
    let one = service.client_named(&workspace, "one");
    let others = [
        service.client_named(&workspace, "other"),
        service.client_for(&workspace, "read,write,exec"),
        service.operator(),
    ];
    one.write("a.txt", "old\n").expect(200);
    let at = |arguments: Value| {
        let mut arguments = arguments;
        arguments["workspace"] = json!(workspace);
        arguments
    };
    let read = at(json!({ "file_path": "a.txt" }));
    let edit = at(json!({ "file_path": "a.txt", "old_string": "old", "new_string": "new" }));
    let mark = Mark::new();
    let line = at(json!({ "command": format!("sleep {}", mark.0), "run_in_background": true }));
    let agent = one.agent();
    agent.call("Read", &read);
    one.stateless_call(Some("handle"), "Read", &read);
    one.stateless_call(None, "Read", &read);
    let ids = [
        agent.call("Bash", &line),
        one.stateless_call(Some("handle"), "Bash", &line),
        one.stateless_call(None, "Bash", &line),
    ];
    let ids = ids.map(|started| {
        let id = started["structuredContent"]["shell_id"].as_str();
        id.unwrap_or_else(|| panic!("{started}")).to_owned()
    });
    for other in &others {
        let thief = other.agent();
        assert_eq!(code(&thief.call("Edit", &edit)), Some("E_NOT_READ"));
        for handle in [Some("handle"), None] {
            let refused = other.stateless_call(handle, "Edit", &edit);
            assert_eq!(code(&refused), Some("E_NOT_READ"), "{handle:?}");
        }
        for id in &ids {
            let job = at(json!({ "shell_id": id }));
            for tool in ["BashOutput", "KillShell", "watch_process_events"] {
                assert_eq!(code(&thief.call(tool, &job)), Some("E_JOB_NOT_FOUND"), "{tool}");
                let refused = other.stateless_call(Some("handle"), tool, &job);
                assert_eq!(code(&refused), Some("E_JOB_NOT_FOUND"), "{tool}");
                let path = format!("/api/workspaces/{workspace}/tools/{tool}");
                other.post(&path, &json!({ "shell_id": id })).is(404, "E_JOB_NOT_FOUND");
            }
        }
    }
    assert_eq!(mark.alive().len(), 3, "all of them still run");
    // The owner finds each of them by its id, in every revision and over REST.
    let output = format!("/api/workspaces/{workspace}/tools/BashOutput");
    for id in &ids {
        assert_eq!(code(&agent.call("BashOutput", &at(json!({ "shell_id": id })))), None);
        one.post(&output, &json!({ "shell_id": id })).expect(200);
    }
    for id in &ids {
        let job = at(json!({ "shell_id": id }));
        assert_eq!(code(&one.stateless_call(None, "KillShell", &job)), None);
    }
    crate::eventually("they ended", || mark.alive().is_empty());
    // Ids of jobs are in no event.
    let path = service.test_env.path("data/events.jsonl");
    let events = || std::fs::read_to_string(&path).unwrap();
    crate::eventually("the calls are in the log", || events().matches("KillShell").count() >= 3);
    let events = events();
    for id in &ids {
        assert!(!events.contains(id.as_str()), "{events}");
    }
}

/// One token and no handle: each request stands alone, and a hash stands for having read a file.
#[test]
fn requests_without_a_session_pass_the_hash_of_a_file_on() {
    let service = Service::start();
    let client = service.client();
    client.write("a.txt", "old\n").expect(200);
    let read = json!({ "file_path": "a.txt" });
    let edit = |old: &str, new: &str, hash: Option<&str>| {
        let mut edit = json!({ "file_path": "a.txt", "old_string": old, "new_string": new });
        if let Some(hash) = hash {
            edit["expected_hash"] = json!(hash);
        }
        edit
    };
    let first = client.stateless_call(None, "Read", &read);
    let hash = first["structuredContent"]["hash"].as_str().unwrap().to_owned();
    assert_eq!(first["content"][0]["text"], format!("1\told\n[hash {hash}]\n"));
    let refused = client.stateless_call(None, "Edit", &edit("old", "new", None));
    assert_eq!(code(&refused), Some("E_NOT_READ"), "{refused}");
    let edited = client.stateless_call(None, "Edit", &edit("old", "new", Some(&hash)));
    assert_eq!(edited["isError"], false, "{edited}");
    let stale = client.stateless_call(None, "Edit", &edit("new", "newer", Some(&hash)));
    assert_eq!(code(&stale), Some("E_CHANGED_SINCE_READ"), "{stale}");

    // The same over REST, where no request ever had a session.
    let path = |tool: &str| client.at(&format!("/tools/{tool}"));
    client.post(&path("Edit"), &edit("new", "newer", None)).is(409, "E_NOT_READ");
    let again = client.post(&path("Read"), &read).expect(200);
    let hash = again["facts"]["hash"].as_str().unwrap().to_owned();
    assert_eq!(edited["structuredContent"]["hash"], json!(hash));
    client.post(&path("Edit"), &edit("new", "newer", Some(&hash))).expect(200);
    client.post(&path("Edit"), &edit("newer", "x", Some(&hash))).is(409, "E_CHANGED_SINCE_READ");
    assert_eq!(client.read("a.txt").expect(200)["content"], "newer\n");
}

#[test]
fn messages_take_their_share_of_the_room_for_bodies() {
    let service = Service::start();
    let client = service.client();
    // Those who say that much comes, and send none of it, hold all the room there is.
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: 33554432\r\n\r\n",
        service.address,
        client.token.as_ref().unwrap(),
    );
    let slow = || {
        let mut line = TcpStream::connect(service.address).unwrap();
        line.write_all(head.as_bytes()).unwrap();
        line
    };
    let lines: Vec<_> = (0..8).map(|_| slow()).collect();
    let large = json!({ "jsonrpc": "2.0", "method": "x", "params": { "x": "x".repeat(1 << 20) } });
    crate::eventually("there is no room", || {
        let reply = client.mcp(&[], &large);
        (reply.status, reply.header("retry-after").is_some()) == (429, true)
    });
    drop(lines);
    crate::eventually("there is room again", || client.mcp(&[], &large).status != 429);
}
