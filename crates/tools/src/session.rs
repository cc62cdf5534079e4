//! What is remembered about one caller.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carrel_exec::{JobId, Owner};

use crate::place::Workspaces;
use crate::shell::Shell;
use crate::tracker::Tracker;
use crate::verify::LastRuns;

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
    pub(crate) tracker: Tracker,
    /// What runs, or ran, in the background.
    pub(crate) shells: HashMap<JobId, Arc<Shell>>,
    /// What the client wants to see of the workspaces; all of them if it does not say.
    pub(crate) narrowed: Option<Arc<Workspaces>>,
    /// What the last tests said.
    pub(crate) last_runs: LastRuns,
    /// Tools that are missing, and were said to be.
    pub(crate) missing_tools: BTreeSet<String>,
    /// Workspaces that were used.
    pub(crate) entered: BTreeSet<String>,
}

impl Session {
    /// Begins a session. The name tells it apart from others in events.
    pub fn new(id: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { id: id.into(), state: Mutex::default() })
    }

    /// Begins a session that has read what another has.
    pub fn resumed(id: impl Into<String>, remembered: serde_json::Value) -> Arc<Self> {
        let tracker = Tracker::from_json(remembered);
        let state = State { tracker, ..State::default() };
        Arc::new(Self { id: id.into(), state: Mutex::new(state) })
    }

    /// Returns what it has read, for [`Session::resumed`].
    pub fn remembered(&self) -> serde_json::Value {
        self.state().tracker.to_json()
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
