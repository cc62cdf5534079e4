//! The Codex app server, over stdin and stdout.
//!
//! A session starts the server, begins a thread or takes one up again, and takes turns in it. The server
//! asks back: for approval, for input, for tools. Every request of its is answered, if only with an error,
//! so that it never waits for what does not come.

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
use crate::failure::{AgentFailure, FailureKind, unless_stopped};
use crate::launch::{AgentWorkspace, Launcher};
use crate::process::Input;
use crate::reporter::Reporter;
use crate::rpc::{Connection, Dialect, Message, UNKNOWN_METHOD};
use crate::session_tools::{SessionTools, ToolOutcome};
use crate::throttle::Throttle;
use crate::tools::ToolCall;
use crate::{Agent, OpenError, OpenRequest, Session, Teardown};
use server_request::RequestDecision;
use settings::Settings;
use usage_tracker::UsageTracker;

/// How much longer the first answer may take: a login shell and the server have to start.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long a turn has to end when it is interrupted.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(2);

/// How long the server has to end by itself when its input has ended.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// What answers to its tools are made for: its model sees text alone.
const CLIENT: &str = "codex";

/// The Codex app server as an agent.
#[derive(Debug)]
pub(crate) struct Codex {
    launcher: Launcher,
    settings: Settings,
    /// How long one answer may take.
    patience: Duration,
    /// How long a turn may stay silent.
    silence: Duration,
}

impl Codex {
    /// Tells whether the server is to leave its workspace as it is.
    pub(crate) fn reads_only(config: &ConductorConfig) -> bool {
        Settings::new(config).reads_only()
    }

    pub(crate) fn new(config: &ConductorConfig) -> Self {
        let settings = Settings::new(config);
        let launcher = Launcher::new(config, &config.codex.command);
        Self {
            launcher: if settings.reads_only() { launcher.reading_only() } else { launcher },
            settings,
            patience: config.codex.read_timeout,
            silence: config.codex.turn_timeout,
        }
    }
}

#[async_trait::async_trait]
impl Agent for Codex {
    async fn open(&self, opening: OpenRequest) -> Result<Box<dyn Session>, OpenError> {
        let site = AgentWorkspace::open(&opening).await?;
        let process = self.launcher.start(&site, Input::Pipe).await?;
        let mut working = CodexSession {
            rpc: Connection::new(process, Dialect::Bare, self.patience),
            settings: self.settings.bound(&site, opening.runner.is_sandboxed()),
            site,
            silence: self.silence,
            patience: self.patience,
            tools: SessionTools::new(Arc::clone(&opening.tools), &opening.stop),
            calls: JoinSet::new(),
            reporter: Reporter::new(opening.events.clone()),
            stop: opening.stop.clone(),
            thread: String::new(),
            turn: None,
            answer: String::new(),
            spending: UsageTracker::default(),
            pace: Throttle::default(),
        };
        match unless_stopped(&opening.stop, working.begin(&opening)).await {
            Ok(()) => Ok(Box::new(working)),
            Err(failure) => Err(OpenError { failure, teardown: working.end().await }),
        }
    }
}

/// A server at work.
struct CodexSession {
    rpc: Connection,
    site: AgentWorkspace,
    settings: settings::SessionSettings,
    silence: Duration,
    patience: Duration,
    tools: Arc<SessionTools>,
    /// Tools that the server waits for, each with the id of its request.
    calls: JoinSet<(Value, ToolOutcome)>,
    reporter: Reporter,
    stop: CancellationToken,
    thread: String,
    /// The turn that has begun and is not over.
    turn: Option<String>,
    /// What was said last in it.
    answer: String,
    spending: UsageTracker,
    pace: Throttle,
}

#[async_trait::async_trait]
impl Session for CodexSession {
    fn thread(&self) -> Option<String> {
        Some(self.thread.clone())
    }

    async fn turn(&mut self, prompt: &str) -> Result<String, AgentFailure> {
        let stop = self.stop.clone();
        if stop.is_cancelled() {
            return Err(AgentFailure::stopped());
        }
        unless_stopped(&stop, self.take_turn(prompt)).await
    }

    async fn close(mut self: Box<Self>) -> Teardown {
        if let Some(turn) = self.turn.take() {
            // A turn that is interrupted is written down as that, and can be gone on with.
            let _ = timeout(INTERRUPT_PATIENCE, self.interrupt(turn)).await;
        }
        self.end().await
    }
}

