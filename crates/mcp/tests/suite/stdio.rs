//! The same promises over lines.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use carrel_mcp::{EOF_GRACE, MAX_MESSAGE_BYTES, SHUTDOWN_GRACE, StdioError, serve_lines};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{Fixture, FixtureState},
    http::{TEST_TIMEOUT, call, call_with_progress, initialize, result_text, stateless_call},
    test_server::until,
};

/// The size of the pipes, about that of the kernel's.
const PIPE_BYTES: usize = 64 * 1024;

struct Peer {
    input: DuplexStream,
    output: BufReader<DuplexStream>,
    state: Arc<FixtureState>,
    cancel: CancellationToken,
    task: JoinHandle<Result<(), StdioError>>,
}

impl Peer {
    fn start() -> Self {
        let (input, reader) = duplex(PIPE_BYTES);
        let (writer, output) = duplex(PIPE_BYTES);
        let (state, cancel) = (FixtureState::new(), CancellationToken::new());
        let handler = Fixture::new(&state);
        let task = tokio::spawn(serve_lines(handler, reader, writer, cancel.clone()));
        Self { input, output: BufReader::new(output), state, cancel, task }
    }

    async fn started() -> Self {
        let mut peer = Self::start();
        let reply = peer.ask(&initialize("2025-11-25")).await;
        assert_eq!(reply["result"]["protocolVersion"], "2025-11-25");
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        peer
    }

    async fn raw(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).await.expect("the server reads");
    }

    async fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes()).await;
    }

    async fn receive(&mut self) -> Value {
        let mut line = String::new();
        let reading = self.output.read_line(&mut line);
        timeout(TEST_TIMEOUT, reading).await.expect("a line in time").expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line:?}"))
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.receive().await
    }

    /// Closes the input and waits for the end.
    async fn finish(self) -> (Duration, Arc<FixtureState>) {
        let begun = Instant::now();
        drop(self.input);
        let outcome = timeout(TEST_TIMEOUT, self.task).await.expect("the server ends");
        outcome.expect("does not panic").expect("is no error");
        (begun.elapsed(), self.state)
    }
}

#[tokio::test]
async fn calls_are_answered_until_the_input_ends() {
    let mut peer = Peer::started().await;
    for id in 1..4 {
        let reply = peer.ask(&call(id, "echo", &json!({"text": "hi"}))).await;
        assert_eq!((reply["id"].as_i64(), result_text(&reply)), (Some(id), "hi".to_owned()));
    }
    let (took, _) = peer.finish().await;
    assert!(took < EOF_GRACE + SHUTDOWN_GRACE, "{took:?}");
}

#[tokio::test]
async fn the_revision_without_a_handshake_is_spoken_too() {
    let mut peer = Peer::start();
    let reply = peer.ask(&stateless_call(1, "echo", &json!({"text": "hi"}))).await;
    assert_eq!(result_text(&reply), "hi");
    peer.finish().await;
}

#[tokio::test]
async fn progress_comes_before_the_reply() {
    let mut peer = Peer::started().await;
    peer.send(&call_with_progress(1, "progress", &json!({"steps": 2}))).await;
    for _ in 0..2 {
        assert_eq!(peer.receive().await["method"], "notifications/progress");
    }
    assert_eq!(result_text(&peer.receive().await), "done");
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_the_next_is() {
    let mut peer = Peer::started().await;
    peer.send(&call(1, "wait", &json!({"millis": 60_000}))).await;
    until("the call runs", || peer.state.waiting() == 1).await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}
    });
    peer.send(&cancel).await;
    until("the token is cancelled", || peer.state.cancelled() == 1).await;
    let reply = peer.ask(&call(1, "count", &json!({}))).await;
    assert_eq!(result_text(&reply), "1");
}

