//! Construction of a conductor: lock, tenure, journal, takeover.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_config::Reloader;
use carrel_domain::{Clock, Timestamp};
use carrel_runner::Runner;
use carrel_store::{Journal, Tenure, TenureOutcome};
use carrel_tracker::IssueId;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::conductor_directory::{self, ConductorDirectory};
use super::effects::ActiveRun;
use super::event_loop::Message;
use super::handle::{self, Handle, Request};
use super::report::Report;
use super::setup::{Setup, conductor, scope_of};
use super::start_error::StartError;
use super::transcript::TranscriptWriter;
use super::workflow_watcher::WorkflowWatcher;
use super::{Options, PollMode, journal, takeover};
use crate::claimed_issue::{Retry, RetryReason, RunId, Stage};
use crate::rules::Rules;
use crate::state::{Mode, State};

/// Messages that wait for the loop. A run that has more to report is slowed down.
const MESSAGE_BUFFER: usize = 1024;

/// The age after which ended runs are deleted from the journal.
const KEEP_RUNS: Duration = Duration::from_hours(30 * 24);

/// A conductor of one tracker, and the one owner of its state.
#[derive(Debug)]
pub struct Conductor {
    pub(super) state: State,
    pub(super) setup: Arc<Setup>,
    pub(super) runner: Arc<Runner>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) transcripts: TranscriptWriter,
    pub(super) active: HashMap<RunId, ActiveRun>,
    /// Issues in whose workspaces processes of an earlier run may be left. Their next run waits for the
    /// workspace lock.
    pub(super) unsettled: BTreeSet<IssueId>,
    /// Queries to the tracker and the workflow watcher; aborted by the shutdown.
    pub(super) queries: JoinSet<()>,
    /// Runs and removals; the shutdown waits for them.
    pub(super) jobs: JoinSet<()>,
    pub(super) queue: mpsc::Receiver<Message>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) tenure: Tenure,
    pub(super) workflow_watcher: Option<WorkflowWatcher>,
    pub(super) handle: Handle,
    /// The state as handles see it.
    pub(super) published_state: watch::Sender<Arc<State>>,
    pub(super) commands: mpsc::Receiver<Request>,
    pub(super) report: Report,
    pub(super) published: Option<Instant>,
    pub(super) ending: bool,
    pub(super) stop: CancellationToken,
    _directory: ConductorDirectory,
}

impl Conductor {
    /// Acquires the lock and the tenure of a tracker, waits for runs that an earlier conductor left, and
    /// recovers the state from the journal.
    ///
    /// Fails if another conductor has either. The lock excludes one with the same data directory, the
    /// tenure one with the same database, on any machine.
    pub async fn open(options: Options) -> Result<Self, StartError> {
        let Options { journal, clock, runner, poll_mode, stop, .. } = options;
        let scope = scope_of(&conductor(&options.workflow)?.tracker);
        let directory = ConductorDirectory::take(&options.data, &scope)?;
        let tenure = acquire(&*journal, &scope, &options.data, clock.now()).await?;
        let workflow_watcher = WorkflowWatcher {
            reloader: Reloader::new(options.workflow),
            environment: options.environment,
            factories: options.factories,
            commands: options.commands,
            runner: Arc::clone(&runner),
            data: options.data,
            tracker_name: options.tracker_name,
            scope,
            last_error: None,
        };
        let scope = workflow_watcher.scope.as_str();
        let setup = Arc::new(workflow_watcher.setup(&workflow_watcher.reloader.current())?);
        let mut unsettled =
            takeover::settle_interrupted_runs(&*journal, &tenure, &setup, &*clock).await?;
        let now = clock.now();
        let long_ago = now.as_millis() - i64::try_from(KEEP_RUNS.as_millis()).unwrap_or(i64::MAX);
        journal.delete_runs(&tenure, Timestamp::from_millis(long_ago)).await?;
        let state = recover(&*journal, scope, &setup, poll_mode, now).await?;
        // An ended run may have left a process that could not be killed.
        unsettled.extend(state.issues.keys().cloned());
        let workflow = Arc::clone(&setup.workflow);
        let files = Arc::clone(&directory.files);
        let (handle, published_state, commands) =
            handle::open(&state, workflow, Arc::clone(&journal), scope, files);
        let (inbox, queue) = mpsc::channel(MESSAGE_BUFFER);
        Ok(Self {
            state,
            setup,
            runner,
            clock,
            inbox,
            transcripts: TranscriptWriter::start(&directory).map_err(StartError::Thread)?,
            active: HashMap::new(),
            unsettled,
            queries: JoinSet::new(),
            jobs: JoinSet::new(),
            queue,
            journal,
            tenure,
            workflow_watcher: Some(workflow_watcher),
            handle,
            published_state,
            commands,
            report: Report::default(),
            published: None,
            ending: false,
            stop,
            _directory: directory,
        })
    }

    /// Returns a handle to the conductor.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

/// Acquires the tenure of a scope. Fails if another conductor has it.
async fn acquire(
    journal: &dyn Journal,
    scope: &str,
    data: &Path,
    now: Timestamp,
) -> Result<Tenure, StartError> {
    let holder = conductor_directory::describe_holder(data);
    match journal.acquire(scope, &holder, now).await? {
        TenureOutcome::Acquired(tenure) => Ok(tenure),
        TenureOutcome::Held { by } => Err(StartError::Held { scope: scope.to_owned(), by }),
    }
}

/// Recovers the state from the journal, and prepares it for a single pass.
async fn recover(
    journal: &dyn Journal,
    scope: &str,
    setup: &Setup,
    poll_mode: PollMode,
    now: Timestamp,
) -> Result<State, StartError> {
    let mut state = journal::recover(journal, scope, Rules::of(setup.config())).await?;
    info!(scope, issues = state.issues.len(), "Conductor starts");
    if state.ledger.mode != Mode::Working {
        let mode = serde_json::json!(state.ledger.mode);
        warn!(%mode, "Nothing is dispatched, as an operator set; `carrel conductor resume` changes that");
    }
    if poll_mode == PollMode::Once {
        let stages = state.issues.values_mut().map(|claimed| &mut claimed.stage);
        stages.for_each(|stage| make_due(stage, now));
        state = state.once();
    }
    Ok(state)
}

/// Makes a retry due for a single pass, unless it waits for a budget or a rate limit.
fn make_due(stage: &mut Stage, now: Timestamp) {
    if let Stage::Retrying(Retry { due, reason, .. }) = stage
        && !matches!(reason, RetryReason::DayBudget | RetryReason::RateLimited)
    {
        *due = now.min(*due);
    }
}
