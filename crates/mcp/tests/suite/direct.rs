//! The short way of plain requests against the way through the SDK's service.

use std::{net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use axum::http::Extensions;
use carrel_domain::{Code, Failure};
use carrel_mcp::{
    Authentication, CallPath, FactsMode, HttpOptions, ToolProvider, ToolServer, serve_http,
};
use carrel_tools::{CallOptions, Definition, Session, ToolContent, ToolResponse, WorkspaceCount};
use pretty_assertions::assert_eq;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock},
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    http::{HttpReply, TestClient, call, initialize, stateless_call, stateless_headers},
    test_server::{TestServer, until},
};

const META: &str = "io.modelcontextprotocol";

/// Serves one handler on a free port.
async fn serve<H: ServerHandler>(
    path: CallPath,
    make: impl Fn() -> H + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let mut options = HttpOptions::new(address, Authentication::Unauthenticated).expect("loopback");
    options.call_path = path;
    tokio::spawn(serve_http(listener, options, move |_| make(), CancellationToken::new()));
    address
}

/// Names the task that serves a call.
struct TaskReporter;

impl ServerHandler for TaskReporter {
    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let task = tokio::task::try_id().map(|id| id.to_string()).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(task)]).into())
    }
}

#[tokio::test]
async fn a_plain_call_runs_in_the_task_of_its_connection() {
    let address = serve(CallPath::Direct, || TaskReporter).await;
    let mut client = TestClient::connect(address).await;
    let session = client.initialize("2025-11-25").await;
    let mut tasks = Vec::new();
    for id in 1..3 {
        let body = stateless_call(id, "any", &json!({}));
        tasks.push(client.post(&stateless_headers("any"), &body).await.text());
        let in_session = [("mcp-session-id", session.as_str())];
        tasks.push(client.post(&in_session, &call(id, "any", &json!({}))).await.text());
    }
    tasks.dedup();
    assert_eq!(tasks.len(), 1, "all four calls are served by one task: {tasks:?}");
}