#[tokio::test]
async fn a_malformed_message_gets_an_error_and_is_not_fatal() {
    let mut peer = Peer::started().await;
    let cases: [(&[u8], i64); 5] = [
        (b"garbage\n", -32700),
        (b"{\"jsonrpc\":\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[]\n", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}\n", -32600),
    ];
    for (line, code) in cases {
        peer.raw(line).await;
        assert_eq!(peer.receive().await["error"]["code"], code, "{line:?}");
    }
    peer.raw(b"\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/from/the/future\"}\n").await;
    let reply = peer.ask(&call(1, "count", &json!({}))).await;
    assert_eq!(result_text(&reply), "1");
}

#[tokio::test]
async fn a_line_above_the_limit_gets_an_error_and_is_not_fatal() {
    let mut peer = Peer::started().await;
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..=MAX_MESSAGE_BYTES / chunk.len() {
        peer.raw(&chunk).await;
    }
    peer.raw(b"\n").await;
    let reply = peer.receive().await;
    assert_eq!((reply["error"]["code"].as_i64(), reply.get("id")), (Some(-32600), None));
    let reply = peer.ask(&call(1, "count", &json!({}))).await;
    assert_eq!(result_text(&reply), "1");
}

#[tokio::test]
async fn a_panic_fails_its_own_call_only() {
    let mut peer = Peer::started().await;
    let reply = peer.ask(&call(1, "panic", &json!({}))).await;
    assert_eq!(reply["error"]["code"], -32603);
    let reply = peer.ask(&call(2, "count", &json!({}))).await;
    assert_eq!(result_text(&reply), "1");
}

#[tokio::test]
async fn a_notification_before_the_handshake_does_not_end_the_session() {
    let mut peer = Peer::start();
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let reply = peer.ask(&initialize("2025-11-25")).await;
    assert_eq!(reply["result"]["serverInfo"]["name"], "carrel-fixture");
}

#[tokio::test]
async fn a_call_that_is_nearly_done_is_finished_after_the_end_of_input() {
    let mut peer = Peer::started().await;
    peer.send(&call(1, "wait", &json!({"millis": 100}))).await;
    until("the call runs", || peer.state.waiting() == 1).await;
    let Peer { input, mut output, task, .. } = peer;
    drop(input);
    let mut line = String::new();
    output.read_line(&mut line).await.expect("a line");
    assert!(line.contains("waited"), "{line}");
    timeout(TEST_TIMEOUT, task).await.expect("ends").expect("no panic").expect("no error");
}

#[tokio::test]
async fn a_long_call_is_cancelled_after_the_end_of_input() {
    let mut peer = Peer::started().await;
    peer.send(&call(1, "wait", &json!({"millis": 60_000}))).await;
    until("the call runs", || peer.state.waiting() == 1).await;
    let (took, state) = peer.finish().await;
    assert_eq!(state.cancelled(), 1);
    assert!(took < EOF_GRACE + SHUTDOWN_GRACE, "{took:?}");
}

#[tokio::test]
async fn a_client_that_never_speaks_or_never_reads_does_not_delay_the_end() {
    let silent = Peer::start();
    silent.cancel.cancel();
    timeout(Duration::from_secs(2), silent.task)
        .await
        .expect("ends")
        .expect("no panic")
        .expect("ok");

    let mut deaf = Peer::started().await;
    deaf.send(&call(1, "bytes", &json!({"count": 1_000_000}))).await;
    // The reply has begun and does not fit into the pipe.
    timeout(TEST_TIMEOUT, deaf.output.fill_buf()).await.expect("begins").expect("no error");
    deaf.cancel.cancel();
    timeout(Duration::from_secs(2), deaf.task).await.expect("ends").expect("no panic").expect("ok");
}

#[tokio::test]
async fn a_client_with_too_many_calls_is_told_to_try_again() {
    let mut peer = Peer::started().await;
    for id in 0..256 {
        peer.send(&call(id, "wait", &json!({"millis": 60_000}))).await;
    }
    let reply = peer.ask(&call(999, "count", &json!({}))).await;
    assert_eq!((reply["id"].as_i64(), reply["error"]["code"].as_i64()), (Some(999), Some(-32000)));
}
