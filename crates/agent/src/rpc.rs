//! JSON-RPC over the stdin and stdout of a process, one message per line, in both directions.
//!
//! Both peers send requests and notifications at any time. Messages that arrive while a reply is awaited
//! are queued in order and returned by [`Connection::next`] later, so a caller sees all of them. Request
//! ids are never reused, so a late reply cannot be taken for another. A request that the peer rejects as
//! overloaded is repeated with back-off and jitter.

mod message;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::Teardown;
use crate::failure::{FailureKind, Result};
use crate::line_splitter::OutputLine;
use crate::process::{Process, ProcessEvent};
pub(crate) use message::{Message, Refusal, mentions_rate_limit};

/// Bytes that may arrive while a reply is awaited.
const MAX_BACKLOG_BYTES: usize = 64 << 20;

/// The factor by which other messages can extend the timeout of a reply: they show that the peer is
/// alive.
const MAX_EXTENSION: u32 = 12;

/// The error code of an overloaded peer.
const OVERLOADED: i64 = -32001;

/// Attempts of a request to an overloaded peer.
const MAX_ATTEMPTS: u32 = 5;

/// The first back-off; each later one is twice as long.
const BASE_BACKOFF: Duration = Duration::from_millis(200);

/// The JSON-RPC error code "method not found".
pub(crate) const UNKNOWN_METHOD: i64 = -32601;

/// Added to the response timeout of requests for which a login shell and the agent have to start, or the
/// agent contacts its provider.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The time for the agent to exit after the end of its stdin, before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Standard JSON-RPC 2.0.
    Full,
    /// Without the member `jsonrpc`, as the Codex app server has it.
    Bare,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) process: Process,
    dialect: Dialect,
    response_timeout: Duration,
    next_id: u64,
    backlog: VecDeque<Message>,
    backlog_bytes: usize,
}

impl Connection {
    pub(crate) fn new(process: Process, dialect: Dialect, response_timeout: Duration) -> Self {
        let (backlog, backlog_bytes) = (VecDeque::new(), 0);
        Self { process, dialect, response_timeout, next_id: 1, backlog, backlog_bytes }
    }

    /// Sends a request and awaits its reply. An error reply becomes a failure that names the method.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.request_within(method, params, self.response_timeout).await
    }

    /// Sends a request that may take [`START_TIMEOUT`] longer than others.
    pub(crate) async fn slow_request(&mut self, method: &str, params: Value) -> Result<Value> {
        let limit = self.response_timeout.saturating_add(START_TIMEOUT);
        self.request_within(method, params, limit).await
    }

    async fn request_within(
        &mut self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value> {
        let mut backoff = BASE_BACKOFF;
        for _ in 0..MAX_ATTEMPTS {
            let id = self.send_request(method, params.clone()).await?;
            match self.wait_for_reply(id, method, limit).await? {
                Ok(result) => return Ok(result),
                Err(refusal) if refusal.code == OVERLOADED => {
                    debug!(method, "the agent is overloaded, repeating the request");
                    sleep(backoff.mul_f64(0.5 + fastrand::f64())).await;
                    backoff *= 2;
                }
                Err(refusal) => return Err(refusal.failure_of(method)),
            }
        }
        let limited = FailureKind::RateLimited { retry_after: None };
        limited.err(format!("{method}: the agent is overloaded"))
    }

    /// Sends a request without awaiting its reply, and returns its id.
    pub(crate) async fn send_request(&mut self, method: &str, params: Value) -> Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({ "id": id, "method": method, "params": params })).await?;
        Ok(id)
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(json!({ "method": method, "params": params })).await
    }

    pub(crate) async fn reply(&mut self, id: &Value, result: Value) -> Result<()> {
        self.send(json!({ "id": id, "result": result })).await
    }

    /// Replies to a request of the peer that it is not supported. The message has the reason.
    pub(crate) async fn reject(&mut self, id: &Value, message: &str) -> Result<()> {
        let error = json!({ "code": UNKNOWN_METHOD, "message": message });
        self.send(json!({ "id": id, "error": error })).await
    }

    async fn send(&mut self, mut message: Value) -> Result<()> {
        if self.dialect == Dialect::Full {
            message["jsonrpc"] = "2.0".into();
        }
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.process.write(line, self.response_timeout).await
    }

    async fn wait_for_reply(
        &mut self,
        id: u64,
        method: &str,
        limit: Duration,
    ) -> Result<Result<Value, Refusal>> {
        let last = Instant::now() + limit * MAX_EXTENSION;
        loop {
            let until = (Instant::now() + limit).min(last);
            let Ok(received) = tokio::time::timeout_at(until, self.receive()).await else {
                let limit = limit.as_millis();
                let message =
                    format!("{method} got no reply within {limit} ms (codex.read_timeout_ms)");
                return FailureKind::ResponseTimeout.err(message);
            };
            match received? {
                (Message::Reply { id: about, result }, _) if about == id => return Ok(result),
                (other, bytes) => self.keep(other, bytes)?,
            }
        }
    }

    fn keep(&mut self, message: Message, bytes: usize) -> Result<()> {
        self.backlog_bytes += bytes;
        self.backlog.push_back(message);
        if self.backlog_bytes <= MAX_BACKLOG_BYTES {
            return Ok(());
        }
        FailureKind::ResponseError.err("the agent sent too much while a reply was awaited")
    }

    pub(crate) fn drop_notifications(&mut self) {
        self.backlog.retain(|message| !matches!(message, Message::Notification { .. }));
    }

    /// Returns the next message, or fails after `silence`. Cancel-safe.
    pub(crate) async fn next(&mut self, silence: Duration) -> Result<Message> {
        if let Some(message) = self.backlog.pop_front() {
            if self.backlog.is_empty() {
                self.backlog_bytes = 0;
            }
            return Ok(message);
        }
        let Ok(received) = timeout(silence, self.receive()).await else {
            let limit = silence.as_millis();
            let message = format!("the agent was silent for {limit} ms (codex.turn_timeout_ms)");
            return FailureKind::TurnTimeout.err(message);
        };
        received.map(|(message, _)| message)
    }

    /// Returns the next message from stdout with its length; lines on stderr are logged.
    async fn receive(&mut self) -> Result<(Message, usize)> {
        loop {
            match self.process.next().await {
                Some(ProcessEvent::Stdout(OutputLine::Text(text))) if text.trim().is_empty() => {}
                Some(ProcessEvent::Stdout(OutputLine::Text(text))) => {
                    return Ok((Message::of(&text), text.len()));
                }
                Some(ProcessEvent::Stdout(OutputLine::TooLong { bytes })) => {
                    return Ok((Message::Malformed(format!("a line of {bytes} bytes")), 0));
                }
                Some(ProcessEvent::Stderr(OutputLine::Text(text))) => {
                    debug!(text, "an agent wrote to stderr");
                }
                Some(ProcessEvent::Stderr(OutputLine::TooLong { .. })) => {}
                Some(ProcessEvent::Exited(report)) => {
                    let message = format!("the agent has exited: {}", report.description);
                    return report.failure_kind().err(message);
                }
                None => return FailureKind::Exited.err("the agent has exited"),
            }
        }
    }

    /// Closes stdin and ends the process with its descendants.
    pub(crate) async fn close(self) -> Teardown {
        self.process.close(EXIT_TIMEOUT).await
    }
}
