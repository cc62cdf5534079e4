//! Agents that speak the Agent Client Protocol, over stdin and stdout.
//!
//! Carrel is the client: it opens a session in the workspace, prompts, and answers when the agent asks for
//! permission. The agent works on the files by itself, so it is offered neither files nor terminals.

mod permission;
mod update;

use std::time::Duration;

use carrel_config::{Approvals, ConductorConfig};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, Tokens};
use crate::failure::{AgentFailure, FailureKind, unless_stopped};
use crate::launch::{AgentWorkspace, Launcher};
use crate::process::Input;
use crate::reporter::Reporter;
use crate::rpc::{Connection, Dialect, Message, Refusal, UNKNOWN_METHOD, is_about_limits};
use crate::throttle::Throttle;
use crate::token_usage;
use crate::{Agent, OpenError, OpenRequest, Session, Teardown};
use permission::Decision;
use update::Update;

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// How agents call the mode in which they neither confine themselves nor ask: Codex, Claude Code, Gemini
/// CLI.
const UNCONFINED_MODES: [&str; 4] =
    ["agent-full-access", "full-access", "bypassPermissions", "yolo"];

/// The code of an agent that is not logged in.
const NOT_LOGGED_IN: i64 = -32000;

/// How much longer the first answer may take: a login shell and the agent have to start.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long a turn has to end when it is cancelled.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// How long the agent has to end by itself when its input has ended.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// An agent that speaks the protocol.
#[derive(Debug)]
pub(crate) struct Acp {
    launcher: Launcher,
    approvals: Approvals,
    /// How long one answer may take.
    patience: Duration,
    /// How long a turn may stay silent.
    silence: Duration,
}

impl Acp {
    pub(crate) fn new(config: &ConductorConfig) -> Self {
        let command = config.agent.command.as_deref().unwrap_or_default();
        Self {
            launcher: Launcher::new(config, command),
            approvals: config.agent.approvals,
            patience: config.codex.read_timeout,
            silence: config.codex.turn_timeout,
        }
    }
}

#[async_trait::async_trait]
impl Agent for Acp {
    async fn open(&self, opening: OpenRequest) -> Result<Box<dyn Session>, OpenError> {
        let site = AgentWorkspace::open(&opening).await?.offering(&opening);
        let process = self.launcher.start(&site, Input::Pipe).await?;
        let mut working = AcpSession {
            rpc: Connection::new(process, Dialect::Full, self.patience),
            site,
            approvals: self.approvals,
            is_walled: opening.runner.is_sandboxed(),
            patience: self.patience,
            silence: self.silence,
            reporter: Reporter::new(opening.events.clone()),
            stop: opening.stop.clone(),
            session: String::new(),
            is_lasting: false,
            turns: 0,
            prompt: None,
            said: LastMessage::default(),
            used: Tokens::default(),
            pace: Throttle::default(),
        };
        let begin = working.begin(opening.thread.as_deref());
        match unless_stopped(&opening.stop, begin).await {
            Ok(()) => Ok(Box::new(working)),
            Err(failure) => Err(OpenError { failure, teardown: working.end().await }),
        }
    }
}

/// An agent at work.
struct AcpSession {
    rpc: Connection,
    site: AgentWorkspace,
    approvals: Approvals,
    is_walled: bool,
    patience: Duration,
    silence: Duration,
    reporter: Reporter,
    stop: CancellationToken,
    session: String,
    /// Whether the session can be taken up again by another process.
    is_lasting: bool,
    turns: u64,
    /// The id of the prompt that is not answered yet.
    prompt: Option<u64>,
    said: LastMessage,
    used: Tokens,
    pace: Throttle,
}

/// What the agent has said last.
#[derive(Default)]
struct LastMessage {
    text: String,
    /// Which message it is of, where the agent tells.
    message: Option<String>,
    /// Whether something else came after it.
    is_over: bool,
}

#[async_trait::async_trait]
impl Session for AcpSession {
    fn thread(&self) -> Option<String> {
        self.is_lasting.then(|| self.session.clone())
    }

    async fn turn(&mut self, prompt: &str) -> Result<String, AgentFailure> {
        let stop = self.stop.clone();
        if stop.is_cancelled() {
            return Err(AgentFailure::stopped());
        }
        unless_stopped(&stop, self.take_turn(prompt)).await
    }

