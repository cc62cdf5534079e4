//! One run: a workspace, the hooks around it, an agent and its turns.

mod event_reader;
mod prompts;
mod spans;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;

use carrel_agent::{AgentFailure, FailureKind, OpenError, OpenRequest, Teardown, Tools};
use carrel_domain::{Clock, Identifier, message_of};
use carrel_runner::Runner;
use carrel_workspace::{Create, Hook, Hooks, Workspace, Workspaces};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info};

use self::event_reader::EventReader;
use super::ToolsRequest;
use super::event_loop::Message;
use super::issue_tools::IssueTools;
use super::setup::Setup;
use super::takeover;
use super::transcript::{Transcript, TranscriptWriter};
use crate::claimed_issue::BlockReason;
use crate::effect::Dispatch;
use crate::event::{Event, RunEnd};

/// Events of an agent that may wait to be heard.
const WAITING_EVENTS: usize = 256;

/// What a run is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnCommand {
    /// Begin this turn.
    Turn(u64),
    /// There is no further turn.
    Finish,
}

/// A run that is to be.
#[derive(Debug)]
pub(super) struct RunJob {
    pub(super) start: Dispatch,
    pub(super) setup: Arc<Setup>,
    pub(super) runner: Arc<Runner>,
    pub(super) clock: Arc<dyn Clock>,
    /// Where events go.
    pub(super) inbox: mpsc::Sender<Message>,
    /// What is to follow after a turn.
    pub(super) orders: mpsc::Receiver<TurnCommand>,
    /// Ends it in the middle.
    pub(super) stop: CancellationToken,
    /// What writes down what happens.
    pub(super) transcripts: TranscriptWriter,
    /// Something of an earlier run may be left in the workspace, and is waited for.
    pub(super) settle: bool,
}

/// A run under way.
struct RunInProgress {
    job: RunJob,
    remains: Teardown,
    transcript: Transcript,
}

impl RunJob {
    /// Does the run, and tells what is left of it.
    pub(super) async fn run(self) -> (RunEnd, Teardown) {
        let span = spans::run(&self.start);
        let (end, remains) = self.run_within().instrument(span.clone()).await;
        spans::run_ended(&span, &end);
        (end, remains)
    }

    async fn run_within(self) -> (RunEnd, Teardown) {
        let secrets = self.setup.workflow.known_secrets();
        let transcript =
            self.transcripts.begin(&self.start, secrets, Arc::clone(&self.clock)).await;
        let Dispatch { run, issue, attempt, thread, .. } = &self.start;
        let began = json!({ "run": run, "issue": issue, "attempt": attempt, "thread": thread });
        transcript.note("run_started", began).await;
        let mut doing = RunInProgress { job: self, transcript, remains: Teardown::Complete };
        let end = doing.run().await;
        let (outcome, error) = super::journal::outcome(&end);
        let transcript = doing.transcript;
        transcript.note("run_ended", json!({ "outcome": outcome, "error": error })).await;
        transcript.close().await;
        (end, doing.remains)
    }
}

impl RunInProgress {
    async fn run(&mut self) -> RunEnd {
        match self.place().await {
            Ok((workspace, path)) => {
                self.send(Event::WorkspaceReady(self.job.start.run, path)).await;
                self.work(workspace).await
            }
            Err(error) => RunEnd::Failed(error),
        }
    }

    /// Makes the workspace, or finds it where it was, and takes it into use.
    async fn place(&mut self) -> Result<(Arc<Workspace>, PathBuf), String> {
        let issue = &self.job.start.issue;
        let identifier = Identifier::parse(&issue.identifier).map_err(|error| error.to_string())?;
        let workspaces = self.root(&identifier);
        if self.job.settle {
            let settled = takeover::settle(&workspaces, &identifier).await;
            settled.map_err(|error| message_of(&error))?;
        }
        let request = Create {
            issue_id: Some(issue.id.0.clone()),
            tracker: Some(self.job.setup.tracker_name.clone()),
            attempt: self.job.start.attempt,
            ..Create::new(identifier.clone())
        };
        let created = workspaces.create(request, &self.hooks()).await;
        let created = created.map_err(|error| message_of(&error))?;
        let path = created.path.display().to_string();
        let placed = json!({ "workspace": path, "created": created.created });
        self.transcript.note("workspace", placed).await;
        let opened = workspaces.open(&identifier).await.map_err(|error| message_of(&error))?;
        Ok((Arc::new(opened), created.path))
    }

    /// Returns the root of the issue's workspace: the one where it was worked on before, as long as
    /// that workspace is there.
    fn root(&self, identifier: &Identifier) -> Workspaces {
        let there = self.job.start.workspace.as_deref().filter(|path| path.is_dir());
        let there = there.and_then(|path| self.job.setup.workspaces_of(path));
        match there {
            Some(there) if there.record(identifier).is_ok() => there,
            _ => self.job.setup.workspaces.clone(),
        }
    }

    fn hooks(&self) -> Hooks {
        self.job.setup.hooks.cancelled_by(self.job.stop.clone())
    }

