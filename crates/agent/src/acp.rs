//! Agents that speak the Agent Client Protocol (ACP) over stdin and stdout.
//!
//! Carrel is the client. A session is one agent process with one ACP session: `initialize`, then
//! `session/resume`, `session/load` or `session/new`, then one `session/prompt` per turn. The reply to the
//! prompt ends the turn; `session/update` notifications report progress meanwhile, and
//! `session/request_permission` is decided by the workflow file's `agent.approvals`. The agent works on the
//! files itself, so the client capabilities for files and terminals are off. Tools are offered as an MCP
//! server in the session's parameters (`tool_relay`).
//!
//! ACP sends the agent's message in chunks without a final text. The answer of a turn is the last
//! uninterrupted sequence of chunks ([`LastMessage`]).

mod permission;
mod update;

use std::time::Duration;

use carrel_config::{Approvals, ConductorConfig};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, Tokens};
use crate::failure::{AgentFailure, FailureKind, Result, unless_stopped};
use crate::launch::{AgentWorkspace, Launcher};
use crate::process::Input;
use crate::reporter::{Reporter, Throttle};
use crate::rpc::{Connection, Dialect, Message, Refusal, mentions_rate_limit};
use crate::token_usage;
use crate::{Agent, OpenError, OpenRequest, Session, Teardown};
use update::Update;

/// The supported protocol version.
const VERSION: u64 = 1;

/// Modes without a sandbox and approvals of the agent's own, by the names of Codex, Claude Code and Gemini
/// CLI.
const UNCONFINED_MODES: [&str; 4] =
    ["agent-full-access", "full-access", "bypassPermissions", "yolo"];

/// The error code "authentication required".
const AUTH_REQUIRED: i64 = -32000;

/// The time for a cancelled turn to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Acp {
    launcher: Launcher,
    approvals: Approvals,
    response_timeout: Duration,
    /// The longest time without a message during a turn.
    silence_timeout: Duration,
}

impl Acp {
    pub(crate) fn new(config: &ConductorConfig) -> Self {
        let command = config.agent.command.as_deref().unwrap_or_default();
        Self {
            launcher: Launcher::new(config, command),
            approvals: config.agent.approvals,
            response_timeout: config.codex.read_timeout,
            silence_timeout: config.codex.turn_timeout,
        }
    }
}

#[async_trait::async_trait]
impl Agent for Acp {
    async fn open(&self, request: OpenRequest) -> Result<Box<dyn Session>, OpenError> {
        let workspace = AgentWorkspace::open(&request).await?.with_tools(&request);
        let process = self.launcher.start(&workspace, Input::Pipe).await?;
        let mut session = AcpSession {
            rpc: Connection::new(process, Dialect::Full, self.response_timeout),
            workspace,
            approvals: self.approvals,
            is_sandboxed: request.runner.is_sandboxed(),
            silence_timeout: self.silence_timeout,
            reporter: Reporter(request.events.clone()),
            stop: request.stop.clone(),
            session: String::new(),
            is_resumable: false,
            turns: 0,
            prompt: None,
            last_message: LastMessage::default(),
            used: Tokens::default(),
            throttle: Throttle::default(),
        };
        let begin = session.begin(request.thread.as_deref());
        match unless_stopped(&request.stop, begin).await {
            Ok(()) => Ok(Box::new(session)),
            Err(failure) => Err(OpenError { failure, teardown: session.end().await }),
        }
    }
}

struct AcpSession {
    rpc: Connection,
    workspace: AgentWorkspace,
    approvals: Approvals,
    is_sandboxed: bool,
    silence_timeout: Duration,
    reporter: Reporter,
    stop: CancellationToken,
    session: String,
    /// The agent can resume the session in another process.
    is_resumable: bool,
    turns: u64,
    prompt: Option<u64>,
    last_message: LastMessage,
    used: Tokens,
    throttle: Throttle,
}

#[derive(Default)]
struct LastMessage {
    text: String,
    /// The message id of the chunks, for agents that send one.
    id: Option<String>,
    /// A tool call followed; the next chunk begins another message.
    is_complete: bool,
}

