//! Plain commands as agents: the prompt on stdin, events on stdout, the result as exit status.
//!
//! Each turn starts the command anew with the prompt of that turn; there is no conversation to resume. A
//! line on stdout that is a JSON object with the member `event` is an event ([`output_line`]), any other a
//! message; the last message is the answer. Status 0 is success, unless the command asked for input. Other statuses are a
//! failure, or a rate limit if the command reported one. Processes that outlive the command are killed
//! after each turn.

mod output_line;

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, Tokens};
use crate::failure::{AgentFailure, FailureKind, Result, unless_stopped};
use crate::launch::{AgentWorkspace, Launcher};
use crate::line_splitter::OutputLine;
use crate::process::{ExitReport, Input, Process, ProcessEvent};
use crate::reporter::Reporter;
use crate::{Agent, OpenError, OpenRequest, Session, Teardown};
use output_line::OutputEvent;

/// The time for leftover processes to end by themselves after a turn.
const EXIT_TIMEOUT: Duration = Duration::ZERO;

#[derive(Debug)]
pub(crate) struct CommandAgent {
    pub(crate) launcher: Launcher,
    pub(crate) silence_timeout: Duration,
}

#[async_trait::async_trait]
impl Agent for CommandAgent {
    async fn open(&self, request: OpenRequest) -> Result<Box<dyn Session>, OpenError> {
        let workspace = AgentWorkspace::open(&request).await?.with_tools(&request);
        Ok(Box::new(CommandSession {
            launcher: self.launcher.clone(),
            silence_timeout: self.silence_timeout,
            workspace,
            reporter: Reporter(request.events),
            stop: request.stop,
            name: format!("command-{:016x}", fastrand::u64(..)),
            turns: 0,
            used: Tokens::default(),
            process: None,
            teardown: Teardown::Complete,
        }))
    }
}

struct CommandSession {
    launcher: Launcher,
    silence_timeout: Duration,
    workspace: AgentWorkspace,
    reporter: Reporter,
    stop: CancellationToken,
    name: String,
    turns: u64,
    used: Tokens,
    process: Option<Process>,
    teardown: Teardown,
}

#[derive(Default)]
struct Turn {
    answer: String,
    used: Tokens,
    question: Option<String>,
    limited: Option<(Option<Duration>, String)>,
}

#[async_trait::async_trait]
impl Session for CommandSession {
    fn thread(&self) -> Option<String> {
        None
    }

    async fn turn(&mut self, prompt: &str) -> Result<String> {
        if self.stop.is_cancelled() {
            return Err(AgentFailure::stopped());
        }
        let process = self.launcher.start(&self.workspace, Input::Text(prompt.to_owned())).await?;
        self.turns += 1;
        let session = format!("{}-{}", self.name, self.turns);
        let (thread, pid) = (self.name.clone(), process.pid);
        self.process = Some(process);
        let stop = self.stop.clone();
        let turn = async {
            self.reporter.send(Event::SessionStarted { session, thread, pid }).await;
            self.read_events().await
        };
        let ended = unless_stopped(&stop, turn).await;
        self.end_process().await;
        ended
    }

    async fn close(mut self: Box<Self>) -> Teardown {
        self.end_process().await;
        self.workspace.leave().await;
        self.teardown
    }
}

impl CommandSession {
    async fn read_events(&mut self) -> Result<String> {
        let mut turn = Turn::default();
        loop {
            let process = self.process.as_mut().expect("started by `turn`");
            let Ok(event) = timeout(self.silence_timeout, process.next()).await else {
                let limit = self.silence_timeout.as_millis();
                let message =
                    format!("the command was silent for {limit} ms (codex.turn_timeout_ms)");
                return FailureKind::TurnTimeout.err(message);
            };
            match event {
                Some(ProcessEvent::Stdout(line)) => self.handle_line(&mut turn, line).await,
                Some(ProcessEvent::Stderr(OutputLine::Text(text))) => {
                    self.reporter.event("stderr", Some(&text)).await;
                }
                Some(ProcessEvent::Stderr(OutputLine::TooLong { .. })) => {}
                Some(ProcessEvent::Exited(report)) => {
                    self.used = self.used.plus(turn.used);
                    return turn.into_result(&report);
                }
                None => {
                    return FailureKind::Exited.err("the command has exited");
                }
            }
        }
    }

    async fn handle_line(&mut self, turn: &mut Turn, line: OutputLine) {
        let reporter = &self.reporter;
        match OutputEvent::of(line) {
            OutputEvent::Blank => {}
            OutputEvent::Message(text) => {
                reporter.event("message", Some(&text)).await;
                turn.answer = text;
            }
            OutputEvent::Usage(tokens) => {
                turn.used = turn.used.at_least(tokens);
                reporter.usage(self.used.plus(turn.used)).await;
            }
            OutputEvent::RateLimits(limits) => reporter.send(Event::RateLimits { limits }).await,
            OutputEvent::RateLimited { retry_after, message } => {
                reporter.event("rate_limited", Some(&message)).await;
                turn.limited = Some((retry_after, message));
            }
            OutputEvent::InputRequired(question) => {
                reporter.event("turn_input_required", Some(&question)).await;
                turn.question = Some(question);
            }
            OutputEvent::Other { kind, message } => {
                reporter.event(&kind, message.as_deref()).await;
            }
            OutputEvent::Malformed(message) => reporter.event("malformed", Some(&message)).await,
        }
    }

    async fn end_process(&mut self) {
        if let Some(process) = self.process.take()
            && process.close(EXIT_TIMEOUT).await == Teardown::Incomplete
        {
            self.teardown = Teardown::Incomplete;
        }
    }
}

impl Turn {
    /// Returns the result of the turn from its events and the exit status.
    fn into_result(self, report: &ExitReport) -> Result<String> {
        if let Some(question) = self.question {
            return FailureKind::InputRequired.err(question);
        }
        match (report.status, self.limited) {
            (Some(0), _) => Ok(self.answer),
            (_, Some((retry_after, message))) => {
                FailureKind::RateLimited { retry_after }.err(message)
            }
            (status, None) => {
                let kind = match report.failure_kind() {
                    FailureKind::Exited if status.is_some() => FailureKind::TurnFailed,
                    kind => kind,
                };
                kind.err(format!("the command failed: {}", report.description))
            }
        }
    }
}
