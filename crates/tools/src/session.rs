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

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::sync;
use carrel_exec::{Job, JobId, JobStatus, Owner, Retention};
use futures_util::future::join_all;

use crate::client_roots::{ClientRoots, WorkspaceView};
use crate::named_workspace::Workspaces;
use crate::read_tracker::ReadTracker;
use crate::toolbox::Toolbox;
use crate::verify::LastRuns;

const READ: &str = "read";
const TESTED: &str = "tested";

/// The time for which a session is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLifetime {
    /// Several calls, each of which may rely on the ones before.
    Lasting,
    /// One request. The next one knows nothing of it, so that replies name the hash of a file, by which a
    /// later request shows that it knows the content.
    OneRequest,
}

/// The state of one caller.
#[derive(Debug)]
pub struct Session {
    id: String,
    owner: Owner,
    lifetime: SessionLifetime,
    state: Mutex<State>,
}

/// The mutable part. Its lock is never held across an await.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tracker: ReadTracker,
    /// Jobs that the session started and that ran when they were last looked at.
    jobs: Vec<Job>,
    pub(crate) view: WorkspaceView,
    pub(crate) last_runs: LastRuns,
    /// Missing linters and formatters that were reported.
    pub(crate) missing_tools: BTreeSet<String>,
    /// Workspaces whose first use is in the audit log.
    pub(crate) used_workspaces: BTreeSet<String>,
}

impl Session {
    /// Begins a session whose owner has no other. The id identifies it in audit events.
    pub fn new(id: impl Into<String>) -> Arc<Self> {
        let id = id.into();
        Self::of_owner(Owner::new(&id), id)
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
        let id = id.into();
        let state = State { tracker, last_runs, ..State::default() };
        Self::with(Owner::new(&id), id, SessionLifetime::Lasting, state)
    }

    fn with(owner: Owner, id: String, lifetime: SessionLifetime, state: State) -> Arc<Self> {
        Arc::new(Self { id, owner, lifetime, state: Mutex::new(state) })
    }

    /// Returns files read and test results, with secrets masked, for [`Session::resumed`].
    pub fn remembered(&self, toolbox: &Toolbox) -> serde_json::Value {
        let state = self.state();
        let mut tested = state.last_runs.to_json();
        toolbox.redactor().redact_value(&mut tested);
        serde_json::json!({ READ: state.tracker.to_json(), TESTED: tested })
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the owner of the session and of its jobs.
    pub fn owner(&self) -> &Owner {
        &self.owner
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

    pub(crate) fn add_job(&self, job: &Job) {
        let mut state = self.state();
        state.jobs.retain(|job| job.status() == JobStatus::Running);
        state.jobs.push(job.clone());
    }

    /// Returns the ids of the jobs of a kind that the session started and that still run.
    pub(crate) fn running_jobs(&self, kind: Retention) -> Vec<JobId> {
        let is_running = |job: &&Job| job.keep() == kind && job.status() == JobStatus::Running;
        self.state().jobs.iter().filter(is_running).map(Job::id).collect()
    }

    /// Kills the jobs that the session started and that still run, all at the same time.
    pub async fn kill_jobs(&self) {
        let jobs = std::mem::take(&mut self.state().jobs);
        join_all(jobs.iter().map(Job::kill)).await;
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }
}
