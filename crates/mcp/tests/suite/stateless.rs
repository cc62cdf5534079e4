//! The revision 2026-07-28.

use carrel_mcp::HandlerScope;
use serde_json::json;

use crate::{
    http::{result_text, stateless_call, stateless_headers},
    test_server::{TestServer, until},
};

#[tokio::test]
async fn a_request_needs_no_session_and_gets_plain_json() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    for id in 1..4 {
        let body = stateless_call(id, "echo", &json!({"text": "hi"}));
        let reply = client.post(&stateless_headers("echo"), &body).await;
        assert_eq!((reply.status, reply.kind()), (200, "application/json"), "{reply:?}");
        assert_eq!(reply.text(), "hi");
        assert!(!reply.headers.contains_key("mcp-session-id"));
    }
    let scopes = server.scopes.lock().expect("not poisoned");
    assert!(scopes.iter().all(|scope| *scope == HandlerScope::Request));
}

#[tokio::test]
async fn progress_comes_before_the_reply_on_a_stream() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let mut body = stateless_call(1, "progress", &json!({"steps": 2}));
    body["params"]["_meta"]["progressToken"] = json!("t");
    client.send("POST", &stateless_headers("progress"), &body.to_string()).await;
    assert_eq!(client.head().await.1["content-type"], "text/event-stream");
    let mut messages = Vec::new();
    while let Some(event) = client.event().await {
        messages.push(event.json());
    }
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(result_text(&messages[2]), "done");
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let body = stateless_call(1, "wait", &json!({"millis": 60_000}));
    client.send("POST", &stateless_headers("wait"), &body.to_string()).await;
    until("the call runs", || server.state.waiting() == 1).await;
    drop(client);
    until("the call is cancelled", || server.state.cancelled() == 1).await;
}

#[tokio::test]
async fn there_is_nothing_to_get_or_delete() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let headers = [("mcp-protocol-version", "2026-07-28")];
    for method in ["GET", "DELETE"] {
        let reply = client.request(method, &headers, "").await;
        assert_eq!((reply.status, reply.headers["allow"].as_str()), (405, "POST"));
    }
}

#[tokio::test]
async fn a_panic_fails_its_own_call_only() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let body = stateless_call(1, "panic", &json!({}));
    let reply = client.post(&stateless_headers("panic"), &body).await;
    assert_eq!(reply.error_code(), Some(-32603));
    let body = stateless_call(2, "echo", &json!({"text": "still here"}));
    assert_eq!(client.post(&stateless_headers("echo"), &body).await.text(), "still here");
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let body = stateless_call(1, "echo", &json!({"text": "hi"}));
    let reply = client.post(&stateless_headers("panic"), &body).await;
    assert_eq!((reply.status, reply.error_code()), (400, Some(-32020)));
    let unversioned = [("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let reply = client.post(&unversioned, &body).await;
    assert_eq!((reply.status, reply.error_code()), (400, Some(-32020)));
}

#[tokio::test]
async fn json_of_the_wrong_shape_is_an_invalid_request() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let headers = [("mcp-protocol-version", "2026-07-28")];
    let reply = client.request("POST", &headers, r#"{"id":5,"method":"tools/list"}"#).await;
    assert_eq!((reply.status, reply.error_code()), (400, Some(-32600)));
    assert_eq!(reply.json()["id"], 5);
}
