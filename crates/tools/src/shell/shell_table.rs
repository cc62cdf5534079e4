//! The commands of a server, by the ids of their jobs.
//!
//! A command is found by its id if it belongs to the owner of the session that asks and ran in one of the
//! workspaces that the session may use. Any other command is unknown, like one that never ran. A command that
//! is not in memory may have a record on disk; the same two rules hold for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_domain::{Code, Failure, sync};
use carrel_exec::{JobId, Jobs};

use super::job_records::{JobEnd, StoredJob};
use super::launch::Shell;
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::session::Session;
use crate::tool_context::ToolContext;
use crate::toolbox::Toolbox;

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

    /// Notes that the commands which still run end with the server.
    pub(crate) fn end_with_server(&self) {
        self.lock().values().for_each(|shell| shell.cause.set(JobEnd::EndedWithServer));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Shell>>> {
        sync::lock(&self.0)
    }
}

/// A job that was found.
#[derive(Debug)]
pub(super) enum FoundJob {
    Here(Arc<Shell>),
    /// It ended, in an earlier process or long ago.
    Stored(StoredJob),
}

/// Finds a command of this process by its shell id. A call about one of several workspaces does not find
/// commands of another.
pub(super) fn find(context: &ToolContext, text: &str) -> Result<Arc<Shell>, Failure> {
    let workspaces = workspaces_of(context);
    let id = text.trim().parse().map_err(|_| unknown(text))?;
    known(&context.toolbox, &context.session, workspaces, id).ok_or_else(|| unknown(text))
}

/// Finds a command by its shell id, also one that has a record only.
pub(super) async fn find_anywhere(context: &ToolContext, text: &str) -> Result<FoundJob, Failure> {
    find_job(&context.toolbox, &context.session, workspaces_of(context), text).await
}

pub(super) async fn find_job(
    toolbox: &Toolbox,
    session: &Session,
    workspaces: &[Arc<NamedWorkspace>],
    text: &str,
) -> Result<FoundJob, Failure> {
    let id: JobId = text.trim().parse().map_err(|_| unknown(text))?;
    if let Some(shell) = known(toolbox, session, workspaces, id) {
        return Ok(FoundJob::Here(shell));
    }
    let records = toolbox.job_records().ok_or_else(|| unknown(text))?;
    let records = Arc::clone(records);
    let stored = blocking(move || Ok(records.find(id))).await?;
    let is_known = |stored: &StoredJob| {
        stored.record.belongs_to(session.owner())
            && workspaces.iter().any(|workspace| workspace.holds(&stored.record.directory))
    };
    stored.filter(is_known).map(FoundJob::Stored).ok_or_else(|| unknown(text))
}

fn workspaces_of(context: &ToolContext) -> &[Arc<NamedWorkspace>] {
    match context.optional_workspace() {
        Some(workspace) => std::slice::from_ref(workspace),
        None => context.workspaces().as_slice(),
    }
}

fn known(
    toolbox: &Toolbox,
    session: &Session,
    workspaces: &[Arc<NamedWorkspace>],
    id: JobId,
) -> Option<Arc<Shell>> {
    toolbox.shells.get(id).filter(|shell| {
        shell.job.owner() == session.owner()
            && workspaces.iter().any(|workspace| workspace.holds(&shell.directory))
    })
}

fn unknown(text: &str) -> Failure {
    let message = format!("unknown shell_id: {text}");
    Failure::new(Code::JobNotFound, message).with("shell_id", text)
}
