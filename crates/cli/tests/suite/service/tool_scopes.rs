//! Every tool with every set of token scopes, over REST and over `/mcp`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use carrel_domain::{TokenScope, TokenScopes};
use carrel_tools::{Definition, Exposure, ToolSelection};
use serde_json::{Value, json};

use super::test_environment::{Client, Service, new_id};

/// The scopes of tools that must never need less, whatever their definitions say.
const SENSITIVE: [(&str, TokenScope); 17] = [
    ("git", TokenScope::Exec),
    ("workspace_git", TokenScope::Exec),
    ("Bash", TokenScope::Exec),
    ("BashOutput", TokenScope::Exec),
    ("KillShell", TokenScope::Exec),
    ("shell_run", TokenScope::Exec),
    ("watch_process", TokenScope::Exec),
    ("workspace_exec", TokenScope::Exec),
    ("run_script", TokenScope::Exec),
    ("run_tests", TokenScope::Exec),
    ("format", TokenScope::Exec),
    ("install", TokenScope::Exec),
    ("Write", TokenScope::Write),
    ("Edit", TokenScope::Write),
    ("ApplyPatch", TokenScope::Write),
    ("Delete", TokenScope::Write),
    ("workspace_write_file", TokenScope::Write),
];

/// Arguments that no tool takes: an allowed call fails at once and changes nothing.
fn wrong_arguments() -> Value {
    json!({ "no_such_argument": 1 })
}

fn tools() -> Vec<&'static Definition> {
    carrel_tools::definitions(ToolSelection::ALL).collect()
}

/// Every set of scopes but the empty one, which no token can have.
fn scope_sets() -> Vec<TokenScopes> {
    let sets = 1..1_u8 << TokenScope::ALL.len();
    let set = |bits: u8| {
        let scopes = TokenScope::ALL.into_iter().enumerate();
        scopes.filter(|(index, _)| bits & (1 << index) != 0).map(|(_, scope)| scope).collect()
    };
    sets.map(set).collect()
}

/// Sends a request on a connection of its own; a process for each of thousands would take minutes.
fn post(client: &Client, path: &str, headers: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(client.address).unwrap();
    let (token, body) = (client.token.as_deref().unwrap(), body.to_string());
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        client.address,
        body.len(),
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{reply}")), reply)
}

/// Calls a tool over REST, and tells whether its scope was refused.
fn is_refused_over_rest(client: &Client, tool: &str) -> bool {
    let path = client.at(&format!("/tools/{tool}"));
    let (status, reply) = post(client, &path, "", &wrong_arguments());
    let refused = reply.contains("\"E_FORBIDDEN\"");
    assert_eq!(refused, status == 403, "{tool}: {reply}");
    assert!(refused || reply.contains("\"E_INVALID_ARGUMENTS\""), "{tool}: {reply}");
    refused
}

/// Calls a tool over MCP, in the revision without sessions, and tells whether its scope was refused.
fn is_refused_over_mcp(client: &Client, tool: &str) -> bool {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": wrong_arguments(), "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let headers = format!(
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    let (status, reply) = post(client, "/mcp", &headers, &body);
    assert_eq!(status, 200, "{tool}: {reply}");
    let refused = reply.contains("E_FORBIDDEN");
    assert!(!refused || reply.contains("\"isError\":true"), "{tool}: {reply}");
    refused
}

#[test]
fn a_tool_is_called_with_its_scope_or_admin_and_with_no_other() {
    let service = Service::start();
    let tools = tools();
    for (name, scope) in SENSITIVE {
        let tool = tools.iter().find(|tool| tool.about.name == name).expect(name);
        assert_eq!(tool.about.rules.token_scope, scope, "{name}");
    }
    let workspace = new_id();
    service.client_for(&workspace, "read").get(&format!("/api/workspaces/{workspace}")).expect(200);
    for scopes in scope_sets() {
        let client = service.client_for(&workspace, &scopes.to_string());
        for tool in tools.iter().filter(|tool| tool.about.rules.exposure == Exposure::Everywhere) {
            let (name, allowed) = (tool.about.name, scopes.allow(tool.about.rules.token_scope));
            assert_eq!(is_refused_over_rest(&client, name), !allowed, "REST {name} with {scopes}");
            assert_eq!(is_refused_over_mcp(&client, name), !allowed, "MCP {name} with {scopes}");
        }
    }
}

#[test]
fn tools_for_the_operator_do_not_exist_in_the_service() {
    let service = Service::start();
    let client = service.client_for(&new_id(), "read,write,exec,net,admin");
    let hidden =
        tools().into_iter().filter(|tool| tool.about.rules.exposure != Exposure::Everywhere);
    let hidden: Vec<_> = hidden.map(|tool| tool.about.name).collect();
    assert_eq!(hidden, ["secret", "secrets_available"]);
    for name in hidden {
        client.post(&client.at(&format!("/tools/{name}")), &json!({})).is(404, "E_UNKNOWN_TOOL");
        // An unknown tool is an error of the protocol, so there is no result.
        let called = client.agent().call(name, &json!({}));
        assert!(called.is_null(), "{called}");
    }
}

#[test]
fn a_token_without_exec_cannot_use_the_credentials_of_git() {
    let service = Service::start();
    let client = service.client_for(&new_id(), "read,write");
    client.get(&client.at("")).expect(200);
    let clone = json!({ "operation": "clone", "args": ["https://github.com/a/b"] });
    let push = json!({ "operation": "push" });
    for arguments in [&clone, &push] {
        client.post(&client.at("/tools/git"), arguments).is(403, "E_FORBIDDEN");
        client.post(&client.at("/tools/workspace_git"), arguments).is(403, "E_FORBIDDEN");
        client.post(&client.at("/git"), arguments).is(403, "E_FORBIDDEN");
        for tool in ["git", "workspace_git"] {
            let called = client.agent().call(tool, arguments);
            assert_eq!(called["isError"], true, "{called}");
            assert_eq!(called["structuredContent"]["error"]["code"], "E_FORBIDDEN", "{called}");
        }
    }
    // Reading a repository takes no more than reading.
    let inspected =
        client.post(&client.at("/tools/git_inspect"), &json!({ "operation": "status" }));
    inspected.is(403, "E_GIT_REFUSED");
}

#[test]
fn a_token_without_exec_starts_no_language_server() {
    let service = Service::start();
    let workspace = new_id();
    let writes = service.client_for(&workspace, "write");
    writes.write("shop.py", "def price(n):\n    return n\n\n\nprice(2)\n").expect(200);
    let place = json!({ "file_path": "shop.py", "line": 5, "col": 1 });
    for (scopes, is_denied) in [("read", true), ("read,write", true), ("read,exec", false)] {
        let client = service.client_for(&workspace, scopes);
        let reply = client.post(&client.at("/tools/find_definition"), &place).expect(200);
        let reason = reply["facts"]["unanswered"].as_str().unwrap_or_default();
        assert_eq!(reason.contains("without the scope `exec`"), is_denied, "{scopes}: {reply}");
        assert_eq!(reply["facts"]["total"], 1, "{scopes}: {reply}");
    }
}
