//! Codex, spoken to through its app server over stdin and stdout.
//!
//! `codex app-server` speaks JSON-RPC without the `jsonrpc` member, one message per line, in both
//! directions. Its conversations are *threads*, which it stores on disk and can resume; a thread consists of
//! *turns*, and a turn of *items* such as a message, a command or a file change. A session here is one
//! server process with one thread:
//!
//! ```text
//! carrel                                    codex app-server
//!   initialize ───────────────────────────►
//!   initialized (notification) ───────────►
//!   thread/resume or thread/start ────────►   reply names the thread
//!   turn/start {threadId, input} ─────────►   reply names the turn
//!              ◄─────────────────────────── item/started, item/completed, thread/tokenUsage/updated …
//!              ◄─────────────────────────── request: item/…/requestApproval, item/tool/call …
//!   reply ────────────────────────────────►
//!              ◄─────────────────────────── turn/completed {turn: {status}}
//!   turn/start (next turn) … or turn/interrupt and the end of stdin
//! ```
//!
//! While a turn runs the server sends two kinds of messages. *Notifications* report progress and the end of
//! the turn; [`event_reader`] turns them into [`Event`]s and recognises the end. *Requests* ask for an
//! approval, for input or for a tool; [`server_request`] decides about them, and every one gets a reply,
//! if only an error, unless the turn ends first: the server would wait for it forever. Tool calls run in tasks of their own, so that a
//! slow tool does not stop the reading of notifications.
//!
//! Servers of several ages are in use. Where their messages differ, the older spellings are understood as
//! well: method names, the names of token counts in camel and snake case, and their location.

mod event_reader;
mod notification;
mod server_request;
mod settings;
mod turn_end;
mod usage_tracker;

use std::sync::Arc;
use std::time::Duration;

use carrel_config::ConductorConfig;
use serde_json::{Value, json};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::event::Event;
use crate::failure::{AgentFailure, FailureKind, Result, unless_stopped};
use crate::launch::{AgentWorkspace, Launcher};
use crate::process::Input;
use crate::reporter::Reporter;
use crate::rpc::{Connection, Dialect, Message};
use crate::session_tools::{SessionTools, ToolOutcome};
use crate::tools::ToolCall;
use crate::{Agent, OpenError, OpenRequest, Session, Teardown};
use event_reader::EventReader;
use settings::{SessionSettings, Settings};

/// The time for an interrupted turn to end. The server then records the turn as interrupted.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(2);

/// The client name in tool calls. Tools then repeat in their text what the model of Codex would not see in
/// structured content.
const CLIENT: &str = "codex";

#[derive(Debug)]
pub(crate) struct Codex {
    launcher: Launcher,
    settings: Settings,
    /// The time for the reply to one request: `codex.read_timeout_ms`.
    response_timeout: Duration,
    /// The longest time without a message during a turn, which may last longer in all:
    /// `codex.turn_timeout_ms`.
    silence_timeout: Duration,
}

impl Codex {
    /// Returns true if the workflow file gives the server a read-only sandbox.
    pub(crate) fn reads_only(config: &ConductorConfig) -> bool {
        Settings::new(config).reads_only()
    }

    pub(crate) fn new(config: &ConductorConfig) -> Self {
        let settings = Settings::new(config);
        let launcher = Launcher::new(config, &config.codex.command);
        Self {
            launcher: if settings.reads_only() { launcher.reading_only() } else { launcher },
            settings,
            response_timeout: config.codex.read_timeout,
            silence_timeout: config.codex.turn_timeout,
        }
    }
}

#[async_trait::async_trait]
impl Agent for Codex {
    async fn open(&self, request: OpenRequest) -> Result<Box<dyn Session>, OpenError> {
        let workspace = AgentWorkspace::open(&request).await?;
        let process = self.launcher.start(&workspace, Input::Pipe).await?;
        let reporter = Reporter(request.events.clone());
        let mut session = CodexSession {
            rpc: Connection::new(process, Dialect::Bare, self.response_timeout),
            settings: self.settings.for_session(workspace.path(), request.runner.is_sandboxed()),
            workspace,
            silence_timeout: self.silence_timeout,
            tools: SessionTools::new(Arc::clone(&request.tools), &request.stop),
            tool_calls: JoinSet::new(),
            events: EventReader::new(reporter.clone()),
            reporter,
            stop: request.stop.clone(),
        };
        match unless_stopped(&request.stop, session.begin(&request)).await {
            Ok(()) => Ok(Box::new(session)),
            Err(failure) => Err(OpenError { failure, teardown: session.end().await }),
        }
    }
}

