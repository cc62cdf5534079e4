//! The execution of one run.
//!
//! ```text
//! workspace created or opened ─► before_run ─► session opened ─► turns ─► session closed ─► after_run
//! ```
//!
//! The steps are sequential, and each failure skips to the matching teardown: `after_run` runs whenever
//! `before_run` was attempted, and tools and session are closed whenever they were opened. The run uses the
//! [`Setup`] of its dispatch throughout. Cancelling `stop` ends hooks and agent at any point; the run then
//! still tears down and reports. Everything that happens is written to the transcript first.

mod effect_observer;
mod event_reader;
mod prompts;
mod spans;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use carrel_agent::{AgentFailure, FailureKind, OpenError, OpenRequest, Teardown, Tools};
use carrel_domain::{Clock, Identifier, message_of};
use carrel_runner::Runner;
use carrel_tracker::{Issue, IssueId};
use carrel_workspace::{Create, Hook, Hooks, Workspace, Workspaces};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info};

use self::effect_observer::EffectObserver;
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

/// Agent events that wait to be read; an agent that sends more is slowed down.
const EVENT_BUFFER: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnCommand {
    Turn(u64),
    Finish,
}

#[derive(Debug)]
pub(super) struct RunJob {
    pub(super) dispatch: Dispatch,
    pub(super) setup: Arc<Setup>,
    pub(super) runner: Arc<Runner>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) commands: mpsc::Receiver<TurnCommand>,
    pub(super) stop: CancellationToken,
    pub(super) transcripts: TranscriptWriter,
    /// Processes of an earlier run may be left in the workspace: wait for its lock first.
    pub(super) wait_for_workspace: bool,
}

struct RunInProgress {
    job: RunJob,
    teardown: Teardown,
    transcript: Transcript,
}

impl RunJob {
    /// Executes the run, and returns its result and whether all processes have ended.
    pub(super) async fn run(self) -> (RunEnd, Teardown) {
        let span = spans::run(&self.dispatch);
        let (end, teardown) = self.run_within().instrument(span.clone()).await;
        spans::run_ended(&span, &end);
        (end, teardown)
    }

    async fn run_within(self) -> (RunEnd, Teardown) {
        let secrets = self.setup.workflow.known_secrets();
        let transcript =
            self.transcripts.begin(&self.dispatch, secrets, Arc::clone(&self.clock)).await;
        let Dispatch { run, issue, attempt, thread, .. } = &self.dispatch;
        let began = json!({ "run": run, "issue": issue, "attempt": attempt, "thread": thread });
        transcript.note("run_started", began).await;
        let mut doing = RunInProgress { job: self, transcript, teardown: Teardown::Complete };
        let end = doing.run().await.unwrap_or_else(RunEnd::Failed);
        let (outcome, error) = super::journal::outcome(&end);
        let transcript = doing.transcript;
        transcript.note("run_ended", json!({ "outcome": outcome, "error": error })).await;
        transcript.close().await;
        (end, doing.teardown)
    }
}

impl RunInProgress {
    async fn run(&mut self) -> Result<RunEnd, String> {
        let (workspace, path) = self.prepare_workspace().await?;
        self.send(Event::WorkspaceReady(self.job.dispatch.run, path)).await;
        self.run_hooks_and_agent(workspace).await
    }

