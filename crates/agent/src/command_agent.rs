//! Plain commands: the prompt on stdin, the work, and an exit status.
//!
//! Each turn starts the command again, with the prompt of that turn. What it writes to stdout is heard
//! line by line: a JSON object with the member `event` as what it says there, anything else as a message.

mod output_line;

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, Tokens};
use crate::failure::{AgentFailure, FailureKind, unless_stopped};
use crate::launch::{AgentWorkspace, Launcher};
use crate::line_splitter::OutputLine;
use crate::process::{ExitReport, Input, Process, ProcessEvent};
use crate::reporter::Reporter;
use crate::{Agent, OpenError, OpenRequest, Session, Teardown};
use output_line::OutputEvent;

/// The status of a shell that did not find the program.
const NOT_FOUND: i32 = 127;

/// How long a command that is in no turn has to end by itself.
const NO_PATIENCE: Duration = Duration::ZERO;

/// An agent that is a plain command.
#[derive(Debug)]
pub(crate) struct CommandAgent {
    pub(crate) launcher: Launcher,
    /// How long a turn may stay silent.
    pub(crate) silence: Duration,
}

#[async_trait::async_trait]
impl Agent for CommandAgent {
    async fn open(&self, opening: OpenRequest) -> Result<Box<dyn Session>, OpenError> {
        let site = AgentWorkspace::open(&opening).await?.offering(&opening);
        Ok(Box::new(CommandSession {
            launcher: self.launcher.clone(),
            silence: self.silence,
            site,
            reporter: Reporter::new(opening.events),
            stop: opening.stop,
            name: format!("command-{:016x}", fastrand::u64(..)),
            turns: 0,
            used: Tokens::default(),
            process: None,
            teardown: Teardown::Complete,
        }))
    }
}

/// A command that takes one turn after the other.
struct CommandSession {
    launcher: Launcher,
    silence: Duration,
    site: AgentWorkspace,
    reporter: Reporter,
    stop: CancellationToken,
    name: String,
    turns: u64,
    /// What the turns that are over have used.
    used: Tokens,
    process: Option<Process>,
    teardown: Teardown,
}

/// What is remembered of a turn.
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

    async fn turn(&mut self, prompt: &str) -> Result<String, AgentFailure> {
        if self.stop.is_cancelled() {
            return Err(AgentFailure::stopped());
        }
        let process = self.launcher.start(&self.site, Input::Text(prompt.to_owned())).await?;
        self.turns += 1;
        let session = format!("{}-{}", self.name, self.turns);
        let (thread, pid) = (self.name.clone(), process.pid);
        self.process = Some(process);
        let stop = self.stop.clone();
        let turn = async {
            self.reporter.tell(Event::SessionStarted { session, thread, pid }).await;
            self.listen().await
        };
        let ended = unless_stopped(&stop, turn).await;
        self.end_process().await;
        ended
    }

    async fn close(mut self: Box<Self>) -> Teardown {
        self.end_process().await;
        self.site.leave().await;
        self.teardown
    }
}

impl CommandSession {
    /// Listens until the command is over.
    async fn listen(&mut self) -> Result<String, AgentFailure> {
        let mut turn = Turn::default();
        loop {
            let process = self.process.as_mut().expect("it was started");
            let Ok(heard) = timeout(self.silence, process.next()).await else {
                let limit = self.silence.as_millis();
                let message =
                    format!("the command was silent for {limit} ms (codex.turn_timeout_ms)");
                return Err(AgentFailure::new(FailureKind::TurnTimeout, message));
            };
            match heard {
                Some(ProcessEvent::Stdout(line)) => self.hear(&mut turn, line).await,
                Some(ProcessEvent::Stderr(OutputLine::Text(text))) => {
                    self.reporter.something("stderr", Some(&text)).await;
                }
                Some(ProcessEvent::Stderr(OutputLine::TooLong { .. })) => {}
                Some(ProcessEvent::Exited(ending)) => {
                    self.used = self.used.plus(turn.used);
                    return turn.judge(&ending);
                }
                None => return Err(AgentFailure::new(FailureKind::Exited, "the command is gone")),
            }
        }
    }

    async fn hear(&mut self, turn: &mut Turn, line: OutputLine) {
        let reporter = &self.reporter;
        match OutputEvent::of(line) {
            OutputEvent::Blank => {}
            OutputEvent::Message(text) => {
                reporter.something("message", Some(&text)).await;
                turn.answer = text;
            }
            OutputEvent::Usage(tokens) => {
                turn.used = turn.used.at_least(tokens);
                reporter.usage(self.used.plus(turn.used)).await;
            }
            OutputEvent::RateLimits(limits) => reporter.tell(Event::RateLimits { limits }).await,
            OutputEvent::RateLimited { retry_after, message } => {
                reporter.something("rate_limited", Some(&message)).await;
                turn.limited = Some((retry_after, message));
            }
            OutputEvent::InputRequired(question) => {
                reporter.something("turn_input_required", Some(&question)).await;
                turn.question = Some(question);
            }
            OutputEvent::Other { kind, message } => {
                reporter.something(&kind, message.as_deref()).await;
            }
            OutputEvent::Malformed(message) => {
                reporter.something("malformed", Some(&message)).await
            }
        }
    }

    async fn end_process(&mut self) {
        if let Some(process) = self.process.take()
            && process.close(NO_PATIENCE).await == Teardown::Incomplete
        {
            self.teardown = Teardown::Incomplete;
        }
    }
}

impl Turn {
    /// Says how the turn went, by what was said and how the command ended.
    fn judge(self, ending: &ExitReport) -> Result<String, AgentFailure> {
        if let Some(question) = self.question {
            return Err(AgentFailure::new(FailureKind::InputRequired, question));
        }
        match (ending.status, self.limited) {
            (Some(0), _) => Ok(self.answer),
            (_, Some((retry_after, message))) => {
                Err(AgentFailure::new(FailureKind::RateLimited { retry_after }, message))
            }
            (status, None) => {
                let kind = match status {
                    Some(NOT_FOUND) => FailureKind::NotFound,
                    Some(_) => FailureKind::TurnFailed,
                    None => FailureKind::Exited,
                };
                let message = format!("the command did not end well: {}", ending.account);
                Err(AgentFailure::new(kind, message))
            }
        }
    }
}