    async fn close(mut self: Box<Self>) -> Teardown {
        if self.prompt.is_some() {
            // What the agent has done so far is written down before it is ended.
            let _ = timeout(CANCEL_PATIENCE, self.cancel()).await;
        }
        self.end().await
    }
}

impl AcpSession {
    /// Introduces itself, and opens a session or takes one up again.
    async fn begin(&mut self, earlier: Option<&str>) -> Result<(), AgentFailure> {
        let introduction = json!({
            "protocolVersion": VERSION,
            "clientInfo": { "name": "carrel", "title": "Carrel", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
        });
        let limit = self.patience.saturating_add(START_PATIENCE);
        let agent = self.rpc.request_within("initialize", introduction, limit).await?;
        if agent["protocolVersion"] != VERSION {
            let spoken = &agent["protocolVersion"];
            let message =
                format!("the agent speaks version {spoken} of the protocol, not {VERSION}");
            return Err(AgentFailure::new(FailureKind::ResponseError, message));
        }
        let again = way_back(&agent);
        self.is_lasting = again.is_some();
        if let (Some(earlier), Some(method)) = (earlier, again)
            && self.take_up(method, earlier).await?
        {
            return Ok(());
        }
        // An agent may have to install what it needs, or to ask its provider.
        let opened = self.rpc.request_within("session/new", self.place(), limit).await?;
        let session = opened["sessionId"].as_str().map(str::to_owned);
        self.session = session.ok_or_else(|| {
            AgentFailure::new(
                FailureKind::ResponseError,
                "the answer to session/new names no session",
            )
        })?;
        self.choose_mode(&opened).await
    }

    /// Tells the agent that it need not confine itself, if it has a word for that. Behind walls it could
    /// not make any of its own.
    async fn choose_mode(&mut self, opened: &Value) -> Result<(), AgentFailure> {
        let needs_none = self.is_walled && self.approvals == Approvals::Accept;
        let Some(mode) = unconfined_mode(opened).filter(|_| needs_none) else { return Ok(()) };
        let params = json!({ "sessionId": self.session, "modeId": mode });
        match self.rpc.request("session/set_mode", params).await {
            Ok(_) => Ok(()),
            Err(AgentFailure { kind: FailureKind::ResponseError, message }) => {
                self.reporter.something("mode_not_set", Some(&message)).await;
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    fn place(&self) -> Value {
        json!({ "cwd": self.site.path().to_string_lossy(), "mcpServers": self.site.servers() })
    }

    /// Takes a session up again, and tells whether that worked.
    async fn take_up(&mut self, method: &str, session: &str) -> Result<bool, AgentFailure> {
        let mut params = self.place();
        params["sessionId"] = session.into();
        let limit = self.patience.saturating_add(START_PATIENCE);
        match self.rpc.request_within(method, params, limit).await {
            Ok(opened) => {
                // The conversation is told again, and is known.
                self.rpc.forget_notices();
                session.clone_into(&mut self.session);
                self.reporter.something("thread_resumed", None).await;
                self.choose_mode(&opened).await?;
                Ok(true)
            }
            Err(AgentFailure { kind: FailureKind::ResponseError, message }) => {
                self.reporter.something("thread_not_resumed", Some(&message)).await;
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn take_turn(&mut self, prompt: &str) -> Result<String, AgentFailure> {
        let params = json!({
            "sessionId": self.session,
            "prompt": [{ "type": "text", "text": prompt }],
        });
        let id = self.rpc.ask("session/prompt", params).await?;
        (self.prompt, self.said) = (Some(id), LastMessage::default());
        self.turns += 1;
        let session = format!("{}-{}", self.session, self.turns);
        let (thread, pid) = (self.session.clone(), self.rpc.pid());
        self.reporter.tell(Event::SessionStarted { session, thread, pid }).await;
        loop {
            match self.rpc.next(self.silence).await? {
                Message::Reply { id: about, result } if about == id => {
                    self.prompt = None;
                    return self.conclude(result).await;
                }
                Message::Reply { .. } | Message::Text(_) => {}
                Message::Notice { method, params } => self.note(&method, &params).await,
                Message::Request { id, method, params } => {
                    self.serve(&id, &method, &params).await?;
                }
                Message::Other(line) => self.reporter.something("other_message", Some(&line)).await,
                Message::Malformed(line) => self.reporter.something("malformed", Some(&line)).await,
            }
        }
    }

    /// Says how the turn went.
    async fn conclude(&mut self, result: Result<Value, Refusal>) -> Result<String, AgentFailure> {
        let ended = match result {
            Ok(result) => {
                if let Some(tokens) = token_usage::tokens(&result["usage"]) {
                    self.used = self.used.plus(tokens);
                    self.reporter.usage(self.used).await;
                }
                judge(&result, &self.said.text)
            }
            Err(refusal) => Err(failure_of(&refusal)),
        };
        let (kind, message) = match &ended {
            Ok(()) => ("turn_completed", None),
            Err(failure) => (failure.kind.name(), Some(failure.message.as_str())),
        };
        self.reporter.something(kind, message).await;
        ended.map(|()| std::mem::take(&mut self.said.text))
    }

    async fn note(&mut self, method: &str, params: &Value) {
        let is_own = params["sessionId"].as_str().is_none_or(|session| session == self.session);
        if method != "session/update" || !is_own {
            return self.reporter.something(method, None).await;
        }
        let update = Update::of(&params["update"]);
        if let Some(text) = &update.said {
            self.said.add(text, update.message.as_deref());
        } else if update.interrupts {
            self.said.is_over = true;
        }
        if !update.is_piece || self.pace.is_due() {
            self.reporter.something(&update.kind, Some(&update.words)).await;
        }
    }

    /// Answers a request.
    async fn serve(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Result<(), AgentFailure> {
        match method {
            "session/request_permission" => match permission::decide(params, self.approvals) {
                Decision::Allow { answer, about } => {
                    self.reporter.something("approval_auto_approved", Some(&about)).await;
                    self.rpc.answer(id, answer).await
                }
                Decision::Stop { answer, about } => {
                    let message = format!("approval is asked for: {about}");
                    let failure = AgentFailure::new(FailureKind::ApprovalRequired, message);
                    self.stop_for(id, answer, failure).await
                }
            },
            "elicitation/create" => {
                let question = params["message"].as_str().unwrap_or("the agent asks for input");
                let failure = AgentFailure::new(FailureKind::InputRequired, question);
                self.stop_for(id, json!({ "action": "cancel" }), failure).await
            }
            _ => {
                self.reporter.something("unknown_request", Some(method)).await;
                let message = format!("{method} is not offered here; work on the files yourself");
                self.rpc.refuse(id, UNKNOWN_METHOD, &message).await
            }
        }
    }

    async fn stop_for(
        &mut self,
        id: &Value,
        answer: Value,
        failure: AgentFailure,
    ) -> Result<(), AgentFailure> {
        self.reporter.something(failure.kind.name(), Some(&failure.message)).await;
        self.rpc.answer(id, answer).await?;
        Err(failure)
    }

    /// Cancels the turn, and waits until the agent says that it has stopped.
    async fn cancel(&mut self) -> Result<(), AgentFailure> {
        self.rpc.notify("session/cancel", json!({ "sessionId": self.session })).await?;
        while let Some(prompt) = self.prompt {
            match self.rpc.next(CANCEL_PATIENCE).await? {
                Message::Reply { id, .. } if id == prompt => self.prompt = None,
                Message::Request { id, method, .. } if method == "session/request_permission" => {
                    self.rpc.answer(&id, permission::cancelled()).await?;
                }
                Message::Request { id, method, .. } => {
                    let message = format!("{method} comes too late");
                    self.rpc.refuse(&id, UNKNOWN_METHOD, &message).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn end(self) -> Teardown {
        let teardown = self.rpc.close(END_PATIENCE).await;
        self.site.leave().await;
        teardown
    }
}

impl LastMessage {
    /// Adds a piece. Another message, or one after something else, takes the place of the last.
    fn add(&mut self, text: &str, message: Option<&str>) {
        if self.is_over || self.message.as_deref() != message {
            self.text.clear();
        }
        self.is_over = false;
        self.message = message.map(str::to_owned);
        self.text.push_str(text);
    }
}

/// Returns the mode in which an agent leaves it to others to confine it, if it has one and is in another.
fn unconfined_mode(opened: &Value) -> Option<&'static str> {
    let modes = opened["modes"]["availableModes"].as_array()?;
    let offered = |mode: &&&str| modes.iter().any(|offered| offered["id"] == **mode);
    let mode = UNCONFINED_MODES.iter().find(offered)?;
    (opened["modes"]["currentModeId"] != *mode).then_some(*mode)
}

/// Returns the request that takes a session up again, if the agent has one.
fn way_back(agent: &Value) -> Option<&'static str> {
    let capabilities = &agent["agentCapabilities"];
    if capabilities["sessionCapabilities"]["resume"].is_object() {
        return Some("session/resume");
    }
    (capabilities["loadSession"] == true).then_some("session/load")
}

/// Says how a turn went that the agent has answered.
fn judge(result: &Value, said: &str) -> Result<(), AgentFailure> {
    if was_without_model(result) {
        let limited = FailureKind::RateLimited { retry_after: None };
        let kind = if is_about_limits(said) { limited } else { FailureKind::TurnFailed };
        return Err(AgentFailure::new(kind, format!("the turn failed: {}", said.trim())));
    }
    match result["stopReason"].as_str() {
        // A turn that was cut short by a limit of the agent's can be gone on with.
        Some("end_turn" | "max_tokens" | "max_turn_requests") => Ok(()),
        Some("cancelled") => {
            Err(AgentFailure::new(FailureKind::TurnCancelled, "the turn was cancelled"))
        }
        Some("refusal") => Err(AgentFailure::new(
            FailureKind::TurnFailed,
            "the turn failed: the model refuses to go on",
        )),
        reason => {
            let message =
                format!("the turn failed: it ended with {}", reason.unwrap_or("no reason"));
            Err(AgentFailure::new(FailureKind::TurnFailed, message))
        }
    }
}

/// Tells whether no model has answered: `codex-acp` says what its provider refuses as if the model had
/// said it, and that nothing was used.
fn was_without_model(result: &Value) -> bool {
    let is_null = |path: &str| result.pointer(path).is_some_and(Value::is_null);
    is_null("/usage") && is_null("/_meta/quota/token_count")
}

fn failure_of(refusal: &Refusal) -> AgentFailure {
    let message = format!("the turn failed: {}", refusal.told());
    let kind = match refusal {
        Refusal { code: NOT_LOGGED_IN, .. } => {
            let message = format!(
                "{message}; log the agent in on this machine, or list the variable with its key in agent.env"
            );
            return AgentFailure::new(FailureKind::TurnFailed, message);
        }
        refusal if refusal.is_limit() => FailureKind::RateLimited { retry_after: None },
        _ => FailureKind::TurnFailed,
    };
    AgentFailure::new(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_answer_is_the_last_message() {
        let mut said = LastMessage::default();
        for (text, message) in [("Let me ", None), ("see.", None)] {
            said.add(text, message);
        }
        assert_eq!(said.text, "Let me see.");
        said.is_over = true;
        said.add("Done", None);
        said.add(".", None);
        assert_eq!(said.text, "Done.");
        said.add("Really", Some("2"));
        assert_eq!(said.text, "Really");
    }

    #[test]
    fn a_session_is_taken_up_again_in_the_best_way_there_is() {
        for (capabilities, expected) in [
            (json!({}), None),
            (json!({"loadSession": false}), None),
            (json!({"loadSession": true}), Some("session/load")),
            (
                json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}),
                Some("session/resume"),
            ),
        ] {
            assert_eq!(way_back(&json!({ "agentCapabilities": capabilities })), expected);
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
            let ended = judge(&json!({ "stopReason": reason, "usage": null }), "too many requests");
            assert_eq!(ended.err().map(|failure| failure.kind), expected, "{reason}");
        }
    }

    #[test]
    fn an_answer_that_is_of_no_model_is_no_success() {
        let result = json!({"stopReason": "end_turn", "usage": null, "_meta": {"quota": {"token_count": null}}});
        let kind = |said| judge(&result, said).unwrap_err().kind;
        assert_eq!(
            kind("status: 429 Too Many Requests"),
            FailureKind::RateLimited { retry_after: None }
        );
        assert_eq!(kind("status: 401 Unauthorized"), FailureKind::TurnFailed);
    }
}