    /// Creates the workspace or reuses the existing one, and opens it.
    async fn prepare_workspace(&mut self) -> Result<(Arc<Workspace>, PathBuf), String> {
        let issue = &self.job.dispatch.issue;
        let identifier = Identifier::parse(&issue.identifier).map_err(|error| error.to_string())?;
        let workspaces = self.root(&identifier);
        if self.job.wait_for_workspace {
            let settled = takeover::wait_until_unlocked(&workspaces, &identifier).await;
            settled.map_err(|error| message_of(&error))?;
        }
        let request = Create {
            issue_id: Some(issue.id.0.clone()),
            tracker: Some(self.job.setup.tracker_name.clone()),
            attempt: self.job.dispatch.attempt,
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

    /// Returns the root of the workspace of earlier runs if that workspace still exists, and else the
    /// configured one.
    fn root(&self, identifier: &Identifier) -> Workspaces {
        let there = self.job.dispatch.workspace.as_deref().filter(|path| path.is_dir());
        let there = there.and_then(|path| self.job.setup.workspaces_of(path));
        match there {
            Some(there) if there.record(identifier).is_ok() => there,
            _ => self.job.setup.workspaces.clone(),
        }
    }

    fn hooks(&self) -> Hooks {
        self.job.setup.hooks.cancelled_by(self.job.stop.clone())
    }

    /// Runs the agent between `before_run` and `after_run`.
    async fn run_hooks_and_agent(&mut self, workspace: Arc<Workspace>) -> Result<RunEnd, String> {
        let hooks = self.hooks();
        let attempt = self.job.dispatch.attempt;
        let end = match workspace.run_hook(Hook::BeforeRun, &hooks, attempt).await {
            Ok(()) => self.run_agent(&workspace).await,
            Err(error) => Err(message_of(&error)),
        };
        // Also for a run that was stopped; the hook has a timeout of its own.
        if let Err(error) = workspace.run_hook(Hook::AfterRun, &hooks, attempt).await {
            self.transcript.note("after_run_failed", json!({ "error": message_of(&error) })).await;
        }
        end
    }

    /// Renders the prompt, prepares the tools and runs the session. No tool runs when this returns.
    async fn run_agent(&mut self, workspace: &Arc<Workspace>) -> Result<RunEnd, String> {
        let prompt = prompts::initial(&self.job.setup.workflow.prompt, &self.job.dispatch);
        let prompt = prompt.map_err(|error| format!("{}: {error}", error.kind()))?;
        let tracker_changes = Arc::default();
        let tools = self.tools(workspace, &tracker_changes).await?;
        let session = self.run_session(workspace, prompt, Arc::clone(&tools), tracker_changes);
        let end = session.await;
        tools.close().await;
        Ok(end)
    }

    /// Opens a session, runs its turns and closes it.
    async fn run_session(
        &mut self,
        workspace: &Arc<Workspace>,
        prompt: String,
        tools: Arc<dyn Tools>,
        tracker_changes: Arc<AtomicU64>,
    ) -> RunEnd {
        let (sender, events) = mpsc::channel(EVENT_BUFFER);
        let mut reader = EventReader::new(self.job.dispatch.run, events, self.job.inbox.clone());
        let request = self.open_request(workspace, tools, sender);
        let agent = Arc::clone(&self.job.setup.agent);
        let observer = EffectObserver::start(
            Arc::clone(workspace),
            self.job.setup.hooks.spawner().clone(),
            tracker_changes,
            self.job.setup.config().agent.max_turns_without_progress.is_some(),
        );
        // At the same time: an agent works when it has its prompt, and some take long to start.
        let opening = async { tokio::join!(agent.open(request), observer) };
        let (opened, observer) = reader.read_while(&self.transcript, opening).await;
        let mut session = match opened {
            Ok(session) => session,
            Err(OpenError { failure, teardown }) => {
                self.teardown = teardown;
                return self.failed(&failure, reader.session.as_deref()).await;
            }
        };
        let end = self.turns(session.as_mut(), workspace, prompt, &mut reader, observer).await;
        if reader.read_while(&self.transcript, session.close()).await == Teardown::Incomplete {
            self.teardown = Teardown::Incomplete;
        }
        reader.flush(&self.transcript).await;
        end
    }

    async fn tools(
        &self,
        workspace: &Arc<Workspace>,
        tracker_changes: &Arc<AtomicU64>,
    ) -> Result<Arc<dyn Tools>, String> {
        let setup = &self.job.setup;
        let request = ToolsRequest {
            workflow: Arc::clone(&setup.workflow),
            runner: Arc::clone(&self.job.runner),
            workspace: Arc::clone(workspace),
        };
        let own = (setup.tools)(request).await?;
        let (tracker, issue) = (Arc::clone(&setup.tracker), self.job.dispatch.issue.clone());
        Ok(Arc::new(IssueTools { tracker, issue, own, changes: Arc::clone(tracker_changes) }))
    }

    fn open_request(
        &self,
        workspace: &Arc<Workspace>,
        tools: Arc<dyn Tools>,
        events: mpsc::Sender<carrel_agent::Event>,
    ) -> OpenRequest {
        let issue = &self.job.dispatch.issue;
        let attempt =
            self.job.dispatch.attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
        let environment = [
            ("CARREL_ISSUE_ID", issue.id.0.clone()),
            ("CARREL_ISSUE_IDENTIFIER", issue.identifier.clone()),
            ("CARREL_ATTEMPT", attempt),
        ];
        OpenRequest {
            runner: Arc::clone(&self.job.runner),
            workspace: Arc::clone(workspace),
            title: format!("{}: {}", issue.identifier, issue.title),
            thread: self.job.dispatch.thread.clone(),
            environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
            tools,
            events,
            stop: self.job.stop.clone(),
        }
    }

    /// Maps an agent's failure to the result of the run.
    async fn failed(&self, failure: &AgentFailure, session_id: Option<&str>) -> RunEnd {
        let AgentFailure { kind, message } = failure;
        let name = kind.name();
        let told = json!({ "kind": name, "message": message });
        self.transcript.note("failure", told).await;
        let Issue { id: IssueId(issue_id), identifier: issue_identifier, .. } =
            &self.job.dispatch.issue;
        info!(issue_id, issue_identifier, session_id, kind = name, message, "A turn failed");
        match kind {
            FailureKind::InputRequired => RunEnd::Blocked(BlockReason::Input(message.clone())),
            FailureKind::ApprovalRequired => {
                RunEnd::Blocked(BlockReason::Approval(message.clone()))
            }
            FailureKind::RateLimited { retry_after } => RunEnd::RateLimited(*retry_after),
            _ => RunEnd::Failed(format!("{name}: {message}")),
        }
    }

    async fn send(&self, event: Event) {
        // The conductor receives until all runs have ended.
        let _ = self.job.inbox.send(Message::Event(event)).await;
    }
}