/// Headers and body of a request.
type Sent = (Vec<(&'static str, String)>, String);

fn sent(headers: &[(&'static str, &str)], body: impl std::fmt::Display) -> Sent {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
    (headers.collect(), format!("{body}"))
}

/// Returns a stateless call whose metadata was changed.
fn with_meta(tool: &'static str, name: &str, value: Value) -> Sent {
    let mut body = stateless_call(1, tool, &json!({"text": "hi"}));
    body["params"]["_meta"][name] = value;
    sent(&stateless_headers(tool), body)
}

/// Requests of the stateless revision, good and hostile.
fn stateless_requests() -> Vec<Sent> {
    let good = |tool: &'static str, arguments: Value| {
        sent(&stateless_headers(tool), stateless_call(1, tool, &arguments))
    };
    let echo = stateless_call(1, "echo", &json!({"text": "hi"}));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut body = echo.clone();
        change(&mut body);
        sent(&stateless_headers("echo"), body)
    };
    let list = |params: Value| {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
        let mut body = json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"});
        body["params"] = params;
        sent(&headers, body)
    };
    let meta = echo["params"]["_meta"].clone();
    let text = echo.to_string();
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    vec![
        good("echo", json!({"text": "hi"})),
        good("echo", json!({"text": "a \"quoted\" \\ line\n\u{1F600}\u{0}"})),
        good("echo", json!({"text": "hi", "more": [1, 2.5, -0.0, 1e300, null, {"deep": {}}]})),
        good("bytes", json!({"count": 200_000})),
        good("test_image_content", json!({})),
        good("test_error_handling", json!({})),
        good("test_multiple_content_types", json!({})),
        good("test_missing_capability", json!({})),
        good("test_input_required_result_elicitation", json!({})),
        good("greet", json!({"name": "Ann"})),
        good("slow_compute", json!({"seconds": 0})),
        good("panic", json!({})),
        good("no such tool", json!({})),
        good("", json!({})),
        list(json!({"_meta": meta})),
        list(json!({"_meta": meta, "cursor": "x"})),
        list(json!({"_meta": meta, "cursor": 7})),
        list(json!({})),
        list(Value::Null),
        changed(&|body| body["id"] = json!("text")),
        changed(&|body| body["id"] = json!(1.0)),
        changed(&|body| body["id"] = json!(1.5)),
        changed(&|body| body["id"] = json!(u64::MAX)),
        changed(&|body| body["id"] = Value::Null),
        changed(&|body| drop(body.as_object_mut().expect("an object").remove("id"))),
        changed(&|body| body["jsonrpc"] = json!("1.0")),
        changed(&|body| drop(body.as_object_mut().expect("an object").remove("jsonrpc"))),
        changed(&|body| body["extra"] = json!(1)),
        changed(&|body| body["params"]["extra"] = json!(1)),
        changed(&|body| body["params"]["task"] = json!({"ttl": 1})),
        changed(&|body| body["params"]["arguments"] = Value::Null),
        changed(&|body| body["params"]["arguments"] = json!([1])),
        changed(&|body| body["params"]["arguments"] = json!("{\"text\":\"hi\"}")),
        changed(&|body| body["params"]["name"] = json!(7)),
        changed(&|body| body["params"]["name"] = json!("count")),
        changed(&|body| body["params"] = json!([])),
        changed(&|body| body["method"] = json!("tools/unknown")),
        changed(&|body| body["method"] = json!("tools/list")),
        changed(&|body| body["params"]["_meta"] = json!(7)),
        with_meta("echo", "io.modelcontextprotocol/protocolVersion", json!("2025-11-25")),
        with_meta("echo", "io.modelcontextprotocol/protocolVersion", json!("1999-01-01")),
        with_meta("echo", "io.modelcontextprotocol/protocolVersion", json!(7)),
        with_meta("echo", "io.modelcontextprotocol/clientCapabilities", Value::Null),
        with_meta("echo", "io.modelcontextprotocol/clientCapabilities", json!({"roots": {}})),
        with_meta(
            "echo",
            "io.modelcontextprotocol/clientCapabilities",
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        ),
        with_meta("echo", "io.modelcontextprotocol/clientInfo", json!("codex")),
        with_meta("echo", "dev.carrel/session", json!("handle")),
        sent(&[version], &text),
        sent(&[version, method], &text),
        sent(&[version, method, ("mcp-name", "count")], &text),
        sent(&[version, method, ("mcp-name", "=?base64?ZWNobw==?=")], &text),
        sent(&[version, ("mcp-method", "tools/list"), ("mcp-name", "echo")], &text),
        sent(&[("mcp-protocol-version", "2025-11-25"), method, ("mcp-name", "echo")], &text),
        sent(&[("mcp-protocol-version", "9999-01-01"), method, ("mcp-name", "echo")], &text),
        sent(&[method, ("mcp-name", "echo")], &text),
        sent(&stateless_headers("echo"), text.replacen("\"id\":1", "\"id\":1,\"id\":2", 1)),
        sent(&stateless_headers("echo"), text.replacen("tools/call", "tools\\/call", 1)),
        sent(&stateless_headers("echo"), format!(" {text}\n")),
        sent(&stateless_headers("echo"), format!("{text}{text}")),
        sent(&stateless_headers("echo"), &text[..text.len() - 1]),
        sent(&stateless_headers("echo"), format!("[{text}]")),
        sent(&stateless_headers("echo"), text.replace("\"hi\"", &"[".repeat(200))),
        sent(&stateless_headers("echo"), text.replace("\"hi\"", "\"a\",\"text\":\"b\"")),
        sent(&stateless_headers("echo"), text.replace("\"hi\"", "1e400")),
        sent(&stateless_headers("echo"), text.replace("\"hi\"", "\"\\ud800\"")),
        sent(
            &[version, method, ("mcp-name", "test_header_parameter")],
            stateless_call(1, "test_header_parameter", &json!({"region": "eu"})),
        ),
        sent(
            &[version, method, ("mcp-name", "test_header_parameter"), ("mcp-param-region", "us")],
            stateless_call(1, "test_header_parameter", &json!({"region": "eu"})),
        ),
    ]
}

/// Requests in a session, good and hostile.
fn session_requests() -> Vec<Sent> {
    let version = ("mcp-protocol-version", "2025-11-25");
    let good = |tool: &str, arguments: Value| sent(&[version], call(1, tool, &arguments));
    let echo = call(1, "echo", &json!({"text": "hi"}));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut body = echo.clone();
        change(&mut body);
        sent(&[version], body)
    };
    vec![
        good("echo", json!({"text": "hi \u{1F600}"})),
        good("bytes", json!({"count": 200_000})),
        good("count", json!({})),
        good("count", json!({})),
        good("test_input_required_result_elicitation", json!({})),
        good("greet", json!({"name": "Ann"})),
        good("test_error_handling", json!({})),
        good("panic", json!({})),
        good("no such tool", json!({})),
        sent(&[version], json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})),
        sent(&[version], json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})),
        sent(&[version], json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": []})),
        sent(&[("mcp-protocol-version", "1999-01-01")], &echo),
        sent(&[version, ("mcp-session-id", "another")], &echo),
        changed(&|body| body["id"] = json!("text")),
        changed(&|body| body["id"] = json!(1.5)),
        changed(&|body| body["id"] = Value::Null),
        changed(&|body| body["jsonrpc"] = json!("1.0")),
        changed(&|body| body["extra"] = json!(1)),
        changed(&|body| body["params"]["task"] = json!({"ttl": 1})),
        changed(&|body| body["params"]["_meta"] = json!({"note": 1})),
        changed(&|body| body["params"]["_meta"] = json!(7)),
        changed(&|body| body["params"]["arguments"] = json!([1])),
        changed(&|body| body["params"]["name"] = Value::Null),
        changed(&|body| body["params"] = Value::Null),
        sent(&[version], format!("[{echo}]")),
        sent(&[version], "{"),
    ]
}

/// Sends a request and returns the reply without its date.
async fn reply(
    client: &mut TestClient,
    session: Option<&str>,
    (headers, body): &Sent,
) -> HttpReply {
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if let Some(session) = session
        && headers.iter().all(|(name, _)| *name != "mcp-session-id")
    {
        headers.push(("mcp-session-id", session));
    }
    let mut reply = client.request("POST", &headers, body).await;
    reply.headers.remove("date");
    reply
}

