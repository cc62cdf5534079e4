//! The revisions with a handshake.

use std::{sync::atomic::Ordering, time::Duration};

use carrel_mcp::{HandlerScope, JSON_REPLY_TIMEOUT};
use serde_json::json;

use crate::{
    http::{call, initialize},
    test_server::{TestServer, until},
};

#[tokio::test]
async fn every_revision_with_a_handshake_is_spoken() {
    let server = TestServer::start().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = server.connect().await;
        let session = client.initialize(version).await;
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let reply = client.post(&headers, &call(1, "echo", &json!({"text": version}))).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, version));
    }
}

#[tokio::test]
async fn a_newer_revision_in_a_handshake_is_answered_with_the_newest_that_has_one() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let reply = client.post(&[], &initialize("2026-07-28")).await;
    assert_eq!(reply.json()["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn a_short_call_is_answered_in_plain_json_on_the_same_connection() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    for id in 1..4 {
        let headers = [("mcp-session-id", session.as_str())];
        let reply = client.post(&headers, &call(id, "echo", &json!({"text": "hi"}))).await;
        assert_eq!((reply.kind(), reply.text().as_str()), ("application/json", "hi"));
        assert_eq!(reply.json()["id"], id);
    }
}

#[tokio::test]
async fn each_session_has_a_handler_of_its_own() {
    let server = TestServer::start().await;
    let (mut first, one) = server.session().await;
    let (mut second, two) = server.session().await;
    let count = call(1, "count", &json!({}));
    assert_eq!(first.post(&[("mcp-session-id", &one)], &count).await.text(), "1");
    assert_eq!(first.post(&[("mcp-session-id", &one)], &count).await.text(), "2");
    assert_eq!(second.post(&[("mcp-session-id", &two)], &count).await.text(), "1");
    let scopes = server.scopes.lock().expect("not poisoned").clone();
    let names: Vec<_> = scopes
        .iter()
        .map(|scope| match scope {
            HandlerScope::Session { id, .. } => id.as_str(),
            HandlerScope::Request => "",
        })
        .collect();
    assert_eq!(names, [one, two]);
}

#[tokio::test]
async fn a_session_that_was_deleted_or_never_was_is_not_found() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    assert_eq!(client.request("DELETE", &headers, "").await.status, 204);
    for session in [session.as_str(), "never-was"] {
        let headers = [("mcp-session-id", session)];
        let body = call(1, "count", &json!({}));
        assert_eq!(client.post(&headers, &body).await.status, 404);
        assert_eq!(client.request("GET", &headers, "").await.status, 404);
        assert_eq!(client.request("DELETE", &headers, "").await.status, 404);
    }
}

#[tokio::test]
async fn deleting_a_session_cancels_its_calls() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    client.send("POST", &headers, &call(1, "wait", &json!({"millis": 60_000})).to_string()).await;
    until("the call runs", || server.state.waiting() == 1).await;
    let mut other = server.connect().await;
    assert_eq!(other.request("DELETE", &headers, "").await.status, 204);
    until("the call is cancelled", || server.state.cancelled() == 1).await;
}

#[tokio::test]
async fn a_message_without_a_session_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    assert_eq!(client.post(&[], &call(1, "count", &json!({}))).await.status, 400);
    assert_eq!(client.request("GET", &[], "").await.status, 400);
    assert_eq!(client.request("DELETE", &[], "").await.status, 400);
}

#[tokio::test]
async fn an_unknown_revision_in_the_header_is_refused() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "1999-01-01")];
    assert_eq!(client.post(&headers, &call(1, "count", &json!({}))).await.status, 400);
    assert_eq!(client.request("GET", &headers, "").await.status, 400);
    assert_eq!(client.request("DELETE", &headers, "").await.status, 400);
}

#[tokio::test]
async fn sessions_above_the_limit_are_told_to_try_again() {
    let server = TestServer::with(|options| options.max_sessions = 2).await;
    let (mut first, session) = server.session().await;
    let _second = server.session().await;
    let mut third = server.connect().await;
    let reply = third.post(&[], &initialize("2025-11-25")).await;
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (503, "1"));
    first.request("DELETE", &[("mcp-session-id", &session)], "").await;
    assert_eq!(third.post(&[], &initialize("2025-11-25")).await.status, 200);
}

#[tokio::test]
async fn an_idle_session_expires_but_one_with_a_running_call_does_not() {
    let server =
        TestServer::with(|options| options.session_idle = Duration::from_millis(100)).await;
    let (mut idle, forgotten) = server.session().await;
    let (mut busy, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let wait = call(1, "wait", &json!({"millis": 400}));
    assert_eq!(busy.post(&headers, &wait).await.text(), "waited");
    let headers = [("mcp-session-id", forgotten.as_str())];
    assert_eq!(idle.post(&headers, &call(1, "count", &json!({}))).await.status, 404);
}

#[tokio::test]
async fn a_handshake_that_fails_leaves_no_session() {
    let server = TestServer::with(|options| options.max_sessions = 1).await;
    let mut client = server.connect().await;
    let wrong = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": 7
    }});
    let reply = client.post(&[], &wrong).await;
    assert_eq!((reply.status, reply.error_code()), (400, Some(-32602)));
    client.initialize("2025-11-25").await;
}

#[tokio::test]
async fn a_slow_handshake_still_makes_a_session() {
    // Longer than a call may take before its reply becomes a stream.
    let delay = JSON_REPLY_TIMEOUT.as_millis() + 200;
    let server = TestServer::start().await;
    server.state.handshake_delay_millis.store(delay.try_into().expect("small"), Ordering::SeqCst);
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    assert_eq!(client.post(&headers, &call(1, "count", &json!({}))).await.text(), "1");
}

#[tokio::test]
async fn an_identifier_in_use_is_refused() {
    let server = TestServer::start().await;
    let (mut first, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    first.send("POST", &headers, &call(1, "wait", &json!({"millis": 300})).to_string()).await;
    until("the call runs", || server.state.waiting() == 1).await;
    let mut second = server.connect().await;
    let reply = second.post(&headers, &call(1, "count", &json!({}))).await;
    assert_eq!((reply.status, reply.error_code()), (400, Some(-32600)));
    assert_eq!(first.reply().await.text(), "waited");
}

#[tokio::test]
async fn a_panic_fails_its_own_call_only() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let reply = client.post(&headers, &call(1, "panic", &json!({}))).await;
    assert_eq!((reply.status, reply.error_code()), (200, Some(-32603)));
    assert!(!reply.body.contains("asked to panic"), "the reason is for the log: {reply:?}");
    let reply = client.post(&headers, &call(2, "echo", &json!({"text": "still here"}))).await;
    assert_eq!(reply.text(), "still here");
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_invalid_parameters() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let wrong = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"tool": 1}});
    assert_eq!(client.post(&headers, &wrong).await.error_code(), Some(-32602));
    let unknown = json!({"jsonrpc": "2.0", "id": 2, "method": "no/such/method"});
    assert_eq!(client.post(&headers, &unknown).await.error_code(), Some(-32601));
}
