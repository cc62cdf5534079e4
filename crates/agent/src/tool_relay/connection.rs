//! The MCP connection of one relay.
//!
//! Calls run concurrently with each other and with further requests. A client that closes its side gets
//! the replies that are due; one that disconnects has its calls cancelled. The number of calls and of
//! queued progress notifications is bounded.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::CHUNK_BYTES;
use crate::line_splitter::{LineSplitter, OutputLine};
use crate::reporter::Reporter;
use crate::rpc::{Message, UNKNOWN_METHOD};
use crate::session_tools::{SessionTools, ToolOutcome};
use crate::tools::{Progress, ToolCall};

/// Calls in progress of one relay. At the limit no further requests are read.
const MAX_CALLS: usize = 64;

/// Queued progress notifications. Further ones are dropped, since the next one supersedes them.
const MAX_PROGRESS: usize = 16;

/// The interval at which a half-closed connection is checked for a disconnect.
const DISCONNECT_CHECK: Duration = Duration::from_millis(200);

/// The protocol revision for clients that name none.
const REVISION: &str = "2025-06-18";

/// The error code of a server that is at its limit.
const BUSY: i64 = -32000;

/// A connected relay. Dropping it cancels the calls in progress, since their replies have no receiver.
pub(super) struct RelayConnection {
    stream: UnixStream,
    tools: Arc<SessionTools>,
    reporter: Reporter,
    calls: JoinSet<(Value, ToolOutcome)>,
    /// The cancellation of each call, by the id of its request.
    running: HashMap<String, CancellationToken>,
    client: Option<String>,
    progress: (mpsc::Sender<Value>, mpsc::Receiver<Value>),
}

impl Drop for RelayConnection {
    fn drop(&mut self) {
        self.running.values().for_each(CancellationToken::cancel);
    }
}

impl RelayConnection {
    pub(super) fn new(stream: UnixStream, tools: Arc<SessionTools>, reporter: Reporter) -> Self {
        let (calls, running) = (JoinSet::new(), HashMap::new());
        let progress = mpsc::channel(MAX_PROGRESS);
        Self { stream, tools, reporter, calls, running, client: None, progress }
    }

    /// Serves requests until the relay closes its side, and then sends the replies that are due.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let (mut splitter, mut chunk) = (LineSplitter::default(), vec![0; CHUNK_BYTES]);
        loop {
            tokio::select! {
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    self.reply_to_call(done).await?;
                }
                Some(notification) = self.progress.1.recv() => self.write(&notification).await?,
                length = self.stream.read(&mut chunk), if self.calls.len() < MAX_CALLS => {
                    let length = length?;
                    if length == 0 {
                        return self.finish().await;
                    }
                    for line in splitter.push(&chunk[..length]) {
                        let OutputLine::Text(line) = line else { return Ok(()) };
                        self.handle(&line).await?;
                    }
                }
            }
        }
    }

    /// Sends the replies that are due until the relay disconnects.
    async fn finish(&mut self) -> io::Result<()> {
        while !self.calls.is_empty() {
            tokio::select! {
                Some(done) = self.calls.join_next() => self.reply_to_call(done).await?,
                Some(notification) = self.progress.1.recv() => self.write(&notification).await?,
                () = tokio::time::sleep(DISCONNECT_CHECK) => {
                    if self.stream.ready(Interest::WRITABLE).await?.is_write_closed() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn handle(&mut self, line: &str) -> io::Result<()> {
        let (id, method, params) = match Message::of(line) {
            Message::Request { id, method, params } => (id, method, params),
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                if let Some(cancel) = self.running.remove(&params["requestId"].to_string()) {
                    cancel.cancel();
                }
                return Ok(());
            }
            Message::Notification { .. }
            | Message::Reply { .. }
            | Message::Other(_)
            | Message::Malformed(_)
            | Message::Text(_) => return Ok(()),
        };
        let reply = match method.as_str() {
            "initialize" => {
                self.client = params["clientInfo"]["name"].as_str().map(str::to_owned);
                result(&id, &introduction(&params))
            }
            "ping" => result(&id, &json!({})),
            "tools/list" => result(&id, &json!({ "tools": self.tools.list })),
            "tools/call" => {
                self.begin_call(id, &params);
                return Ok(());
            }
            _ => refusal(&id, &format!("{method} is not supported here")),
        };
        self.write(&reply).await
    }

    /// Starts a tool call, whose reply follows its result.
    fn begin_call(&mut self, id: Value, params: &Value) {
        let cancel = self.tools.cancellation();
        self.running.insert(id.to_string(), cancel.clone());
        let notifications = self.progress.0.clone();
        let progress = params.pointer("/_meta/progressToken").cloned();
        let tool = params["name"].as_str().unwrap_or_default();
        let arguments = params.get("arguments").filter(|arguments| !arguments.is_null());
        let arguments = arguments.cloned().unwrap_or_else(|| json!({}));
        let call = self.tools.begin(ToolCall {
            client: self.client.clone(),
            progress: progress.map(|token| Progress { token, notifications }),
            ..ToolCall::new(tool, arguments, cancel)
        });
        self.calls.spawn(async move { (id, call.await) });
    }

    /// Sends the reply to a call, after its progress. A cancelled call gets none.
    async fn reply_to_call(
        &mut self,
        done: Result<(Value, ToolOutcome), JoinError>,
    ) -> io::Result<()> {
        let (id, used) = done.map_err(io::Error::other)?;
        self.reporter.event(used.event, Some(&used.tool)).await;
        // Progress after the reply would violate the protocol.
        while let Ok(notification) = self.progress.1.try_recv() {
            self.write(&notification).await?;
        }
        if self.running.remove(&id.to_string()).is_none() {
            return Ok(());
        }
        self.write(&tool_reply(&id, &used)).await
    }

    async fn write(&mut self, message: &Value) -> io::Result<()> {
        self.stream.write_all(format!("{message}\n").as_bytes()).await
    }
}

/// Echoes the client's revision: tools are the same in all of them.
fn introduction(params: &Value) -> Value {
    let revision = params["protocolVersion"].as_str().unwrap_or(REVISION);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "carrel", "title": "Carrel", "version": env!("CARGO_PKG_VERSION") },
    })
}

fn tool_reply(id: &Value, used: &ToolOutcome) -> Value {
    let tool_result = &used.result;
    let mut reply = json!({ "content": tool_result.content, "isError": tool_result.is_error });
    if let Some(facts) = &tool_result.facts {
        reply["structuredContent"] = facts.clone();
    }
    result(id, &reply)
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns the error for a client beyond the limit.
pub(super) fn too_many(most: usize) -> Value {
    let message = format!("{most} clients use the tools of this session already; end one of them");
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": BUSY, "message": message } })
}

fn refusal(id: &Value, message: &str) -> Value {
    let error = json!({ "code": UNKNOWN_METHOD, "message": message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
