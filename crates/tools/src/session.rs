//! Sessions: the state of one caller.
//!
//! A session is a connection of an agent, a name that a client chose, or a single request of a client that
//! keeps nothing between requests. It holds the read tracker, the view of the workspaces and the results of
//! the last tests. None of it is shared between sessions.
//!
//! A session belongs to an owner, the identity that was authenticated. Jobs belong to the owner and the
//! workspace, and not to the session: a client that comes back in another session, or that has none, still
//! reads the output of its command by the id of the job, which no other client can guess. A lasting session
//! that ends kills the jobs that it started and that still run; a session for one request leaves them to
//! their lifetime.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::{Clock as _, SystemClock, sync};
use carrel_exec::{Job, JobId, JobStatus, Owner, Retention};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::client_roots::{ClientRoots, WorkspaceView};
use crate::code::LastRename;
use crate::named_workspace::Workspaces;
use crate::read_tracker::{FileKey, ReadTracker};
use crate::shell::{EndCause, JobEnd};
use crate::toolbox::Toolbox;
use crate::verify::{LastRuns, LateCheck, LateServerCheck};

/// Jobs that a session lists; older ones are still found by their ids.
const MAX_STARTED_JOBS: usize = 64;

/// Changed files that a session remembers.
const MAX_CHANGED: usize = 200;

const READ: &str = "read";
const TESTED: &str = "tested";
const COVERED: &str = "covered";

/// The time for which a session is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLifetime {
    /// Several calls, each of which may rely on the ones before.
    Lasting,
    /// One request. The next one knows nothing of it, so that replies name the hash of a file, by which a
    /// later request shows that it knows the content.
    OneRequest,
}

/// The end of a lasting session, as the records of its jobs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The server goes on.
    Session,
    /// The server has no other session and ends too.
    Server,
}

/// The state of one caller.
#[derive(Debug)]
pub struct Session {
    id: String,
    owner: Owner,
    lifetime: SessionLifetime,
    /// Tells sessions with the same id apart, which have nothing in common.
    process: Option<u64>,
    state: Mutex<State>,
}

/// The mutable part. Its lock is never held across an await.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tracker: ReadTracker,
    /// Jobs that the session started and that ran when they were last looked at.
    jobs: Vec<(Job, EndCause)>,
    /// The last jobs that the session started.
    started_jobs: VecDeque<JobId>,
    pub(crate) view: WorkspaceView,
    pub(crate) last_runs: LastRuns,
    /// Recordings of coverage of an earlier process, as JSON. They are parsed when they are asked for.
    pub(crate) saved_coverage: Option<String>,
    pub(crate) last_rename: Option<LastRename>,
    /// Files that the session changed since it asked for their problems.
    pub(crate) changed: BTreeSet<FileKey>,
    /// Missing linters and formatters that were reported.
    pub(crate) missing_tools: BTreeSet<String>,
    /// Checks whose findings come with a later reply, by workspace.
    pub(crate) late_checks: BTreeMap<String, Vec<LateCheck>>,
    /// Questions to language servers whose answers come with a later reply, by workspace.
    pub(crate) late_server_checks: BTreeMap<String, Vec<LateServerCheck>>,
    /// Reasons why checks could not run that were reported.
    pub(crate) told_checks: BTreeSet<String>,
    /// Cancelled when the session ends; a check that has not begun then never does.
    pub(crate) checks: CancellationToken,
    /// Workspaces whose first use is in the audit log.
    pub(crate) used_workspaces: BTreeSet<String>,
}

impl State {
    /// Remembers that the session changed a file.
    pub(crate) fn note_change(&mut self, key: &FileKey) {
        if self.changed.len() < MAX_CHANGED {
            self.changed.insert(key.clone());
        }
    }
}

impl Session {
    /// Begins a session whose owner has no other. The id identifies it in audit events.
    pub fn new(id: impl Into<String>) -> Arc<Self> {
        let id = id.into();
        Self::of_owner(Owner::new(&id), id)
    }

    /// Begins the only session of this process. Other processes have sessions with the same id.
    pub fn of_process(id: impl Into<String>) -> Arc<Self> {
        let id = id.into();
        let begun = SystemClock.now().as_millis();
        let process = u64::from(std::process::id()) ^ u64::try_from(begun).unwrap_or(0) << 22;
        let (owner, lifetime) = (Owner::new(&id), SessionLifetime::Lasting);
        let (process, state) = (Some(process), Mutex::default());
        Arc::new(Self { id, owner, lifetime, process, state })
    }