struct CodexSession {
    rpc: Connection,
    workspace: AgentWorkspace,
    settings: SessionSettings,
    silence_timeout: Duration,
    tools: Arc<SessionTools>,
    /// Tool calls in progress, each with the id of the server's request.
    tool_calls: JoinSet<(Value, ToolOutcome)>,
    events: EventReader,
    reporter: Reporter,
    stop: CancellationToken,
}

#[async_trait::async_trait]
impl Session for CodexSession {
    fn thread(&self) -> Option<String> {
        Some(self.events.thread().to_owned())
    }

    async fn turn(&mut self, prompt: &str) -> Result<String> {
        let stop = self.stop.clone();
        unless_stopped(&stop, self.run_turn(prompt)).await
    }

    async fn close(mut self: Box<Self>) -> Teardown {
        if let Some(turn) = self.events.turn.clone() {
            // An interrupted turn is recorded as such, and the thread can be resumed.
            let _ = timeout(INTERRUPT_TIMEOUT, self.interrupt(&turn)).await;
        }
        self.end().await
    }
}

impl CodexSession {
    /// Performs the handshake, and resumes the requested thread or starts a new one.
    async fn begin(&mut self, request: &OpenRequest) -> Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let introduction = json!({
            "clientInfo": { "name": "carrel", "title": "Carrel", "version": version },
            "capabilities": { "experimentalApi": true },
        });
        self.rpc.slow_request("initialize", introduction).await?;
        self.rpc.notify("initialized", json!({})).await?;
        if let Some(thread) = &request.thread
            && self.resume(thread).await?
        {
            return Ok(());
        }
        let tools: Vec<Value> = self.tools.list.iter().map(dynamic_tool).collect();
        let mut params = self.settings.thread_params();
        params["dynamicTools"] = tools.into();
        let reply = self.rpc.request("thread/start", params).await?;
        let thread = id_at(&reply, "/thread/id", "thread/start")?;
        let name = json!({ "threadId": thread, "name": request.title });
        self.events.usage.thread = thread;
        // Only a label; a server without this method replies with an error that nothing waits for.
        self.rpc.send_request("thread/name/set", name).await.map(drop)
    }

    /// Resumes a thread. Returns false if the server refuses, for example because the thread is lost; a
    /// new one is started then.
    async fn resume(&mut self, thread: &str) -> Result<bool> {
        let mut params = self.settings.thread_params();
        params["threadId"] = thread.into();
        params["excludeTurns"] = true.into();
        let reply = self.rpc.request("thread/resume", params).await;
        let reply = self.reporter.unless_refused("thread_not_resumed", reply).await?;
        let Some(reply) = reply else { return Ok(false) };
        self.events.usage.resume_thread(&id_at(&reply, "/thread/id", "thread/resume")?);
        self.reporter.event("thread_resumed", None).await;
        Ok(true)
    }

    /// Starts a turn and reads messages until it ends. Returns the agent's last message.
    async fn run_turn(&mut self, prompt: &str) -> Result<String> {
        let mut params = self.settings.turn_params();
        params["threadId"] = self.events.thread().into();
        params["input"] = json!([{ "type": "text", "text": prompt }]);
        let reply = match self.rpc.request("turn/start", params).await {
            Ok(reply) => reply,
            Err(failure) => {
                self.reporter.event("startup_failed", Some(&failure.message)).await;
                return Err(failure);
            }
        };
        let turn = id_at(&reply, "/turn/id", "turn/start")?;
        let thread = self.events.thread().to_owned();
        let session = format!("{thread}-{turn}");
        self.events.start_turn(turn);
        let pid = self.rpc.process.pid;
        self.reporter.send(Event::SessionStarted { session, thread, pid }).await;
        loop {
            // A server that waits for a tool sends nothing.
            let silence =
                if self.tool_calls.is_empty() { self.silence_timeout } else { Duration::MAX };
            let message = tokio::select! {
                biased;
                Some(done) = self.tool_calls.join_next(), if !self.tool_calls.is_empty() => {
                    self.reply_to_tool_call(done).await?;
                    continue;
                }
                message = self.rpc.next(silence) => message?,
            };
            if let Some(answer) = self.handle(message).await? {
                return Ok(answer);
            }
        }
    }

    /// Handles a message of the server. Returns the agent's last message if it ends the turn.
    async fn handle(&mut self, message: Message) -> Result<Option<String>> {
        match message {
            Message::Notification { method, params } => {
                return self.events.notification(&method, &params).await;
            }
            Message::Request { id, method, params } => {
                self.handle_request(&id, &method, &params).await?;
            }
            // Replies to requests that nothing waits for, and log output.
            Message::Reply { .. } | Message::Text(_) => {}
            Message::Other(line) => self.reporter.event("other_message", Some(&line)).await,
            Message::Malformed(line) => self.reporter.event("malformed", Some(&line)).await,
        }
        Ok(None)
    }

    /// Replies to a request of the server, or starts the tool call that it asks for.
    async fn handle_request(&mut self, id: &Value, method: &str, params: &Value) -> Result<()> {
        let decision = server_request::decide(method, params, self.settings.approves_all());
        let call = decision.reply((id, method), "", &mut self.rpc, &self.reporter).await?;
        if let Some((tool, arguments)) = call {
            let call = ToolCall {
                client: Some(CLIENT.to_owned()),
                ..ToolCall::new(tool, arguments, self.tools.cancellation())
            };
            let (id, call) = (id.clone(), self.tools.begin(call));
            self.tool_calls.spawn(async move { (id, call.await) });
        }
        Ok(())
    }

    /// Sends the result of a tool call to the server.
    async fn reply_to_tool_call(
        &mut self,
        done: Result<(Value, ToolOutcome), JoinError>,
    ) -> Result<()> {
        let lost = |error| {
            AgentFailure::new(FailureKind::TurnFailed, format!("a tool call was lost: {error}"))
        };
        let (id, outcome) = done.map_err(lost)?;
        self.reporter.event(outcome.event, Some(&outcome.tool)).await;
        let items: Vec<Value> = outcome.result.content.iter().map(content_item).collect();
        let success = !outcome.result.is_error;
        let reply = json!({ "success": success, "output": outcome.text(), "contentItems": items });
        self.rpc.reply(&id, reply).await
    }

    /// Interrupts a turn, and returns when the server reports its end.
    async fn interrupt(&mut self, turn: &str) -> Result<()> {
        let params = json!({ "threadId": self.events.thread(), "turnId": turn });
        self.rpc.send_request("turn/interrupt", params).await?;
        loop {
            match self.rpc.next(INTERRUPT_TIMEOUT).await? {
                Message::Request { id, method, .. } => {
                    let message = format!("{method} is too late: the turn is interrupted");
                    self.rpc.reject(&id, &message).await?;
                }
                Message::Notification { method, params }
                    if self.events.ends_turn(&method, &params) =>
                {
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    async fn end(self) -> Teardown {
        let teardown = self.rpc.close().await;
        self.tools.close().await;
        self.workspace.leave().await;
        teardown
    }
}

/// Converts a piece of a tool's MCP content into a content item of the app server.
fn content_item(piece: &Value) -> Value {
    match (piece["data"].as_str(), piece["mimeType"].as_str()) {
        (Some(data), Some(mime)) => {
            json!({ "type": "inputImage", "imageUrl": format!("data:{mime};base64,{data}") })
        }
        _ => json!({ "type": "inputText", "text": piece["text"] }),
    }
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}

fn id_at(reply: &Value, path: &str, method: &str) -> Result<String> {
    match text(reply, path) {
        Some(id) => Ok(id.to_owned()),
        None => FailureKind::ResponseError.err(format!("the reply to {method} has no id")),
    }
}

/// Converts an MCP tool definition into a dynamic tool of the app server.
fn dynamic_tool(tool: &Value) -> Value {
    let mut tool = tool.clone();
    tool["type"] = "function".into();
    tool
}
