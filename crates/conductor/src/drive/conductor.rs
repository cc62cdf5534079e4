//! The one owner of the state.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrel_config::Reloader;
use carrel_domain::{Clock, Timestamp};
use carrel_runner::Runner;
use carrel_store::{Journal, Tenure, TenureOutcome};
use carrel_tracker::IssueId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::conductor_directory::{self, ConductorDirectory};
use super::effects::ActiveRun;
use super::event_loop::Message;
use super::handle::{self, Handle, HandleBackend};
use super::report::Report;
use super::setup::{Setup, conductor, scope_of};
use super::start_error::StartError;
use super::transcript::TranscriptWriter;
use super::workflow_watcher::WorkflowWatcher;
use super::{Options, PollMode, journal, takeover};
use crate::claimed_issue::{Retry, RetryReason, RunId, Stage};
use crate::rules::Rules;
use crate::state::{Mode, State};

/// Messages that may wait for the loop. Whoever has more to tell waits.
const WAITING_MESSAGES: usize = 1024;

/// How long runs are remembered.
const KEEP_RUNS: Duration = Duration::from_hours(30 * 24);

/// Gives issues to agents. The one owner of its state.
#[derive(Debug)]
pub struct Conductor {
    pub(super) state: Option<State>,
    pub(super) setup: Arc<Setup>,
    pub(super) runner: Arc<Runner>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) transcripts: TranscriptWriter,
    /// Runs that are not over.
    pub(super) active: HashMap<RunId, ActiveRun>,
    /// Issues in whose workspaces something of an earlier conductor may be left.
    pub(super) unsettled: BTreeSet<IssueId>,
    /// Questions to the tracker. They are given up in the end.
    pub(super) questions: JoinSet<()>,
    /// Runs and removals. They are waited for.
    pub(super) works: JoinSet<()>,
    pub(super) queue: mpsc::Receiver<Message>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) tenure: Tenure,
    pub(super) workflow_watcher: Option<WorkflowWatcher>,
    pub(super) handle: Handle,
    pub(super) handle_backend: HandleBackend,
    pub(super) report: Report,
    /// When the state was last shown.
    pub(super) published: Option<Instant>,
    /// Everything is coming to its end.
    pub(super) ending: bool,
    pub(super) stop: CancellationToken,
    _directory: ConductorDirectory,
}

impl Conductor {
    /// Takes the issues of a tracker for itself, reads what is remembered about them and waits for what
    /// an earlier conductor left running.
    pub async fn open(options: Options) -> Result<Self, StartError> {
        let Options { workflow, environment, journal, clock, runner, commands, .. } = options;
        let scope = scope_of(&conductor(&workflow)?.tracker);
        let directory = ConductorDirectory::take(&options.data, &scope)?;
        let holder = conductor_directory::describe_holder(&options.data);
        let tenure = match journal.acquire(&scope, &holder, clock.now()).await? {
            TenureOutcome::Acquired(tenure) => tenure,
            TenureOutcome::Held { by } => return Err(StartError::Held { scope, by }),
        };
        let reloader = Reloader::new(workflow);
        let factories = options.factories;
        let (current, data) = (reloader.current(), options.data);
        let name = options.tracker_name;
        let setup =
            Setup::of(current, &environment(), &factories, &commands, &data, name).map(Arc::new)?;
        let mut unsettled = takeover::settle_all(&*journal, &tenure, &setup, &*clock).await?;
        let now = clock.now();
        let long_ago = now.as_millis() - i64::try_from(KEEP_RUNS.as_millis()).unwrap_or(i64::MAX);
        journal.delete_runs(&tenure, Timestamp::from_millis(long_ago)).await?;
        let remembered = journal::recall(&*journal, &scope).await?;
        info!(scope, issues = remembered.issues.len(), "Conductor starts");
        if remembered.ledger.mode != Mode::Working {
            let mode = serde_json::json!(remembered.ledger.mode);
            warn!(%mode, "Nothing is begun, as somebody said before; `carrel conductor resume` changes that");
        }
        // A run that was over may have left a process that could not be ended.
        unsettled.extend(remembered.issues.keys().cloned());
        let rules = Rules::of(setup.config());
        let mut state = State::begin(rules, remembered.issues, remembered.ledger)
            .after_run(remembered.last_run);
        if options.poll_mode == PollMode::Once {
            let stages = state.issues.values_mut().map(|entry| &mut entry.stage);
            stages.for_each(|stage| take_up_now(stage, now));
            state = state.once();
        }
        let workflow = Arc::clone(&setup.workflow);
        let (handle, handle_backend) = handle::pair(
            &state,
            workflow,
            Arc::clone(&journal),
            &scope,
            Arc::clone(directory.files()),
        );
        let (inbox, queue) = mpsc::channel(WAITING_MESSAGES);
        let transcripts = TranscriptWriter::start(&directory).map_err(StartError::Thread)?;
        let workflow_watcher = WorkflowWatcher {
            reloader,
            environment,
            factories,
            commands,
            data,
            tracker_name: setup.tracker_name.clone(),
            scope,
            refused: None,
        };
        Ok(Self {
            state: Some(state),
            setup,
            runner,
            clock,
            inbox,
            transcripts,
            active: HashMap::new(),
            unsettled,
            questions: JoinSet::new(),
            works: JoinSet::new(),
            queue,
            journal,
            tenure,
            workflow_watcher: Some(workflow_watcher),
            handle,
            handle_backend,
            report: Report::default(),
            published: None,
            ending: false,
            stop: options.stop,
            _directory: directory,
        })
    }

    /// Returns a way to it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

/// Makes a further attempt due, because somebody wants to see one, unless it waits for money.
fn take_up_now(stage: &mut Stage, now: Timestamp) {
    if let Stage::Retrying(Retry { due, reason, .. }) = stage
        && !matches!(reason, RetryReason::DayBudget | RetryReason::RateLimited)
    {
        *due = now.min(*due);
    }
}
