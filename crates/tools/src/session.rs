//! What is remembered about one caller.

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

/// What stands for each part of what a session remembers.
const READ: &str = "read";
const TESTED: &str = "tested";

/// One caller: a connection, or a handle that a client chose.
#[derive(Debug)]
pub struct Session {
    id: String,
    state: Mutex<State>,
}

/// What is remembered. It is held for moments only, never while something is awaited.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// What was read.
    pub(crate) tracker: ReadTracker,
    /// What runs, or ran, in the background.
    pub(crate) shells: HashMap<JobId, Arc<Shell>>,
    /// What the client wants to see of the workspaces; all of them if it does not say.
    pub(crate) narrowed: Option<Arc<Workspaces>>,
    /// What the last tests said.
    pub(crate) last_runs: LastRuns,
    /// Tools that are missing, and were said to be.
    pub(crate) missing_tools: BTreeSet<String>,
    /// Workspaces that were used.
    pub(crate) used_workspaces: BTreeSet<String>,
}

impl Session {
    /// Begins a session. The name tells it apart from others in events.
    pub fn new(id: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { id: id.into(), state: Mutex::default() })
    }

    /// Begins a session that knows what another knew.
    pub fn resumed(id: impl Into<String>, mut remembered: serde_json::Value) -> Arc<Self> {
        let mut take =
            |name| remembered.get_mut(name).map(serde_json::Value::take).unwrap_or_default();
        let tracker = ReadTracker::from_json(take(READ));
        let last_runs = LastRuns::from_json(take(TESTED));
        let state = State { tracker, last_runs, ..State::default() };
        Arc::new(Self { id: id.into(), state: Mutex::new(state) })
    }

    /// Returns what it has read and what its tests said, without secrets, for [`Session::resumed`].
    pub fn remembered(&self, toolbox: &Toolbox) -> serde_json::Value {
        let state = self.state();
        let mut tested = state.last_runs.to_json();
        toolbox.redactor().redact_value(&mut tested);
        serde_json::json!({ READ: state.tracker.to_json(), TESTED: tested })
    }

    /// Returns its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whom its background commands belong to.
    pub fn owner(&self) -> Owner {
        Owner::new(&self.id)
    }

    /// Shows the session less of the workspaces: what lies in one of the roots. It is never shown
    /// more, and roots that have nothing to do with any workspace change nothing.
    pub fn narrow(&self, workspaces: &Workspaces, roots: &[PathBuf]) {
        let narrowed = workspaces.narrowed(roots).map(Arc::new);
        self.state().narrowed = narrowed;
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }
}
