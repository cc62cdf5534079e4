//! Event streams: progress, resumption, cancellation.

use serde_json::{Value, json};

use crate::{
    http::{TestClient, call, call_with_progress, result_text},
    test_server::{TestServer, until},
};

/// Reads a stream to its end and returns the messages.
async fn messages(client: &mut TestClient) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(event) = client.event().await {
        if !event.data.is_empty() {
            messages.push(event.json());
        }
    }
    messages
}

#[tokio::test]
async fn a_call_that_reports_progress_is_answered_with_a_stream() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let body = call_with_progress(1, "progress", &json!({"steps": 3}));
    client.send("POST", &headers, &body.to_string()).await;
    let (status, headers) = client.head().await;
    assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
    let messages = messages(&mut client).await;
    let methods: Vec<_> = messages.iter().map(|message| message["method"].as_str()).collect();
    let progress = Some("notifications/progress");
    assert_eq!(methods, [progress, progress, progress, None]);
    assert_eq!(messages[0]["params"]["progressToken"], "token-1");
    assert_eq!(result_text(&messages[3]), "done");
}

#[tokio::test]
async fn a_stream_can_be_resumed_after_any_event() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let body = call_with_progress(1, "progress", &json!({"steps": 3}));
    client.send("POST", &headers, &body.to_string()).await;
    client.head().await;
    let mut ids = Vec::new();
    while let Some(event) = client.event().await {
        ids.push(event.id);
    }
    assert_eq!(ids.len(), 5, "an empty event, three of progress, the reply");
    for (seen, id) in ids.iter().enumerate() {
        let headers = [("mcp-session-id", session.as_str()), ("last-event-id", id)];
        let mut again = server.connect().await;
        again.send("GET", &headers, "").await;
        assert_eq!(again.head().await.0, 200);
        assert_eq!(messages(&mut again).await.len(), 4 - seen, "after {id}");
    }
}

#[tokio::test]
async fn a_call_goes_on_when_its_client_is_cut_off_and_the_reply_is_retained() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let body = call(1, "wait", &json!({"millis": 1000}));
    client.send("POST", &headers, &body.to_string()).await;
    // The call takes longer than a plain JSON reply may, so a stream begins with an empty event.
    assert_eq!(client.head().await.1["content-type"], "text/event-stream");
    let first = client.event().await.expect("an empty event");
    assert_eq!(first.data, "");
    drop(client);
    let headers = [("mcp-session-id", session.as_str()), ("last-event-id", first.id.as_str())];
    let mut again = server.connect().await;
    again.send("GET", &headers, "").await;
    again.head().await;
    let messages = messages(&mut again).await;
    assert_eq!(messages.iter().map(result_text).collect::<Vec<_>>(), ["waited"]);
    assert_eq!(server.state.cancelled(), 0);
}

#[tokio::test]
async fn losing_the_connection_before_a_stream_begins_does_not_cancel_either() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    client.send("POST", &headers, &call(1, "wait", &json!({"millis": 300})).to_string()).await;
    until("the call runs", || server.state.waiting() == 1).await;
    drop(client);
    until("the call ends", || server.state.waiting() == 0).await;
    assert_eq!(server.state.cancelled(), 0);
}

#[tokio::test]
async fn a_cancelled_call_ends_without_a_reply() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    client.send("POST", &headers, &call(7, "wait", &json!({"millis": 60_000})).to_string()).await;
    until("the call runs", || server.state.waiting() == 1).await;
    let mut other = server.connect().await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}
    });
    assert_eq!(other.post(&headers, &cancel).await.status, 202);
    until("the token is cancelled", || server.state.cancelled() == 1).await;
    let reply = client.reply().await;
    assert_eq!((reply.kind(), reply.body.as_str()), ("text/event-stream", ""));
    // The session and the identifier are free again.
    assert_eq!(other.post(&headers, &call(7, "count", &json!({}))).await.text(), "1");
}

#[tokio::test]
async fn messages_that_belong_to_no_call_arrive_on_the_standalone_stream() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let reply = client.post(&headers, &call(1, "log", &json!({}))).await;
    assert_eq!(reply.text(), "logged");
    // Messages without a reader are retained for the first one.
    let mut listener = server.connect().await;
    listener.send("GET", &headers, "").await;
    listener.head().await;
    assert_eq!(listener.event().await.expect("an empty event").data, "");
    for _ in 0..3 {
        let event = listener.event().await.expect("a message");
        assert_eq!(event.json()["method"], "notifications/message");
    }
}

#[tokio::test]
async fn a_second_listener_takes_over_without_ending_the_first() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut listeners = [server.connect().await, server.connect().await];
    for listener in &mut listeners {
        listener.send("GET", &headers, "").await;
        listener.head().await;
        listener.event().await.expect("an empty event");
    }
    client.post(&headers, &call(1, "log", &json!({}))).await;
    let event = listeners[1].event().await.expect("a message");
    assert_eq!(event.json()["method"], "notifications/message");
    server.cancel.cancel();
    assert_eq!(listeners[0].event().await, None);
}

#[tokio::test]
async fn clients_of_older_revisions_get_no_empty_event() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let session = client.initialize("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let body = call_with_progress(1, "progress", &json!({"steps": 1}));
    client.send("POST", &headers, &body.to_string()).await;
    client.head().await;
    assert_ne!(client.event().await.expect("progress").data, "");
}

#[tokio::test]
async fn a_stream_that_is_not_retained_cannot_be_resumed() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    for id in ["99-1", "garbage", "-", "0"] {
        let headers = [("mcp-session-id", session.as_str()), ("last-event-id", id)];
        assert_eq!(client.request("GET", &headers, "").await.status, 400, "{id}");
    }
}