impl CodexSession {
    /// Introduces itself, and begins a thread or takes one up again.
    async fn begin(&mut self, opening: &OpenRequest) -> Result<(), AgentFailure> {
        let version = env!("CARGO_PKG_VERSION");
        let introduction = json!({
            "clientInfo": { "name": "carrel", "title": "Carrel", "version": version },
            "capabilities": { "experimentalApi": true },
        });
        let limit = self.patience.saturating_add(START_PATIENCE);
        self.rpc.request_within("initialize", introduction, limit).await?;
        self.rpc.notify("initialized", json!({})).await?;
        if let Some(thread) = &opening.thread
            && self.resume(thread).await?
        {
            return Ok(());
        }
        let tools: Vec<Value> = self.tools.list().iter().map(of_function).collect();
        let mut params = self.settings.thread();
        params["dynamicTools"] = tools.into();
        let reply = self.rpc.request("thread/start", params).await?;
        self.thread = thread_of(&reply, "thread/start")?;
        let name = json!({ "threadId": self.thread, "name": opening.title });
        // A server that does not know names says so, and nobody minds.
        self.rpc.ask("thread/name/set", name).await.map(drop)
    }

    /// Takes a thread up again, and tells whether that worked.
    async fn resume(&mut self, thread: &str) -> Result<bool, AgentFailure> {
        let mut params = self.settings.thread();
        params["threadId"] = thread.into();
        params["excludeTurns"] = true.into();
        match self.rpc.request("thread/resume", params).await {
            Ok(reply) => {
                self.thread = thread_of(&reply, "thread/resume")?;
                self.spending.take_up(&self.thread);
                self.reporter.something("thread_resumed", None).await;
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
        let mut params = self.settings.turn();
        params["threadId"] = self.thread.as_str().into();
        params["input"] = json!([{ "type": "text", "text": prompt }]);
        let reply = match self.rpc.request("turn/start", params).await {
            Ok(reply) => reply,
            Err(failure) => {
                self.reporter.something("startup_failed", Some(&failure.message)).await;
                return Err(failure);
            }
        };
        let turn = text(&reply, "/turn/id").ok_or_else(|| nameless("turn/start"))?.to_owned();
        let session = format!("{}-{turn}", self.thread);
        self.spending.begin_turn(&turn);
        (self.turn, self.answer) = (Some(turn), String::new());
        let (thread, pid) = (self.thread.clone(), self.rpc.pid());
        self.reporter.tell(Event::SessionStarted { session, thread, pid }).await;
        loop {
            // A server that waits for a tool may be silent.
            let silence = if self.calls.is_empty() { self.silence } else { Duration::MAX };
            let message = tokio::select! {
                biased;
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    self.answer_call(done).await?;
                    continue;
                }
                message = self.rpc.next(silence) => message?,
            };
            if let Some(answer) = self.heed(message).await? {
                return Ok(answer);
            }
        }
    }

    /// Does what a message asks for. Returns the answer once the turn is over.
    async fn heed(&mut self, message: Message) -> Result<Option<String>, AgentFailure> {
        match message {
            Message::Notice { method, params } => return self.note(&method, &params).await,
            Message::Request { id, method, params } => self.serve(&id, &method, &params).await?,
            // Of a request that nobody waits for.
            Message::Reply { .. } | Message::Text(_) => {}
            Message::Other(line) => self.reporter.something("other_message", Some(&line)).await,
            Message::Malformed(line) => self.reporter.something("malformed", Some(&line)).await,
        }
        Ok(None)
    }

    async fn note(&mut self, method: &str, params: &Value) -> Result<Option<String>, AgentFailure> {
        if let Some(tokens) = self.spending.tokens(method, params) {
            self.reporter.usage(tokens).await;
        }
        if let Some(limits) = self.spending.limits(params) {
            self.reporter.tell(Event::RateLimits { limits }).await;
        }
        if self.is_own(params) {
            if let Some(text) = notification::message_of(method, params) {
                text.clone_into(&mut self.answer);
            }
            if let Some(ended) = turn_end::of(method, params, &self.spending) {
                self.turn = None;
                let kind = turn_end::name(&ended);
                let message = ended.as_ref().err().map(|failure| failure.message.clone());
                self.reporter.something(kind, message.as_deref()).await;
                return ended.map(|()| Some(std::mem::take(&mut self.answer)));
            }
        }
        if !notification::is_piece(method) || self.pace.is_due() {
            self.reporter.something(method, Some(&notification::of(method, params))).await;
        }
        Ok(None)
    }

    /// Tells whether a notice is about this thread and turn: agents may have agents of their own.
    fn is_own(&self, params: &Value) -> bool {
        let same =
            |path, own: Option<&str>| text(params, path).is_none_or(|named| Some(named) == own);
        let turn = self.turn.as_deref();
        same("/threadId", Some(&self.thread)) && same("/turn/id", turn) && same("/turnId", turn)
    }

    fn ends(&self, method: &str, params: &Value) -> bool {
        self.is_own(params) && turn_end::of(method, params, &self.spending).is_some()
    }

    /// Answers a request.
    async fn serve(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Result<(), AgentFailure> {
        match server_request::decide(method, params, self.settings.accepts()) {
            RequestDecision::Accept { answer, about } => {
                self.reporter.something("approval_auto_approved", Some(&about)).await;
                self.rpc.answer(id, answer).await
            }
            RequestDecision::PassOver { answer, about } => {
                self.reporter.something("input_not_given", Some(&about)).await;
                self.rpc.answer(id, answer).await
            }
            RequestDecision::Stop { answer, failure } => {
                self.reporter
                    .something(turn_end::name(&Err(failure.clone())), Some(&failure.message))
                    .await;
                self.rpc.answer(id, answer).await?;
                Err(failure)
            }
            RequestDecision::Use { tool, arguments } => {
                let call = ToolCall {
                    client: Some(CLIENT.to_owned()),
                    ..ToolCall::new(tool, arguments, self.tools.cancellation())
                };
                let (id, call) = (id.clone(), self.tools.begin(call));
                self.calls.spawn(async move { (id, call.await) });
                Ok(())
            }
            RequestDecision::Unknown => {
                self.reporter.something("unknown_request", Some(method)).await;
                let message = format!("{method} is not known here");
                self.rpc.refuse(id, UNKNOWN_METHOD, &message).await
            }
        }
    }

    /// Tells the server what came of a tool.
    async fn answer_call(
        &mut self,
        done: Result<(Value, ToolOutcome), JoinError>,
    ) -> Result<(), AgentFailure> {
        let lost =
            |error| AgentFailure::new(FailureKind::TurnFailed, format!("a tool is lost: {error}"));
        let (id, used) = done.map_err(lost)?;
        self.reporter.something(used.event, Some(&used.tool)).await;
        let items: Vec<Value> = used.answer.content.iter().map(item_of).collect();
        let success = !used.answer.is_error;
        let answer = json!({ "success": success, "output": used.text(), "contentItems": items });
        self.rpc.answer(&id, answer).await
    }

    /// Interrupts a turn, and waits until it is over.
    async fn interrupt(&mut self, turn: String) -> Result<(), AgentFailure> {
        let params = json!({ "threadId": self.thread, "turnId": turn });
        self.turn = Some(turn);
        self.rpc.ask("turn/interrupt", params).await?;
        while self.turn.is_some() {
            match self.rpc.next(INTERRUPT_PATIENCE).await? {
                Message::Request { id, method, .. } => {
                    let message = format!("{method} comes too late");
                    self.rpc.refuse(&id, UNKNOWN_METHOD, &message).await?;
                }
                Message::Notice { method, params } if self.ends(&method, &params) => {
                    self.turn = None;
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn end(self) -> Teardown {
        let teardown = self.rpc.close(END_PATIENCE).await;
        self.tools.close().await;
        self.site.leave().await;
        teardown
    }
}

/// Describes a piece of an answer as the server wants it.
fn item_of(piece: &Value) -> Value {
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

fn thread_of(reply: &Value, method: &str) -> Result<String, AgentFailure> {
    text(reply, "/thread/id").map(str::to_owned).ok_or_else(|| nameless(method))
}

fn nameless(method: &str) -> AgentFailure {
    let message = format!("the answer to {method} names nothing");
    AgentFailure::new(FailureKind::ResponseError, message)
}

/// Describes a tool as the server wants it.
fn of_function(tool: &Value) -> Value {
    let mut tool = tool.clone();
    tool["type"] = "function".into();
    tool
}
