//! The workspaces on this machine's volume: create, open, count, remove.
//!
//! A workspace exists in two places: its row in the store and its directory on a volume. The row comes
//! first and goes first. [`HostedWorkspaces::provision`] writes the row alone; the directory is created
//! when the workspace is first opened, by the worker that owns the volume. Removal locks the
//! directory, deletes the row and then the directory; if the directory cannot be removed the row is put
//! back, since a directory without a row could not be removed through the service again. A crash between
//! the two leaves such a directory, which a later workspace of the same id reuses.
//!
//! Open workspaces are cached, because opening one counts its files. Up to 256 idle ones stay open;
//! beyond that an idle one is closed for each that is opened. Where several processes share a store a
//! cached workspace is checked against its row, since another process may have removed it and created
//! another one with the same id.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use carrel_config::Environment;
use carrel_domain::{
    ByteSize, Clock, Identifier, Layout, Network, NetworkRequest, TaskStatus, Timestamp, VolumeId,
    WorkspaceAccess, WorkspaceId, sync,
};
use carrel_exec::LazySpawner;
use carrel_fsroot::{Capacity, Root};
use carrel_runner::{RunError, Runner};
use carrel_store::{Store, TaskFilter, Workspace};
use carrel_tools::{
    GitOptions, NamedWorkspace, Secrets, SnapshotStores, SymbolIndexes, Toolbox, ToolboxOptions,
    WorkspaceEntry,
};
use carrel_workspace::{
    Amount, Create, DEFAULT_KEEP_UNSAVED, Freshness, Hooks, MeasuredUsage, Quota, Remove,
    RootOptions, Target, UnsavedWork, Workspaces,
};
use futures_util::future::BoxFuture;
use tracing::debug;

use crate::error::ServiceError;
use crate::fork_host::HostedForks;
use crate::free_space::FreeSpaceReserve;
use crate::hosted_tries::RunningTries;
use crate::open_workspace::OpenWorkspace;
use crate::usage_cache::UsageCache;

/// The open workspaces from which on an idle one is closed when another is opened.
const MAX_IDLE: usize = 256;

/// The settings for the workspaces of a machine.
#[derive(Debug)]
pub struct HostedWorkspacesOptions {
    /// The directory of the volume, created if it is missing.
    pub root: PathBuf,
    /// The id of the volume if no other process uses the store; `None` to read it from the directory.
    /// Its presence also means that rows change only through this process.
    pub volume: Option<VolumeId>,
    /// The quota of workspaces that have none of their own.
    pub quota: Quota,
    /// The runner of tools' commands.
    pub runner: Runner,
    /// The starter of hooks.
    pub commands: LazySpawner,
    /// The operator's environment.
    pub environment: Environment,
    /// The hosts and settings of git.
    pub git: GitOptions,
    /// The free-space reserve of the disk.
    pub reserve: FreeSpaceReserve,
    /// The clock for records.
    pub clock: Arc<dyn Clock>,
}

/// The workspaces on this machine's volume. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HostedWorkspaces {
    inner: Arc<Inner>,
}

/// A workspace was used of late, or is in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse;

/// The workspaces, for parts of them that must not keep them.
#[derive(Clone, Debug)]
pub(crate) struct WeakWorkspaces(Weak<Inner>);

impl WeakWorkspaces {
    pub(crate) fn upgrade(&self) -> Option<HostedWorkspaces> {
        self.0.upgrade().map(|inner| HostedWorkspaces { inner })
    }
}

#[derive(Debug)]
struct Inner {
    workspaces: Workspaces,
    volume: VolumeId,
    /// The volume's directory, for its capacity.
    disk: Root,
    hooks: Hooks,
    options: HostedWorkspacesOptions,
    store: Arc<dyn Store>,
    open: Mutex<HashMap<WorkspaceId, Arc<OpenWorkspace>>>,
    /// Workspaces that are being removed and must not be cached.
    removing: Mutex<HashSet<WorkspaceId>>,
    /// Held while rows and directories of forks are made, one after the other.
    forking: tokio::sync::Mutex<()>,
    /// The symbol indexes of all workspaces, which share one bound on memory.
    symbols: Arc<SymbolIndexes>,
    snapshots: Arc<SnapshotStores>,
    tries: RunningTries,
}