    /// Begins a session of an owner that may have others. The id identifies it in audit events.
    pub fn of_owner(owner: Owner, id: impl Into<String>) -> Arc<Self> {
        Self::with(owner, id.into(), SessionLifetime::Lasting, State::default())
    }

    /// Begins a session for one request of an owner.
    pub fn for_request(owner: Owner, id: impl Into<String>) -> Arc<Self> {
        Self::with(owner, id.into(), SessionLifetime::OneRequest, State::default())
    }

    /// Begins a session with the saved state of an earlier one.
    pub fn resumed(id: impl Into<String>, mut remembered: serde_json::Value) -> Arc<Self> {
        let mut take =
            |name| remembered.get_mut(name).map(serde_json::Value::take).unwrap_or_default();
        let tracker = ReadTracker::from_json(take(READ));
        let last_runs = LastRuns::from_json(take(TESTED));
        let saved_coverage = take(COVERED).as_str().map(str::to_owned);
        let id = id.into();
        let state = State { tracker, last_runs, saved_coverage, ..State::default() };
        Self::with(Owner::new(&id), id, SessionLifetime::Lasting, state)
    }

    fn with(owner: Owner, id: String, lifetime: SessionLifetime, state: State) -> Arc<Self> {
        Arc::new(Self { id, owner, lifetime, process: None, state: Mutex::new(state) })
    }

    /// Returns files read, test results and recordings of coverage, with secrets masked, for
    /// [`Session::resumed`].
    pub fn remembered(&self, toolbox: &Toolbox) -> serde_json::Value {
        let state = self.state();
        let mut tested = state.last_runs.to_json();
        toolbox.redactor().redact_value(&mut tested);
        let covered = toolbox.coverage.to_json().map_or_else(
            || state.saved_coverage.clone(),
            |mut covered| {
                toolbox.redactor().redact_value(&mut covered);
                Some(covered.to_string())
            },
        );
        serde_json::json!({ READ: state.tracker.to_json(), TESTED: tested, COVERED: covered })
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the owner of the session and of its jobs.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns the name under which the session's calls can be undone: by itself, or, without a lasting session, by all
    /// requests of its owner.
    pub fn undo_owner(&self) -> String {
        let owner = self.owner.as_str();
        match (self.lifetime, self.process) {
            (SessionLifetime::OneRequest, _) => format!("owner {owner:?}"),
            (SessionLifetime::Lasting, None) => format!("session {owner:?} {}", self.id),
            (SessionLifetime::Lasting, Some(process)) => format!("process {process} {}", self.id),
        }
    }

    pub(crate) fn lifetime(&self) -> SessionLifetime {
        self.lifetime
    }

    /// Restricts the session to the parts of the workspaces within a client's roots; to nothing if there is
    /// no such part. Replaces an earlier restriction.
    pub fn narrow(&self, workspaces: &Workspaces, roots: &ClientRoots) {
        let view = WorkspaceView::of_roots(workspaces, roots);
        self.state().view = view;
    }

    pub(crate) fn add_job(&self, job: &Job, cause: &EndCause) {
        let mut state = self.state();
        state.jobs.retain(|(job, _)| job.status() == JobStatus::Running);
        state.jobs.push((job.clone(), cause.clone()));
        if state.started_jobs.len() >= MAX_STARTED_JOBS {
            state.started_jobs.pop_front();
        }
        state.started_jobs.push_back(job.id());
    }

    /// Returns the ids of the last jobs that the session started, oldest first.
    pub(crate) fn started_jobs(&self) -> Vec<JobId> {
        self.state().started_jobs.iter().copied().collect()
    }

    /// Returns the ids of the jobs of a kind that the session started and that still run.
    pub(crate) fn running_jobs(&self, kind: Retention) -> Vec<JobId> {
        let is_running = |job: &&Job| job.keep() == kind && job.status() == JobStatus::Running;
        self.state().jobs.iter().map(|(job, _)| job).filter(is_running).map(Job::id).collect()
    }

    /// Notes the reason for which the jobs that still run are about to end.
    pub fn note_end(&self, with: SessionEnd) {
        let cause = match with {
            SessionEnd::Session => JobEnd::EndedWithSession,
            SessionEnd::Server => JobEnd::EndedWithServer,
        };
        self.state().jobs.iter().for_each(|(_, known)| known.set(cause));
    }

    /// Kills the jobs that the session started and that still run, all at the same time.
    pub async fn kill_jobs(&self) {
        let jobs = {
            let mut state = self.state();
            state.checks.cancel();
            std::mem::take(&mut state.jobs)
        };
        join_all(jobs.iter().map(|(job, _)| job.kill())).await;
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }
}
