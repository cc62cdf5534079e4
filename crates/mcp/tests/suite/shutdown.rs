//! The end of a server with everything open.

use std::time::{Duration, Instant};

use carrel_mcp::SHUTDOWN_GRACE;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::{
    http::{call, call_with_progress, stateless_call, stateless_headers},
    test_server::{TestServer, until},
};

/// The longest time from a termination signal to the end.
const BOUND: Duration = Duration::from_secs(2);

async fn stops_in_time(server: TestServer) -> Duration {
    let begun = Instant::now();
    server.cancel.cancel();
    let outcome = timeout(BOUND, server.task).await.expect("stops within two seconds");
    outcome.expect("does not panic").expect("is no error");
    begun.elapsed()
}

#[tokio::test]
async fn open_streams_and_running_calls_end_with_the_server() {
    let server = TestServer::start().await;
    let (mut listener, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    listener.send("GET", &headers, "").await;
    listener.head().await;

    let mut caller = server.connect().await;
    let wait = call_with_progress(1, "wait", &json!({"millis": 60_000}));
    caller.send("POST", &headers, &wait.to_string()).await;
    let mut stateless = server.connect().await;
    let body = stateless_call(1, "wait", &json!({"millis": 60_000}));
    stateless.send("POST", &stateless_headers("wait"), &body.to_string()).await;
    until("both calls run", || server.state.waiting() == 2).await;

    let state = std::sync::Arc::clone(&server.state);
    let took = stops_in_time(server).await;
    assert!(took < SHUTDOWN_GRACE, "cooperative calls need no deadline: {took:?}");
    assert_eq!((state.waiting(), state.cancelled()), (0, 2));
    assert!(listener.closed().await);
}

#[tokio::test]
async fn a_call_in_a_session_can_still_reply() {
    let server = TestServer::start().await;
    let (mut client, session) = server.session().await;
    let headers = [("mcp-session-id", session.as_str())];
    client.send("POST", &headers, &call(1, "wait", &json!({"millis": 60_000})).to_string()).await;
    until("the call runs", || server.state.waiting() == 1).await;
    let cancel = server.cancel.clone();
    cancel.cancel();
    assert_eq!(client.reply().await.text(), "cancelled");
    stops_in_time(server).await;
}

#[tokio::test]
async fn idle_and_half_open_connections_do_not_delay_the_end() {
    let server = TestServer::start().await;
    let _idle = server.session().await;
    let _silent = server.connect().await;
    let mut half = server.connect().await;
    half.raw(b"POST /mcp HTTP/1.1\r\nhost: lo").await;
    stops_in_time(server).await;
}

#[tokio::test]
async fn a_client_that_stops_reading_does_not_delay_the_end() {
    let server = TestServer::start().await;
    let mut stuck = server.connect().await;
    let body = stateless_call(1, "bytes", &json!({"count": 16_000_000}));
    stuck.send("POST", &stateless_headers("bytes"), &body.to_string()).await;
    // The reply has begun and does not fit into the kernel's buffers.
    stuck.stream.read_exact(&mut [0]).await.expect("the reply begins");
    stops_in_time(server).await;
}