/// The mark of a workspace that is being removed.
#[derive(Debug)]
pub(crate) struct Removal<'a> {
    inner: &'a Inner,
    id: WorkspaceId,
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.inner.removing().remove(&self.id);
    }
}

/// The description of a new workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceSpec {
    /// The id, chosen by the caller.
    pub id: WorkspaceId,
    /// A display name.
    pub name: String,
    /// The layout of its directory.
    pub layout: Layout,
    /// The quota; that of the machine if absent.
    pub quota: Option<ByteSize>,
    /// The network of commands that name none, and the most that any of them gets.
    pub network: Option<Network>,
}

impl WorkspaceSpec {
    /// Returns the description of a workspace that is created by its first use.
    pub fn with_defaults(id: WorkspaceId) -> Self {
        Self { id, name: id.to_string(), layout: Layout::Tenant, quota: None, network: None }
    }
}

impl HostedWorkspaces {
    /// Opens the volume, and creates its directory if it is missing.
    pub fn open(
        options: HostedWorkspacesOptions,
        store: Arc<dyn Store>,
    ) -> Result<Self, ServiceError> {
        let workspaces = Workspaces::open_or_create(&RootOptions {
            root: options.root.clone(),
            home: None,
            quota: options.quota,
            keep_unsaved: DEFAULT_KEEP_UNSAVED,
            clock: Arc::clone(&options.clock),
        })?;
        let hooks = Hooks::none(options.commands.clone());
        let disk = Root::open(workspaces.path()).map_err(RunError::Workspace)?;
        let volume = options.volume.map_or_else(|| workspaces.volume(), Ok)?;
        let inner = Inner {
            workspaces,
            volume,
            disk,
            hooks,
            options,
            store,
            open: Mutex::default(),
            removing: Mutex::default(),
            forking: tokio::sync::Mutex::default(),
            symbols: Arc::default(),
            snapshots: Arc::default(),
            tries: RunningTries::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the size and the free workspace of the volume's disk.
    pub fn capacity(&self) -> Result<Capacity, ServiceError> {
        Ok(self.inner.disk.capacity().map_err(RunError::Workspace)?)
    }

    /// Fails with [`ServiceError::LowSpace`] while the disk is below the free-space reserve.
    pub fn check_free_space(&self) -> Result<(), ServiceError> {
        let disk = self.capacity()?;
        let reserve = self.inner.options.reserve;
        if !reserve.is_exhausted(disk) {
            return Ok(());
        }
        Err(ServiceError::LowSpace {
            free: ByteSize::bytes(disk.free.bytes),
            reserve: ByteSize::bytes(reserve.bytes_of(disk)),
        })
    }

    /// Returns the last counted usage of each open workspace.
    pub fn cached_usage(&self) -> Vec<(WorkspaceId, Amount)> {
        let opened = self.opened();
        opened
            .iter()
            .map(|(id, workspace)| (*id, workspace.named_workspace().handle().used()))
            .collect()
    }

    /// Adds the row of a workspace, or finds the one with the id. Returns whether it is new. A network above
    /// the operator's cap is refused.
    pub async fn provision(&self, new: WorkspaceSpec) -> Result<(Workspace, bool), ServiceError> {
        self.check_free_space()?;
        let inner = &*self.inner;
        let network = NetworkRequest::of(new.network);
        inner.options.runner.decide_network(network).map_err(RunError::from)?;
        let quota = new.quota.unwrap_or(inner.options.quota.bytes);
        let workspace = Workspace {
            id: new.id,
            name: new.name,
            layout: new.layout,
            network: new.network,
            quota_bytes: quota.as_u64(),
            created_at: inner.options.clock.now(),
            volume: None,
        };
        match inner.store.add_workspace(workspace.clone()).await? {
            Some(there) => Ok((there, false)),
            None => Ok((workspace, true)),
        }
    }

    /// Returns the row of a workspace.
    pub async fn find(&self, id: WorkspaceId) -> Result<Workspace, ServiceError> {
        // The cached row is current if only this process changes rows.
        let alone = self.inner.options.volume.is_some();
        if let Some(workspace) = self.opened().get(&id).filter(|_| alone) {
            return Ok(workspace.workspace.clone());
        }
        self.inner.store.workspace(id).await?.ok_or(ServiceError::NoWorkspace { id })
    }

    /// Opens a workspace, and creates its directory if it is missing.
    pub async fn open_workspace(
        &self,
        id: WorkspaceId,
    ) -> Result<Arc<OpenWorkspace>, ServiceError> {
        let opened = self.open_or_cached(id).await?;
        opened.note_use(self.now());
        Ok(opened)
    }

    fn open_or_cached(
        &self,
        id: WorkspaceId,
    ) -> BoxFuture<'_, Result<Arc<OpenWorkspace>, ServiceError>> {
        Box::pin(self.find_open(id))
    }

    async fn find_open(&self, id: WorkspaceId) -> Result<Arc<OpenWorkspace>, ServiceError> {
        let opened = self.opened().get(&id).map(Arc::clone);
        let row = match opened {
            Some(open) if self.inner.options.volume.is_some() => return Ok(open),
            Some(open) => {
                let row = self.find(id).await?;
                if row.created_at == open.workspace.created_at {
                    return Ok(open);
                }
                self.opened().remove(&id);
                row
            }
            None => self.find(id).await?,
        };
        let workspace = Arc::new(self.inner.open(row).await?);
        let spaces = self.downgrade();
        workspace.toolbox().host_forks(Arc::new(HostedForks { spaces, base: id }));
        workspace.toolbox().make_tries_by(self.try_host());
        // The open handle prevents a removal from here on; one may have happened before.
        if self.inner.store.workspace(id).await?.is_none() {
            drop(workspace);
            self.inner.remove_orphan(id).await;
            return Err(ServiceError::NoWorkspace { id });
        }
        let (idle, workspace) = {
            let mut opened = self.opened();
            if self.inner.removing().contains(&id) {
                return Ok(workspace);
            }
            let is_idle = |_: &_, workspace: &mut Arc<OpenWorkspace>| {
                Arc::strong_count(workspace) == 1 && !workspace.is_busy()
            };
            let full = opened.len() >= MAX_IDLE;
            let idle = full.then(|| opened.extract_if(is_idle).next()).flatten();
            (idle, Arc::clone(opened.entry(id).or_insert(workspace)))
        };
        if let Some((_, idle)) = idle {
            self.close_workspace(&idle).await;
        }
        Ok(workspace)
    }

    /// Removes the mark that the workspace may change at any time, so that counts of it can be cached on
    /// disk again.
    async fn close_workspace(&self, workspace: &OpenWorkspace) {
        if let Err(error) = self.inner.workspaces.touch(&workspace.key).await {
            debug!(key = %workspace.key, %error, "could not remove the mark of an open workspace; it is counted each time");
        }
    }

    /// Checks the quota of a workspace and the free-space reserve before a write. Counts only if the cached
    /// usage does not prove that the workspace fits. Returns the usage as last known.
    pub async fn check_quota(&self, workspace: &OpenWorkspace) -> Result<Amount, ServiceError> {
        self.check_free_space()?;
        let used = match workspace.usage().still_fits()? {
            Some(used) => {
                workspace.named_workspace().handle().set_used(used);
                used
            }
            None => self.recheck_quota(workspace).await?,
        };
        workspace.usage().expect_changes();
        Ok(used)
    }

    /// Counts a workspace and checks its quota.
    pub async fn recheck_quota(&self, workspace: &OpenWorkspace) -> Result<Amount, ServiceError> {
        let counting = workspace.usage().begin_count()?;
        let counted = self.inner.workspaces.mark_in_use_and_check_quota(&workspace.key).await?;
        let Some(counted) = counted else { return Ok(Amount::default()) };
        workspace.usage().end_count(counting, counted);
        workspace.named_workspace().handle().set_used(counted.amount);
        Ok(counted.amount)
    }

    /// Returns the usage of a workspace; `None` if it has no directory yet.
    pub async fn usage(&self, id: WorkspaceId) -> Result<Option<MeasuredUsage>, ServiceError> {
        let Some(workspace) = self.opened().get(&id).cloned() else {
            let key = self.inner.workspaces.key(&identifier(id)?)?;
            return Ok(self.inner.workspaces.usage(&key, Freshness::Cached).await?);
        };
        if !workspace.is_busy()
            && let Some(counted) = workspace.usage().unchanged()
        {
            return Ok(Some(counted));
        }
        let counting = workspace.usage().begin_count()?;
        let counted = self.inner.workspaces.usage(&workspace.key, Freshness::Recount).await?;
        if let Some(counted) = counted {
            workspace.usage().end_count(counting, counted);
        }
        Ok(counted)
    }

    /// Removes a workspace with its tasks, credentials and replies, and kills its background jobs. Fails
    /// if tasks are queued or running or its directory is in use; everything but the jobs is then left.
    pub async fn remove(&self, id: WorkspaceId) -> Result<(), ServiceError> {
        let inner = &*self.inner;
        let row = inner.store.workspace(id).await?;
        let row = row.ok_or(ServiceError::NoWorkspace { id })?;
        self.refuse_live_tasks(id).await?;
        let _removal = inner.begin_removal(id);
        self.close_for_good(id).await;
        let key = inner.workspaces.key(&identifier(id)?)?;
        inner.options.runner.end_fork(&inner.workspaces.path().join(key.as_str())).await?;
        let doomed = inner.workspaces.lock_for_removal(identifier(id)?).await?;
        if !inner.store.delete_workspace(id).await? {
            return Err(ServiceError::WorkspaceBusy { id });
        }
        if let Err(error) =
            inner.workspaces.remove_locked(doomed, UnsavedWork::Discard, &inner.hooks).await
        {
            // Without its row the directory could not be removed later.
            inner.store.add_workspace(row).await?;
            return Err(error.into());
        }
        Ok(())
    }

    pub(crate) async fn has_live_tasks(&self, id: WorkspaceId) -> Result<bool, ServiceError> {
        for status in [TaskStatus::Queued, TaskStatus::Running] {
            let status = Some(status);
            let filter = TaskFilter { workspace: id, status, task_type: None, limit: 1, offset: 0 };
            if self.inner.store.tasks(filter).await?.total > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn workspaces(&self) -> &Workspaces {
        &self.inner.workspaces
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    pub(crate) fn runner(&self) -> &Runner {
        &self.inner.options.runner
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.inner.hooks
    }

    pub(crate) async fn forking(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.inner.forking.lock().await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.options.clock.now()
    }

    /// Keeps a workspace out of the cache until the result is dropped.
    pub(crate) fn begin_removal(&self, id: WorkspaceId) -> Removal<'_> {
        self.inner.begin_removal(id)
    }

    /// Fails while a task of a workspace is queued or running.
    pub(crate) async fn refuse_live_tasks(&self, id: WorkspaceId) -> Result<(), ServiceError> {
        if self.has_live_tasks(id).await? {
            return Err(ServiceError::WorkspaceBusy { id });
        }
        Ok(())
    }

    /// Returns the last use of a workspace that is open in this process: now, while something uses it.
    pub(crate) fn last_use(&self, id: WorkspaceId) -> Option<Timestamp> {
        let opened = self.opened();
        let open = opened.get(&id)?;
        let is_used = Arc::strong_count(open) > 1 || open.is_busy();
        Some(if is_used { self.now() } else { open.last_used() })
    }

    /// Takes a workspace out of the cache that nothing uses and that was not used since `moment`.
    pub(crate) fn take_idle(
        &self,
        id: WorkspaceId,
        moment: Timestamp,
    ) -> Result<Option<Arc<OpenWorkspace>>, InUse> {
        let mut opened = self.opened();
        let Some(open) = opened.get(&id) else { return Ok(None) };
        if Arc::strong_count(open) > 1 || open.is_busy() || open.last_used() >= moment {
            return Err(InUse);
        }
        Ok(opened.remove(&id))
    }

    /// Kills the processes of a workspace that is removed or promoted, and closes it.
    pub(crate) async fn close_for_good(&self, id: WorkspaceId) {
        let workspace = self.opened().remove(&id);
        if let Some(workspace) = workspace {
            self.end_open(&workspace).await;
        }
    }

    /// Ends what runs in a workspace that is not in the cache any more, and closes its files.
    pub(crate) async fn end_open(&self, workspace: &OpenWorkspace) {
        workspace.toolbox().end_processes().await;
        self.inner.snapshots.forget(workspace.named_workspace().path());
    }

    /// Returns the id of this volume.
    pub fn volume(&self) -> VolumeId {
        self.inner.volume
    }

    /// Returns the directory of the volume.
    pub fn root(&self) -> &std::path::Path {
        self.inner.workspaces.path()
    }

    /// Returns the quota of files of each workspace, if there is one.
    pub fn quota_files(&self) -> Option<u64> {
        self.inner.options.quota.files
    }

    pub(crate) fn running_tries(&self) -> &RunningTries {
        &self.inner.tries
    }

    pub(crate) fn downgrade(&self) -> WeakWorkspaces {
        WeakWorkspaces(Arc::downgrade(&self.inner))
    }

    /// Kills all background jobs and the commands of tries, and closes all workspaces.
    pub async fn close(&self) {
        self.stop_tries().await;
        let workspaces: Vec<_> = self.opened().drain().map(|(_, workspace)| workspace).collect();
        for workspace in workspaces {
            workspace.toolbox().end_processes().await;
            self.close_workspace(&workspace).await;
        }
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Arc<OpenWorkspace>>> {
        sync::lock(&self.inner.open)
    }
}

pub(crate) fn identifier(id: WorkspaceId) -> Result<Identifier, ServiceError> {
    Identifier::parse(id.to_string()).map_err(|_| ServiceError::NoWorkspace { id })
}

impl Inner {
    fn removing(&self) -> MutexGuard<'_, HashSet<WorkspaceId>> {
        sync::lock(&self.removing)
    }

    /// Keeps a workspace out of the cache until the result is dropped.
    fn begin_removal(&self, id: WorkspaceId) -> Removal<'_> {
        self.removing().insert(id);
        Removal { inner: self, id }
    }

    /// Removes a directory that has no row, unless it is in use.
    async fn remove_orphan(&self, id: WorkspaceId) {
        let Ok(identifier) = identifier(id) else { return };
        let target = Target::Identifier(identifier);
        let remove = Remove { target, unsaved: UnsavedWork::Discard };
        if let Err(error) = self.workspaces.remove(remove, &self.hooks).await {
            debug!(workspace = %id, %error, "could not remove a directory without a workspace");
        }
    }

    async fn open(&self, workspace: Workspace) -> Result<OpenWorkspace, ServiceError> {
        let identifier = identifier(workspace.id)?;
        let quota = Quota { bytes: ByteSize::bytes(workspace.quota_bytes), ..self.options.quota };
        let create = Create {
            layout: workspace.layout,
            quota: Some(quota),
            ..Create::new(identifier.clone())
        };
        let created = self.workspaces.create(create, &self.hooks).await?;
        let key = created.record.key.clone();
        let counted = self.workspaces.mark_in_use_and_measure(&key).await?;
        let counted = counted.ok_or(ServiceError::NoWorkspace { id: workspace.id })?;
        let opened = self.workspaces.open(&identifier).await?;
        let handle = self.options.runner.open_counted(opened, counted.amount).await?;
        let watcher = handle.quota_watcher()?.expect("every workspace of the service has a quota");
        let usage = UsageCache::new(watcher, counted);
        let entry = WorkspaceEntry {
            name: workspace.id.to_string(),
            path: created.path,
            access: WorkspaceAccess::ReadWrite,
        };
        let named = NamedWorkspace::new(entry, handle);
        let all = carrel_tools::Workspaces::new(vec![named]).expect("one overlaps no other");
        let named = Arc::clone(all.iter().next().expect("there is one"));
        let options = &self.options;
        let toolbox = Toolbox::new(ToolboxOptions {
            workspaces: all,
            runner: options.runner.clone(),
            secrets: Secrets::default(),
            access: WorkspaceAccess::ReadWrite,
            network: NetworkRequest { workspace: workspace.network, ..NetworkRequest::default() },
            git: options.git.clone(),
            reply_bytes: carrel_tools::DEFAULT_REPLY_BYTES,
            symbols: Arc::clone(&self.symbols),
            snapshots: Arc::clone(&self.snapshots),
        });
        let now = self.options.clock.now();
        Ok(OpenWorkspace::new(workspace, key, usage, named, toolbox, now))
    }
}