#[async_trait::async_trait]
impl Session for AcpSession {
    fn thread(&self) -> Option<String> {
        self.is_resumable.then(|| self.session.clone())
    }

    async fn turn(&mut self, prompt: &str) -> Result<String> {
        let stop = self.stop.clone();
        unless_stopped(&stop, self.run_turn(prompt)).await
    }

    async fn close(mut self: Box<Self>) -> Teardown {
        if self.prompt.is_some() {
            // A cancelled turn is recorded by the agent, which a killed one is not.
            let _ = timeout(CANCEL_TIMEOUT, self.cancel()).await;
        }
        self.end().await
    }
}

impl AcpSession {
    /// Performs the handshake, and resumes the requested session or opens a new one.
    async fn begin(&mut self, earlier: Option<&str>) -> Result<()> {
        let introduction = json!({
            "protocolVersion": VERSION,
            "clientInfo": { "name": "carrel", "title": "Carrel", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
        });
        let agent = self.rpc.slow_request("initialize", introduction).await?;
        if agent["protocolVersion"] != VERSION {
            let spoken = &agent["protocolVersion"];
            let message =
                format!("the agent speaks version {spoken} of the protocol instead of {VERSION}");
            return FailureKind::ResponseError.err(message);
        }
        let method = resume_method(&agent);
        self.is_resumable = method.is_some();
        if let (Some(earlier), Some(method)) = (earlier, method)
            && self.resume(method, earlier).await?
        {
            return Ok(());
        }
        // Agents may install dependencies or contact their provider first.
        let opened = self.rpc.slow_request("session/new", self.session_params()).await?;
        let Some(session) = opened["sessionId"].as_str() else {
            return FailureKind::ResponseError.err("the reply to session/new has no sessionId");
        };
        session.clone_into(&mut self.session);
        self.choose_mode(&opened).await
    }

    /// Switches to the unconfined mode, if the agent has one: inside Carrel's sandbox it cannot create a
    /// sandbox of its own.
    async fn choose_mode(&mut self, opened: &Value) -> Result<()> {
        let unconfined = self.is_sandboxed && self.approvals == Approvals::Accept;
        let Some(mode) = unconfined_mode(opened).filter(|_| unconfined) else { return Ok(()) };
        let params = json!({ "sessionId": self.session, "modeId": mode });
        let reply = self.rpc.request("session/set_mode", params).await;
        self.reporter.unless_refused("mode_not_set", reply).await.map(drop)
    }

    fn session_params(&self) -> Value {
        json!({ "cwd": self.workspace.path().to_string_lossy(), "mcpServers": self.workspace.mcp_servers() })
    }

    /// Resumes a session. Returns false if the agent refuses; a new one is opened then.
    async fn resume(&mut self, method: &str, session: &str) -> Result<bool> {
        let mut params = self.session_params();
        params["sessionId"] = session.into();
        let reply = self.rpc.slow_request(method, params).await;
        let reply = self.reporter.unless_refused("thread_not_resumed", reply).await?;
        let Some(opened) = reply else { return Ok(false) };
        // `session/load` replays the conversation.
        self.rpc.drop_notifications();
        session.clone_into(&mut self.session);
        self.reporter.event("thread_resumed", None).await;
        self.choose_mode(&opened).await?;
        Ok(true)
    }

    async fn run_turn(&mut self, prompt: &str) -> Result<String> {
        let params = json!({
            "sessionId": self.session,
            "prompt": [{ "type": "text", "text": prompt }],
        });
        let id = self.rpc.send_request("session/prompt", params).await?;
        (self.prompt, self.last_message) = (Some(id), LastMessage::default());
        self.turns += 1;
        let session = format!("{}-{}", self.session, self.turns);
        let (thread, pid) = (self.session.clone(), self.rpc.process.pid);
        self.reporter.send(Event::SessionStarted { session, thread, pid }).await;
        loop {
            match self.rpc.next(self.silence_timeout).await? {
                Message::Reply { id: about, result } if about == id => {
                    self.prompt = None;
                    return self.conclude(result).await;
                }
                Message::Reply { .. } | Message::Text(_) => {}
                Message::Notification { method, params } => {
                    self.notification(&method, &params).await;
                }
                Message::Request { id, method, params } => {
                    self.handle_request(&id, &method, &params).await?;
                }
                Message::Other(line) => self.reporter.event("other_message", Some(&line)).await,
                Message::Malformed(line) => self.reporter.event("malformed", Some(&line)).await,
            }
        }
    }

    /// Counts the usage of a turn and returns its result.
    async fn conclude(&mut self, result: Result<Value, Refusal>) -> Result<String> {
        let ended = match result {
            Ok(result) => {
                if let Some(tokens) = token_usage::tokens(&result["usage"]) {
                    self.used = self.used.plus(tokens);
                    self.reporter.usage(self.used).await;
                }
                turn_result(&result, &self.last_message.text)
            }
            Err(refusal) => Err(failure_of(&refusal)),
        };
        self.reporter.turn_ended(&ended).await;
        ended.map(|()| std::mem::take(&mut self.last_message.text))
    }

    async fn notification(&mut self, method: &str, params: &Value) {
        let is_own = params["sessionId"].as_str().is_none_or(|session| session == self.session);
        if method != "session/update" || !is_own {
            return self.reporter.event(method, None).await;
        }
        let update = Update::of(&params["update"]);
        if let Some(text) = &update.text {
            self.last_message.add(text, update.message_id.as_deref());
        } else if update.ends_message {
            self.last_message.is_complete = true;
        }
        if !update.is_delta || self.throttle.is_due() {
            self.reporter.event(&update.kind, Some(&update.summary)).await;
        }
    }

    async fn handle_request(&mut self, id: &Value, method: &str, params: &Value) -> Result<()> {
        let decision = permission::decide(method, params, self.approvals);
        let hint = "; access the files directly";
        decision.reply((id, method), hint, &mut self.rpc, &self.reporter).await.map(drop)
    }

    /// Cancels the turn, and returns when the agent has replied to the prompt.
    async fn cancel(&mut self) -> Result<()> {
        self.rpc.notify("session/cancel", json!({ "sessionId": self.session })).await?;
        while let Some(prompt) = self.prompt {
            match self.rpc.next(CANCEL_TIMEOUT).await? {
                Message::Reply { id, .. } if id == prompt => self.prompt = None,
                Message::Request { id, method, .. } if method == "session/request_permission" => {
                    self.rpc.reply(&id, permission::cancelled()).await?;
                }
                Message::Request { id, method, .. } => {
                    let message = format!("{method} is too late: the turn is cancelled");
                    self.rpc.reject(&id, &message).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn end(self) -> Teardown {
        let teardown = self.rpc.close().await;
        self.workspace.leave().await;
        teardown
    }
}

impl LastMessage {
    /// Appends a chunk. A chunk with another id, or after a tool call, begins a new message.
    fn add(&mut self, text: &str, message: Option<&str>) {
        if self.is_complete || self.id.as_deref() != message {
            self.text.clear();
        }
        self.is_complete = false;
        self.id = message.map(str::to_owned);
        self.text.push_str(text);
    }
}

/// Returns the unconfined mode that a new session offers, unless it is the current one.
fn unconfined_mode(opened: &Value) -> Option<&'static str> {
    let modes = opened["modes"]["availableModes"].as_array()?;
    let offered = |mode: &&&str| modes.iter().any(|offered| offered["id"] == **mode);
    let mode = UNCONFINED_MODES.iter().find(offered)?;
    (opened["modes"]["currentModeId"] != *mode).then_some(*mode)
}

/// Returns the method that resumes a session. `session/resume` is preferred, since `session/load` replays
/// the conversation.
fn resume_method(agent: &Value) -> Option<&'static str> {
    let capabilities = &agent["agentCapabilities"];
    if capabilities["sessionCapabilities"]["resume"].is_object() {
        return Some("session/resume");
    }
    (capabilities["loadSession"] == true).then_some("session/load")
}

/// Returns the result of a turn from the reply to its prompt.
fn turn_result(result: &Value, message: &str) -> Result<()> {
    if has_no_model_reply(result) {
        let limited = FailureKind::RateLimited { retry_after: None };
        let kind = if mentions_rate_limit(message) { limited } else { FailureKind::TurnFailed };
        return kind.err(format!("the turn failed: {}", message.trim()));
    }
    match result["stopReason"].as_str() {
        // A turn that reached a limit of the agent can be continued by the next one.
        Some("end_turn" | "max_tokens" | "max_turn_requests") => Ok(()),
        Some("cancelled") => FailureKind::TurnCancelled.err("the turn was cancelled"),
        Some("refusal") => {
            FailureKind::TurnFailed.err("the turn failed: the model refused to continue")
        }
        reason => {
            let reason = reason.unwrap_or("no reason");
            FailureKind::TurnFailed.err(format!("the turn failed: it ended with {reason}"))
        }
    }
}

/// Returns true if no model has replied: `codex-acp` reports errors of its provider as a message of the
/// model, with null usage.
fn has_no_model_reply(result: &Value) -> bool {
    let is_null = |path: &str| result.pointer(path).is_some_and(Value::is_null);
    is_null("/usage") && is_null("/_meta/quota/token_count")
}

fn failure_of(refusal: &Refusal) -> AgentFailure {
    let mut message = format!("the turn failed: {}", refusal.full_message());
    let mut kind = FailureKind::TurnFailed;
    if refusal.code == AUTH_REQUIRED {
        message +=
            "; log the agent in on this machine, or list the variable with its key in agent.env";
    } else if refusal.is_rate_limit() {
        kind = FailureKind::RateLimited { retry_after: None };
    }
    AgentFailure::new(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_answer_is_the_last_message() {
        let mut last_message = LastMessage::default();
        for (text, message) in [("Let me ", None), ("see.", None)] {
            last_message.add(text, message);
        }
        assert_eq!(last_message.text, "Let me see.");
        last_message.is_complete = true;
        last_message.add("Done", None);
        last_message.add(".", None);
        assert_eq!(last_message.text, "Done.");
        last_message.add("Really", Some("2"));
        assert_eq!(last_message.text, "Really");
    }

    #[test]
    fn resume_is_preferred_over_load() {
        for (capabilities, expected) in [
            (json!({}), None),
            (json!({"loadSession": false}), None),
            (json!({"loadSession": true}), Some("session/load")),
            (
                json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}),
                Some("session/resume"),
            ),
        ] {
            assert_eq!(resume_method(&json!({ "agentCapabilities": capabilities })), expected);
        }
    }

    #[test]
    fn an_agent_with_an_unconfined_mode_is_switched_to_it() {
        let opened = |current: &str, modes: &[&str]| {
            let modes: Vec<Value> = modes.iter().map(|id| json!({ "id": id })).collect();
            json!({"modes": {"currentModeId": current, "availableModes": modes}})
        };
        let codex = ["read-only", "agent", "agent-full-access"];
        assert_eq!(unconfined_mode(&opened("agent", &codex)), Some("agent-full-access"));
        assert_eq!(unconfined_mode(&opened("agent-full-access", &codex)), None);
        assert_eq!(unconfined_mode(&opened("ask", &["ask", "code"])), None);
        assert_eq!(unconfined_mode(&json!(null)), None);
    }

    #[test]
    fn a_turn_ends_as_its_reason_says() {
        for (reason, expected) in [
            ("end_turn", None),
            ("max_tokens", None),
            ("cancelled", Some(FailureKind::TurnCancelled)),
            ("refusal", Some(FailureKind::TurnFailed)),
            ("new_reason", Some(FailureKind::TurnFailed)),
        ] {
            let ended =
                turn_result(&json!({ "stopReason": reason, "usage": null }), "too many requests");
            assert_eq!(ended.err().map(|failure| failure.kind), expected, "{reason}");
        }
    }

    #[test]
    fn a_provider_error_without_a_model_reply_is_a_failure() {
        let result = json!({"stopReason": "end_turn", "usage": null, "_meta": {"quota": {"token_count": null}}});
        let kind = |message| turn_result(&result, message).unwrap_err().kind;
        assert_eq!(
            kind("status: 429 Too Many Requests"),
            FailureKind::RateLimited { retry_after: None }
        );
        assert_eq!(kind("status: 401 Unauthorized"), FailureKind::TurnFailed);
    }
}
