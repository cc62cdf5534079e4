//! Requests, replies and notices as lines of JSON, in both directions.
//!
//! Whatever arrives while a reply is waited for is kept, in order, for whoever listens next. Ids are
//! never used twice. A peer that is overloaded is asked again after a while.

mod message;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::Teardown;
use crate::failure::{AgentFailure, FailureKind};
use crate::line_splitter::OutputLine;
use crate::process::{ExitReport, Process, ProcessEvent};
pub(crate) use message::{Message, Refusal, is_about_limits};

/// How much may arrive while a reply is waited for.
const MAX_BACKLOG_BYTES: usize = 64 << 20;

/// How many times longer than its limit a reply may take when other things arrive meanwhile: the peer is
/// at work then.
const MAX_EXTENSION: u32 = 12;

/// The code of a peer that has too much to do.
const OVERLOADED: i64 = -32001;

/// How often a peer that has too much to do is asked again.
const MAX_REPEATS: u32 = 5;

/// How long the first wait for it is; each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The code for a request that is not known here.
pub(crate) const UNKNOWN_METHOD: i64 = -32601;

/// The status of a shell that did not find the program.
const NOT_FOUND: i32 = 127;

/// How a protocol spells its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As JSON-RPC says.
    Full,
    /// Without the member that names the version.
    Bare,
}

/// A process that is spoken to.
#[derive(Debug)]
pub(crate) struct Connection {
    process: Process,
    dialect: Dialect,
    /// How long one answer may take.
    patience: Duration,
    next_id: u64,
    backlog: VecDeque<Message>,
    backlog_bytes: usize,
}

impl Connection {
    pub(crate) fn new(process: Process, dialect: Dialect, patience: Duration) -> Self {
        let (backlog, backlog_bytes) = (VecDeque::new(), 0);
        Self { process, dialect, patience, next_id: 1, backlog, backlog_bytes }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.pid
    }

    /// Sends a request and waits for its reply. A refusal is a failure that names the request.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Value, AgentFailure> {
        self.request_within(method, params, self.patience).await
    }

    /// Does the same with another limit.
    pub(crate) async fn request_within(
        &mut self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, AgentFailure> {
        let mut pause = FIRST_WAIT;
        for _ in 0..MAX_REPEATS {
            let id = self.ask(method, params.clone()).await?;
            match self.reply_to(id, method, limit).await? {
                Ok(result) => return Ok(result),
                Err(refusal) if refusal.code == OVERLOADED => {
                    debug!(method, "the agent is overloaded, asking again");
                    sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
                    pause *= 2;
                }
                Err(refusal) => return Err(refusal.to(method)),
            }
        }
        let message = format!("{method}: the agent is overloaded");
        Err(AgentFailure::new(FailureKind::RateLimited { retry_after: None }, message))
    }

    /// Sends a request, and returns the id that its reply will have.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<u64, AgentFailure> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({ "id": id, "method": method, "params": params })).await?;
        Ok(id)
    }

    /// Sends a notice.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) -> Result<(), AgentFailure> {
        self.send(json!({ "method": method, "params": params })).await
    }

    /// Answers a request of the peer.
    pub(crate) async fn answer(&mut self, id: &Value, result: Value) -> Result<(), AgentFailure> {
        self.send(json!({ "id": id, "result": result })).await
    }

    /// Answers a request of the peer with an error.
    pub(crate) async fn refuse(
        &mut self,
        id: &Value,
        code: i64,
        message: &str,
    ) -> Result<(), AgentFailure> {
        self.send(json!({ "id": id, "error": { "code": code, "message": message } })).await
    }

    async fn send(&mut self, mut message: Value) -> Result<(), AgentFailure> {
        if self.dialect == Dialect::Full {
            message["jsonrpc"] = "2.0".into();
        }
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.process.tell(line, self.patience).await
    }

    async fn reply_to(
        &mut self,
        id: u64,
        method: &str,
        limit: Duration,
    ) -> Result<Result<Value, Refusal>, AgentFailure> {
        let last = Instant::now() + limit * MAX_EXTENSION;
        loop {
            let until = (Instant::now() + limit).min(last);
            let Ok(arrived) = tokio::time::timeout_at(until, self.arrive()).await else {
                let limit = limit.as_millis();
                let message =
                    format!("{method} was not answered within {limit} ms (codex.read_timeout_ms)");
                return Err(AgentFailure::new(FailureKind::ResponseTimeout, message));
            };
            match arrived? {
                (Message::Reply { id: about, result }, _) if about == id => return Ok(result),
                (other, bytes) => self.keep(other, bytes)?,
            }
        }
    }

    fn keep(&mut self, message: Message, bytes: usize) -> Result<(), AgentFailure> {
        self.backlog_bytes += bytes;
        self.backlog.push_back(message);
        if self.backlog_bytes <= MAX_BACKLOG_BYTES {
            return Ok(());
        }
        let message = "the agent says too much while an answer is waited for";
        Err(AgentFailure::new(FailureKind::ResponseError, message))
    }

    /// Forgets the notices that have arrived while a reply was waited for.
    pub(crate) fn forget_notices(&mut self) {
        self.backlog.retain(|message| !matches!(message, Message::Notice { .. }));
    }

    /// Waits for what arrives next, for a limited time. Nothing is lost if the wait is given up.
    pub(crate) async fn next(&mut self, silence: Duration) -> Result<Message, AgentFailure> {
        if let Some(message) = self.backlog.pop_front() {
            if self.backlog.is_empty() {
                self.backlog_bytes = 0;
            }
            return Ok(message);
        }
        let Ok(arrived) = timeout(silence, self.arrive()).await else {
            let limit = silence.as_millis();
            let message = format!("the agent was silent for {limit} ms (codex.turn_timeout_ms)");
            return Err(AgentFailure::new(FailureKind::TurnTimeout, message));
        };
        arrived.map(|(message, _)| message)
    }

    /// Waits for a message, however long that takes. What is written to stderr is none.
    async fn arrive(&mut self) -> Result<(Message, usize), AgentFailure> {
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
                    debug!(text, "an agent wrote to stderr")
                }
                Some(ProcessEvent::Stderr(OutputLine::TooLong { .. })) => {}
                Some(ProcessEvent::Exited(ending)) => return Err(gone(&ending)),
                None => return Err(AgentFailure::new(FailureKind::Exited, "the agent is gone")),
            }
        }
    }

    /// Ends the process and everything it started.
    pub(crate) async fn close(self, patience: Duration) -> Teardown {
        self.process.close(patience).await
    }
}

/// Says that the process has ended where it was not to.
fn gone(ending: &ExitReport) -> AgentFailure {
    let kind = match ending.status {
        Some(NOT_FOUND) => FailureKind::NotFound,
        Some(_) | None => FailureKind::Exited,
    };
    AgentFailure::new(kind, format!("the agent is gone: {}", ending.account))
}