    /// Runs the agent between the two hooks.
    async fn work(&mut self, workspace: Arc<Workspace>) -> RunEnd {
        let hooks = self.hooks();
        let attempt = self.job.start.attempt;
        let end = match workspace.run_hook(Hook::BeforeRun, &hooks, attempt).await {
            Ok(()) => self.speak(&workspace).await,
            Err(error) => RunEnd::Failed(message_of(&error)),
        };
        // A run that is stopped is cleaned up after as well; the hook has a deadline of its own.
        if let Err(error) = workspace.run_hook(Hook::AfterRun, &hooks, attempt).await {
            self.transcript.note("after_run_failed", json!({ "error": message_of(&error) })).await;
        }
        end
    }

    /// Prepares what the agent needs, and takes turns with it. None of its tools runs when this returns.
    async fn speak(&mut self, workspace: &Arc<Workspace>) -> RunEnd {
        let prompt = match prompts::first(&self.job.setup.workflow.prompt, &self.job.start) {
            Ok(prompt) => prompt,
            Err(error) => return RunEnd::Failed(format!("{}: {error}", error.kind())),
        };
        let tools = match self.tools(workspace).await {
            Ok(tools) => tools,
            Err(error) => return RunEnd::Failed(error),
        };
        let end = self.converse(workspace, prompt, Arc::clone(&tools)).await;
        tools.close().await;
        end
    }

    /// Opens a session, takes its turns and closes it.
    async fn converse(
        &mut self,
        workspace: &Arc<Workspace>,
        prompt: String,
        tools: Arc<dyn Tools>,
    ) -> RunEnd {
        let (events, heard) = mpsc::channel(WAITING_EVENTS);
        let mut reader = EventReader::new(self.job.start.run, heard, self.job.inbox.clone());
        let opening = self.opening(workspace, tools, events);
        let agent = Arc::clone(&self.job.setup.agent);
        let opened = reader.during(&self.transcript, agent.open(opening)).await;
        let mut session = match opened {
            Ok(session) => session,
            Err(OpenError { failure, remains }) => {
                self.remains = remains;
                return self.failed(&failure, reader.session()).await;
            }
        };
        let end = self.turns(session.as_mut(), prompt, &mut reader, workspace).await;
        if reader.during(&self.transcript, session.close()).await == Teardown::Incomplete {
            self.remains = Teardown::Incomplete;
        }
        reader.flush(&self.transcript).await;
        end
    }

    /// Prepares the tools that the agent is offered.
    async fn tools(&self, workspace: &Arc<Workspace>) -> Result<Arc<dyn Tools>, String> {
        let setup = &self.job.setup;
        let request = ToolsRequest {
            workflow: Arc::clone(&setup.workflow),
            runner: Arc::clone(&self.job.runner),
            workspace: Arc::clone(workspace),
        };
        let own = (setup.tools)(request).await?;
        let (tracker, issue) = (Arc::clone(&setup.tracker), self.job.start.issue.clone());
        Ok(Arc::new(IssueTools { tracker, issue, own }))
    }

    fn opening(
        &self,
        workspace: &Arc<Workspace>,
        tools: Arc<dyn Tools>,
        events: mpsc::Sender<carrel_agent::Event>,
    ) -> OpenRequest {
        let issue = &self.job.start.issue;
        let attempt = self.job.start.attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
        let environment = [
            ("CARREL_ISSUE_ID", issue.id.0.clone()),
            ("CARREL_ISSUE_IDENTIFIER", issue.identifier.clone()),
            ("CARREL_ATTEMPT", attempt),
        ];
        OpenRequest {
            runner: Arc::clone(&self.job.runner),
            workspace: Arc::clone(workspace),
            title: format!("{}: {}", issue.identifier, issue.title),
            thread: self.job.start.thread.clone(),
            environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
            tools,
            events,
            stop: self.job.stop.clone(),
        }
    }

    /// Says what a failure means for the run.
    async fn failed(&self, failure: &AgentFailure, session_id: Option<&str>) -> RunEnd {
        let AgentFailure { kind, message } = failure;
        let told = json!({ "kind": kind.name(), "message": message });
        self.transcript.note("failure", told).await;
        let issue = &self.job.start.issue;
        info!(
            issue_id = issue.id.0,
            issue_identifier = issue.identifier,
            session_id,
            kind = kind.name(),
            message,
            "A turn did not end well"
        );
        match kind {
            FailureKind::InputRequired => RunEnd::Blocked(BlockReason::Input(message.clone())),
            FailureKind::ApprovalRequired => {
                RunEnd::Blocked(BlockReason::Approval(message.clone()))
            }
            FailureKind::RateLimited { retry_after } => RunEnd::RateLimited(*retry_after),
            _ => RunEnd::Failed(format!("{}: {message}", kind.name())),
        }
    }

    async fn send(&self, event: Event) {
        // The conductor listens until all runs are over.
        let _ = self.job.inbox.send(Message::Event(event)).await;
    }
}
