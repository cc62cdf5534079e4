//! Clients that do what they should not.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    http::{call, initialize, stateless_call, stateless_headers},
    test_server::{TestServer, until},
};

/// A call of another client works, so the server is alive.
async fn assert_alive(server: &TestServer) {
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let reply = client.post(&headers, &call(1, "echo", &json!({"text": "alive"}))).await;
    assert_eq!(reply.text(), "alive");
}

#[tokio::test]
async fn half_a_request_is_dropped_after_a_while() {
    let short = Duration::from_millis(200);
    let server = TestServer::with(|options| {
        options.connections.header_read_timeout = short;
        options.body_read_timeout = short;
    })
    .await;
    let mut nothing = server.connect().await;
    let mut half_head = server.connect().await;
    half_head.raw(b"POST /mcp HTTP/1.1\r\nhost: local").await;
    let mut half_body = server.connect().await;
    let host = server.address;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: 100\r\n\r\n{{\"js"
    );
    half_body.raw(head.as_bytes()).await;
    assert_eq!(half_body.reply().await.status, 408);
    assert!(nothing.closed().await);
    assert!(half_head.closed().await);
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_slow_drip_of_headers_does_not_keep_others_waiting() {
    let short = Duration::from_millis(500);
    let server = TestServer::with(|options| {
        options.connections.header_read_timeout = short;
        options.body_read_timeout = short;
    })
    .await;
    let mut drips = Vec::new();
    for _ in 0..50 {
        let mut client = server.connect().await;
        client.raw(b"POST /mcp HTTP/1.1\r\n").await;
        drips.push(client);
    }
    assert_alive(&server).await;
    for mut drip in drips {
        assert!(drip.closed().await);
    }
}

#[tokio::test]
async fn garbage_is_answered_with_the_reason() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let session = ("mcp-session-id", session.as_str());
    let cases = [
        ("", -32700),
        ("garbage", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("[]", -32600),
        ("7", -32600),
        ("null", -32600),
        ("{}", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
    ];
    for (body, code) in cases {
        let reply = client.request("POST", &[session], body).await;
        assert_eq!((reply.status, reply.error_code()), (400, Some(code)), "{body}: {reply:?}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(client.request("POST", &[session], &deep).await.status, 400);
    assert_alive(&server).await;
}

#[tokio::test]
async fn an_unknown_notification_is_ignored() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/from/the/future"});
    let reply = client.post(&[("mcp-session-id", &session)], &notification).await;
    assert_eq!(reply.status, 202);
}

#[tokio::test]
async fn wrong_media_types_are_refused() {
    let server = TestServer::start().await;
    for kind in ["", "text/plain", "application/jsonp", "application/x-www-form-urlencoded"] {
        let mut client = server.connect().await;
        let reply = client.post(&[("content-type", kind)], &initialize("2025-11-25")).await;
        assert_eq!(reply.status, 415, "{kind}");
    }
    for accept in ["", "application/json", "text/event-stream", "text/html"] {
        let mut client = server.connect().await;
        let reply = client.post(&[("accept", accept)], &initialize("2025-11-25")).await;
        assert_eq!(reply.status, 406, "{accept}");
    }
    for accept in ["*/*", "text/event-stream;q=1,APPLICATION/JSON"] {
        let mut client = server.connect().await;
        let headers = [("accept", accept), ("content-type", "application/json; charset=utf-8")];
        assert_eq!(client.post(&headers, &initialize("2025-11-25")).await.status, 200, "{accept}");
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_before_it_is_read() {
    let server = TestServer::with(|options| options.max_body_bytes = 1000).await;
    let mut client = server.connect().await;
    let large = call(1, "echo", &json!({"text": "x".repeat(1000)}));
    assert_eq!(client.post(&[], &large).await.status, 413);
    // A length that is only claimed, and a body whose length is not said.
    let mut client = server.connect().await;
    let head = |length: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: */*\r\n{length}\r\n\r\n",
            server.address
        )
    };
    client.raw(head("content-length: 99999999999").as_bytes()).await;
    assert_eq!(client.reply().await.status, 413);
    let mut client = server.connect().await;
    client.raw(head("transfer-encoding: chunked").as_bytes()).await;
    let chunk = format!("{:x}\r\n{}\r\n", 2000, "x".repeat(2000));
    client.raw(chunk.as_bytes()).await;
    assert_eq!(client.reply().await.status, 413);
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_thousand_sessions_live_side_by_side() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let mut sessions = Vec::new();
    for _ in 0..1000 {
        sessions.push(client.initialize("2025-11-25").await);
    }
    for session in &sessions {
        let headers = [("mcp-session-id", session.as_str())];
        assert_eq!(client.post(&headers, &call(1, "count", &json!({}))).await.text(), "1");
    }
    for session in &sessions {
        let headers = [("mcp-session-id", session.as_str())];
        assert_eq!(client.request("DELETE", &headers, "").await.status, 204);
    }
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_client_with_too_many_calls_is_told_to_try_again() {
    let server = TestServer::start().await;
    let (_, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut clients = Vec::new();
    for id in 0..256 {
        let mut client = server.connect().await;
        let wait = call(id, "wait", &json!({"millis": 60_000}));
        client.send("POST", &headers, &wait.to_string()).await;
        clients.push(client);
    }
    until("all calls run", || server.state.waiting() == 256).await;
    let mut client = server.connect().await;
    assert_eq!(client.post(&headers, &call(999, "count", &json!({}))).await.status, 503);
    assert_eq!(client.request("DELETE", &headers, "").await.status, 204);
    until("all calls are cancelled", || server.state.cancelled() == 256).await;
    assert_alive(&server).await;
}

#[tokio::test]
async fn a_client_that_stops_reading_loses_its_connection_and_nothing_else() {
    let server =
        TestServer::with(|options| options.connections.write_stall = Duration::from_millis(300))
            .await;
    let mut stuck = server.connect().await;
    // More than the kernel's buffers hold, so that the server cannot write on.
    let body = stateless_call(1, "bytes", &json!({"count": 16_000_000}));
    stuck.send("POST", &stateless_headers("bytes"), &body.to_string()).await;
    assert_alive(&server).await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    let mut read = Vec::new();
    let _ = stuck.stream.read_to_end(&mut read).await;
    assert!(read.len() < 16_000_000, "the whole reply was written");
}

#[tokio::test]
async fn an_unread_stream_does_not_stop_its_call() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    let body = crate::http::call_with_progress(1, "progress", &json!({"steps": 500}));
    client.send("POST", &headers, &body.to_string()).await;
    // The client does not read; the call ends nevertheless and the identifier becomes free.
    let mut other = server.connect().await;
    let begun = Instant::now();
    loop {
        let reply = other.post(&headers, &call(1, "count", &json!({}))).await;
        if reply.status == 200 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "{reply:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn bytes_that_are_not_http_are_dropped() {
    let server = TestServer::start().await;
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n"] {
        let mut client = server.connect().await;
        let _ = client.stream.get_mut().write_all(bytes).await;
        assert!(client.closed().await);
    }
    assert_alive(&server).await;
}
