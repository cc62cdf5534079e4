//! The commands of a server, by the ids of their jobs.
//!
//! A command is found by its id if it belongs to the owner of the session that asks and ran in one of the
//! workspaces that the session may use. Any other command is unknown, like one that never ran.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::{Code, Failure, sync};
use carrel_exec::{JobId, Jobs};

use super::launch::Shell;
use crate::tool_context::ToolContext;

/// The commands that run or whose jobs can still be read.
#[derive(Debug, Default)]
pub(crate) struct ShellTable(Mutex<HashMap<JobId, Arc<Shell>>>);

impl ShellTable {
    /// Adds a command, or replaces it, and drops those whose jobs were evicted.
    pub(super) fn insert(&self, jobs: &Jobs, shell: Arc<Shell>) {
        let mut shells = self.lock();
        shells.retain(|id, _| jobs.get(*id).is_ok());
        shells.insert(shell.job.id(), shell);
    }

    pub(super) fn remove(&self, id: JobId) {
        self.lock().remove(&id);
    }

    fn get(&self, id: JobId) -> Option<Arc<Shell>> {
        self.lock().get(&id).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Shell>>> {
        sync::lock(&self.0)
    }
}

/// Finds a command by its shell id. A call about one of several workspaces does not find commands of another.
pub(super) fn find(context: &ToolContext, text: &str) -> Result<Arc<Shell>, Failure> {
    let found = text.trim().parse().ok().and_then(|id| context.toolbox.shells.get(id));
    let is_known = |shell: &Arc<Shell>| {
        let workspaces = match context.optional_workspace() {
            Some(workspace) => std::slice::from_ref(workspace),
            None => context.workspaces().as_slice(),
        };
        shell.job.owner() == context.session.owner()
            && workspaces.iter().any(|workspace| workspace.holds(&shell.directory))
    };
    found.filter(is_known).ok_or_else(|| {
        let message = format!("unknown shell_id: {text}");
        Failure::new(Code::JobNotFound, message).with("shell_id", text)
    })
}