async fn compare(paths: [SocketAddr; 2], version: Option<&str>, requests: &[Sent]) {
    let [mut direct, mut service] =
        [TestClient::connect(paths[0]).await, TestClient::connect(paths[1]).await];
    let mut sessions = [None, None];
    if let Some(version) = version {
        sessions =
            [Some(direct.initialize(version).await), Some(service.initialize(version).await)];
    }
    for request in requests {
        let one = reply(&mut direct, sessions[0].as_deref(), request).await;
        let other = reply(&mut service, sessions[1].as_deref(), request).await;
        assert_eq!(
            (one.status, &one.headers, &one.body),
            (other.status, &other.headers, &other.body),
            "{request:?}"
        );
    }
}

#[tokio::test]
async fn both_ways_answer_every_request_with_the_same_bytes() {
    let direct = TestServer::start().await;
    let service = TestServer::with(|options| options.call_path = CallPath::Service).await;
    let paths = [direct.address, service.address];
    compare(paths, None, &stateless_requests()).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        compare(paths, Some(version), &session_requests()).await;
    }
}

/// Replies with all that a tool learns about its caller.
#[derive(Debug)]
struct Mirror;

#[async_trait]
impl ToolProvider for Mirror {
    fn tools(&self, _: &Extensions) -> Vec<Definition> {
        Vec::new()
    }

    fn workspace_count(&self, _: &Extensions) -> WorkspaceCount {
        WorkspaceCount::One
    }

    async fn call(
        &self,
        _: &Extensions,
        session: &Arc<Session>,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        let is_error = name != "mirror";
        let structured = match name {
            "mirror" => json!({"session": session.id(), "arguments": arguments}),
            "refused" => json!(Failure::new(Code::SandboxViolation, "refused").envelope()),
            _ => json!(Failure::new(Code::UnknownTool, "unknown tool").envelope()),
        };
        let text = format!("{name} {:?} {}", options.interface, options.progress.is_some());
        ToolResponse { content: vec![ToolContent::Text(text)], structured, data: None, is_error }
    }

    fn instructions(&self) -> String {
        String::new()
    }
}

#[tokio::test]
async fn both_ways_give_tools_the_same_session_client_and_arguments() {
    let serve_tools = async |path| {
        let tools = ToolServer::new(Arc::new(Mirror), FactsMode::Auto);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mut options =
            HttpOptions::new(address, Authentication::Unauthenticated).expect("loopback");
        options.call_path = path;
        let make = move |scope| tools.for_http(&scope);
        tokio::spawn(serve_http(listener, options, make, CancellationToken::new()));
        address
    };
    let paths = [serve_tools(CallPath::Direct).await, serve_tools(CallPath::Service).await];
    let arguments = json!({"n": 5.0, "s": "5", "list": "[1]", "deep": {"a": [null, true]}});
    let mut requests = Vec::new();
    for tool in ["mirror", "refused", "missing"] {
        for client in ["test", "codex-mcp-client", "Claude-Code"] {
            // Without a handle each request is a session of its own, and both servers count them.
            for handle in [Some("a"), None, Some("b")] {
                let mut body = stateless_call(1, tool, &arguments);
                let meta = &mut body["params"]["_meta"];
                meta[format!("{META}/clientInfo")]["name"] = json!(client);
                if let Some(handle) = handle {
                    meta["dev.carrel/session"] = json!(handle);
                }
                requests.push(sent(&stateless_headers(tool), body));
            }
        }
    }
    compare(paths, None, &requests).await;
}

#[tokio::test]
async fn a_client_that_declares_roots_is_served_in_the_order_of_its_messages() {
    let address = serve(CallPath::Direct, || TaskReporter).await;
    let mut client = TestClient::connect(address).await;
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({"roots": {"listChanged": true}});
    let session = client.post(&[], &hello).await.headers["mcp-session-id"].clone();
    let headers = [("mcp-session-id", session.as_str())];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(client.post(&headers, &initialized).await.status, 202);
    let one = client.post(&headers, &call(1, "any", &json!({}))).await.text();
    let other = client.post(&headers, &call(2, "any", &json!({}))).await.text();
    assert_ne!(one, other, "each call has a task of the SDK's");
}

#[tokio::test]
async fn a_running_call_keeps_its_id_until_it_is_cancelled() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let wait = call(7, "wait", &json!({"millis": 60_000}));
    client.send("POST", &headers, &wait.to_string()).await;
    until("the call runs", || server.state.waiting() == 1).await;
    let mut other = server.connect().await;
    let again = other.post(&headers, &call(7, "echo", &json!({"text": "x"}))).await;
    assert_eq!((again.status, again.error_code()), (400, Some(-32600)));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 7}});
    assert_eq!(other.post(&headers, &cancel).await.status, 202);
    until("the call is cancelled", || server.state.cancelled() == 1).await;
    let free = other.post(&headers, &call(7, "echo", &json!({"text": "x"}))).await;
    assert_eq!(free.text(), "x");
}
