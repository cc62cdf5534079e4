//! Sessions: the state of one caller.
//!
//! A session is a connection of an agent, or a name that a client chose. It holds the read tracker, the
//! commands that were started, the view of the workspaces and the results of the last tests. None of it is
//! shared between sessions. Background commands belong to the session and end with it.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::sync;
use carrel_exec::{JobId, Owner};

use crate::named_workspace::Workspaces;
use crate::read_tracker::ReadTracker;
use crate::shell::Shell;
use crate::toolbox::Toolbox;
use crate::verify::LastRuns;

const READ: &str = "read";
const TESTED: &str = "tested";

/// The state of one caller.
#[derive(Debug)]
pub struct Session {
    id: String,
    state: Mutex<State>,
}

/// The mutable part. Its lock is never held across an await.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tracker: ReadTracker,
    pub(crate) shells: HashMap<JobId, Arc<Shell>>,
    /// The workspaces within the client's roots; all if the client named none.
    pub(crate) narrowed: Option<Arc<Workspaces>>,
    pub(crate) last_runs: LastRuns,
    /// Missing linters and formatters that were reported.
    pub(crate) missing_tools: BTreeSet<String>,
    /// Workspaces whose first use is in the audit log.
    pub(crate) used_workspaces: BTreeSet<String>,
}

impl Session {
    /// Begins a session. The id identifies it in audit events and owns its jobs.
    pub fn new(id: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { id: id.into(), state: Mutex::default() })
    }

    /// Begins a session with the saved state of an earlier one.
    pub fn resumed(id: impl Into<String>, mut remembered: serde_json::Value) -> Arc<Self> {
        let mut take =
            |name| remembered.get_mut(name).map(serde_json::Value::take).unwrap_or_default();
        let tracker = ReadTracker::from_json(take(READ));
        let last_runs = LastRuns::from_json(take(TESTED));
        let state = State { tracker, last_runs, ..State::default() };
        Arc::new(Self { id: id.into(), state: Mutex::new(state) })
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

    /// Returns the owner of its background commands.
    pub fn owner(&self) -> Owner {
        Owner::new(&self.id)
    }

    /// Restricts the session to the parts of the workspaces within a client's roots. Roots that overlap no
    /// workspace lift the restriction; the session never gets more than the server's workspaces.
    pub fn narrow(&self, workspaces: &Workspaces, roots: &[PathBuf]) {
        let narrowed = workspaces.narrowed(roots).map(Arc::new);
        self.state().narrowed = narrowed;
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }
}
