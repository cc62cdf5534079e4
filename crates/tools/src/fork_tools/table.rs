//! The forks that a toolbox has open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use carrel_domain::{Code, Failure, WorkspaceKey, sync};
use tracing::debug;

use super::host::ForkHost;
use crate::named_workspace::{NamedWorkspace, Workspaces};
use crate::session::Session;
use crate::toolbox::Toolbox;
use crate::workspace_list::ALL;

/// The open forks of a toolbox's workspaces.
#[derive(Debug, Default)]
pub(crate) struct ForkTable {
    open: Mutex<Vec<OpenFork>>,
    /// One fork is opened at a time.
    opening: tokio::sync::Mutex<()>,
    host: OnceLock<Arc<dyn ForkHost>>,
}

#[derive(Clone, Debug)]
struct OpenFork {
    /// The path of its base.
    base: PathBuf,
    fork: Arc<NamedWorkspace>,
}

impl ForkTable {
    pub(super) fn host(&self) -> Option<Arc<dyn ForkHost>> {
        self.host.get().cloned()
    }

    pub(crate) fn set_host(&self, host: Arc<dyn ForkHost>) {
        let _ = self.host.set(host);
    }

    /// Adds the open forks of whole workspaces.
    pub(crate) fn added_to(&self, workspaces: Arc<Workspaces>) -> Arc<Workspaces> {
        let open = sync::lock(&self.open);
        let is_seen = |fork: &&OpenFork| workspaces.iter().any(|base| base.path() == fork.base);
        let forks: Vec<_> =
            open.iter().filter(is_seen).map(|fork| Arc::downgrade(&fork.fork)).collect();
        if forks.is_empty() { workspaces } else { Arc::new(workspaces.with_forks(forks)) }
    }

    /// Takes the open forks of a base out of the table, or one of them. Fails if a command runs in one.
    pub(super) fn close(
        &self,
        base: &Path,
        name: Option<&str>,
    ) -> Result<Vec<Arc<NamedWorkspace>>, Failure> {
        let mut open = sync::lock(&self.open);
        let is_meant =
            |fork: &OpenFork| fork.base == base && name.is_none_or(|name| name == fork.fork.name());
        let is_busy =
            |fork: &&OpenFork| is_meant(fork) && fork.fork.handle().running_commands() > 0;
        if let Some(busy) = open.iter().find(is_busy) {
            let name = busy.fork.name();
            let message = format!(
                "commands run in the fork {name}; end them first, with KillShell and `workspace`"
            );
            return Err(Failure::new(Code::WorkspaceBusy, message).with("fork", name));
        }
        let (closed, left) = open.drain(..).partition(is_meant);
        *open = left;
        Ok(Vec::into_iter(closed).map(|fork: OpenFork| fork.fork).collect())
    }

    fn has(&self, name: &str) -> bool {
        sync::lock(&self.open).iter().any(|open| open.fork.name() == name)
    }
}

/// Opens the fork of a session's workspace that a call names, if it names one that is not open.
pub(crate) async fn open_named(
    toolbox: &Toolbox,
    session: &Session,
    name: Option<&str>,
) -> Result<(), Failure> {
    let is_fork = |name: &&str| *name != ALL && toolbox.forks.host().is_none();
    let Some(name) = name.filter(is_fork) else { return Ok(()) };
    let workspaces = toolbox.workspaces_of(session)?;
    if workspaces.named(name).is_ok() {
        return Ok(());
    }
    let Some(key) = WorkspaceKey::from_name(name) else { return Ok(()) };
    // Boxed for the calls of all other workspaces, whose futures would be as large.
    Box::pin(open(toolbox, &workspaces, name, key)).await
}

async fn open(
    toolbox: &Toolbox,
    workspaces: &Workspaces,
    name: &str,
    key: WorkspaceKey,
) -> Result<(), Failure> {
    let _opening = toolbox.forks.opening.lock().await;
    if toolbox.forks.has(name) {
        return Ok(());
    }
    for base in workspaces.iter() {
        let Some(managed) = base.handle().managed() else { continue };
        let forks = managed.workspaces().forks_of(&managed.record().key)?;
        let Some(record) = forks.iter().find(|fork| fork.key == key) else { continue };
        let opened = Arc::new(managed.workspaces().open(&record.identifier).await?);
        let handle = toolbox.runner.open(&opened).await?;
        let fork = Arc::new(base.fork(name.to_owned(), handle));
        debug!(fork = name, "opened a fork for a call");
        sync::lock(&toolbox.forks.open).push(OpenFork { base: base.path().to_owned(), fork });
        return Ok(());
    }
    Ok(())
}
