//! The workspaces of this machine, open for tools.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_config::Environment;
use carrel_domain::{
    ByteSize, Clock, Identifier, Layout, Network, TaskStatus, VolumeId, WorkspaceAccess,
    WorkspaceId, WorkspaceKey, sync,
};
use carrel_exec::{JobStatus, LazySpawner, Owner};
use carrel_fsroot::{Capacity, Root};
use carrel_runner::{RunError, Runner, WorkspaceHandle};
use carrel_store::{Store, TaskFilter, Workspace};
use carrel_tools::{
    AuditLog, CallOptions, Failure, GitOptions, NamedWorkspace, Registry, Secrets, Session,
    ToolResponse, Toolbox, ToolboxOptions, Toolset, Upload, UploadedFile, WorkspaceEntry,
};
use carrel_workspace::{
    Amount, Create, Freshness, Hooks, MeasuredUsage, Quota, Remove, RootOptions, Target, Workspaces,
};
use serde_json::{Map, Value};
use tracing::debug;

use crate::error::ServiceError;
use crate::free_space::FreeSpaceReserve;
use crate::usage_cache::UsageCache;

/// Workspaces that stay open when nobody uses them.
const MAX_IDLE: usize = 256;

/// What the workspaces of a machine are opened with.
#[derive(Debug)]
pub struct HostedWorkspacesOptions {
    /// The directory that holds them.
    pub root: PathBuf,
    /// What the store calls it, if no other process uses that store; otherwise it has a name itself.
    pub volume: Option<VolumeId>,
    /// The quota of those that have none of their own.
    pub quota: Quota,
    /// What runs commands.
    pub runner: Runner,
    /// What starts processes.
    pub commands: LazySpawner,
    /// The operator's environment.
    pub environment: Environment,
    /// Where events go.
    pub events: AuditLog,
    /// Which machines git may reach.
    pub git: GitOptions,
    /// How much of the disk has to stay free.
    pub reserve: FreeSpaceReserve,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

/// The workspaces of this machine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HostedWorkspaces {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    workspaces: Workspaces,
    volume: VolumeId,
    /// The directory that holds them.
    disk: Root,
    hooks: Hooks,
    options: HostedWorkspacesOptions,
    store: Arc<dyn Store>,
    open: Mutex<HashMap<WorkspaceId, Arc<OpenWorkspace>>>,
    /// Those that are being removed, which do not stay open.
    leaving: Mutex<HashSet<WorkspaceId>>,
}

/// A workspace that is being removed.
struct Leaving<'a> {
    inner: &'a Inner,
    id: WorkspaceId,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.inner.leaving().remove(&self.id);
    }
}

/// A workspace that is open for tools.
#[derive(Debug)]
pub struct OpenWorkspace {
    /// What the store says about it.
    pub workspace: Workspace,
    /// Its directory's name.
    pub key: WorkspaceKey,
    books: UsageCache,
    place: Arc<NamedWorkspace>,
    service: Registry,
    code: Registry,
}

/// A workspace that is to be.
#[derive(Clone, Debug)]
pub struct WorkspaceSpec {
    /// Its id.
    pub id: WorkspaceId,
    /// What people call it.
    pub name: String,
    /// How its inside is arranged.
    pub layout: Layout,
    /// How much it may hold; the machine's usual if none.
    pub quota: Option<ByteSize>,
    /// The network of its commands when they do not say.
    pub network: Option<Network>,
}

impl WorkspaceSpec {
    /// Returns what a workspace is that nobody described.
    pub fn with_defaults(id: WorkspaceId) -> Self {
        Self { id, name: id.to_string(), layout: Layout::Tenant, quota: None, network: None }
    }
}

impl HostedWorkspaces {
    /// Opens the directory that holds the workspaces, and makes it if it is missing.
    pub fn open(
        options: HostedWorkspacesOptions,
        store: Arc<dyn Store>,
    ) -> Result<Self, ServiceError> {
        let workspaces = Workspaces::open_or_create(&RootOptions {
            root: options.root.clone(),
            home: None,
            quota: options.quota,
            clock: Arc::clone(&options.clock),
        })?;
        let hooks = Hooks::none(options.commands.clone());
        let disk = Root::open(workspaces.path()).map_err(RunError::Workspace)?;
        let (open, leaving) = (Mutex::default(), Mutex::default());
        let volume = options.volume.map_or_else(|| workspaces.volume(), Ok)?;
        let inner = Inner { workspaces, volume, disk, hooks, options, store, open, leaving };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns what the disk of the workspaces has, and has left.
    pub fn capacity(&self) -> Result<Capacity, ServiceError> {
        Ok(self.inner.disk.capacity().map_err(RunError::Workspace)?)
    }

    /// Refuses to begin anything while the disk has less left than has to stay free.
    pub fn check_free_space(&self) -> Result<(), ServiceError> {
        let (disk, floor) = (self.capacity()?, self.inner.options.reserve);
        if !floor.is_passed(disk) {
            return Ok(());
        }
        let (free, floor) = (disk.free.bytes, floor.bytes_of(disk));
        Err(ServiceError::LowSpace { free: ByteSize::bytes(free), floor: ByteSize::bytes(floor) })
    }

    /// Returns what those workspaces use that are open, as last counted.
    pub fn cached_usage(&self) -> Vec<(WorkspaceId, Amount)> {
        let opened = self.opened();
        opened.iter().map(|(id, space)| (*id, space.place.handle().used())).collect()
    }

    /// Makes a workspace, or finds the one that has the id. Returns whether it was made.
    pub async fn provision(&self, new: WorkspaceSpec) -> Result<(Workspace, bool), ServiceError> {
        self.check_free_space()?;
        let inner = &*self.inner;
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

    /// Returns what the store says about a workspace.
    pub async fn find(&self, id: WorkspaceId) -> Result<Workspace, ServiceError> {
        // One that is open is there, if nobody else can have removed it.
        let alone = self.inner.options.volume.is_some();
        if let Some(space) = self.opened().get(&id).filter(|_| alone) {
            return Ok(space.workspace.clone());
        }
        self.inner.store.workspace(id).await?.ok_or(ServiceError::NoWorkspace { id })
    }

    /// Opens a workspace. Its directory is made if it is not there.
    pub async fn open_workspace(
        &self,
        id: WorkspaceId,
    ) -> Result<Arc<OpenWorkspace>, ServiceError> {
        let opened = self.opened().get(&id).map(Arc::clone);
        let workspace = match opened {
            // Nobody else could have removed it.
            Some(space) if self.inner.options.volume.is_some() => return Ok(space),
            Some(space) => {
                let workspace = self.find(id).await?;
                if workspace.created_at == space.workspace.created_at {
                    return Ok(space);
                }
                self.opened().remove(&id);
                workspace
            }
            None => self.find(id).await?,
        };
        let space = Arc::new(self.inner.space(workspace).await?);
        // From here on nobody can remove it; somebody may have before.
        if self.inner.store.workspace(id).await?.is_none() {
            drop(space);
            self.inner.remove_remains(id).await;
            return Err(ServiceError::NoWorkspace { id });
        }
        let (idle, space) = {
            let mut opened = self.opened();
            if self.inner.leaving().contains(&id) {
                return Ok(space);
            }
            let is_idle = |_: &_, space: &mut Arc<OpenWorkspace>| {
                Arc::strong_count(space) == 1 && !space.is_busy()
            };
            let full = opened.len() >= MAX_IDLE;
            let idle = full.then(|| opened.extract_if(is_idle).next()).flatten();
            (idle, Arc::clone(opened.entry(id).or_insert(space)))
        };
        if let Some((_, idle)) = idle {
            self.let_go(&idle).await;
        }
        Ok(space)
    }

    /// Lets others count a workspace that is not open any more.
    async fn let_go(&self, space: &OpenWorkspace) {
        if let Err(error) = self.inner.workspaces.touch(&space.key).await {
            debug!(key = %space.key, %error, "the count will be made again");
        }
    }

    /// Looks whether a workspace is within its quota and the disk has room before something is written,
    /// and returns what it used when it was last counted.
    pub async fn check_quota(&self, space: &OpenWorkspace) -> Result<Amount, ServiceError> {
        self.check_free_space()?;
        let used = match space.books.still_fits()? {
            Some(used) => {
                space.place.handle().set_used(used);
                used
            }
            None => self.recheck_quota(space).await?,
        };
        space.books.expect_changes();
        Ok(used)
    }

    /// Counts a workspace, and looks whether it is within its quota.
    pub async fn recheck_quota(&self, space: &OpenWorkspace) -> Result<Amount, ServiceError> {
        let counting = space.books.begin_count()?;
        // LazySpawner of another server that has it open as well are in no count of ours.
        let counted = self.inner.workspaces.mark_in_use_and_check_quota(&space.key).await?;
        let Some(counted) = counted else { return Ok(Amount::default()) };
        space.books.end_count(counting, counted);
        space.place.handle().set_used(counted.amount);
        Ok(counted.amount)
    }

    /// Returns what a workspace uses; nothing if it has no directory yet.
    pub async fn usage(&self, id: WorkspaceId) -> Result<Option<MeasuredUsage>, ServiceError> {
        let Some(space) = self.opened().get(&id).cloned() else {
            let key = self.inner.workspaces.key(&identifier(id)?)?;
            return Ok(self.inner.workspaces.usage(&key, Freshness::Cached).await?);
        };
        if !space.is_busy()
            && let Some(counted) = space.books.unchanged()
        {
            return Ok(Some(counted));
        }
        let counting = space.books.begin_count()?;
        let counted = self.inner.workspaces.usage(&space.key, Freshness::Recount).await?;
        if let Some(counted) = counted {
            space.books.end_count(counting, counted);
        }
        Ok(counted)
    }

    /// Removes a workspace with everything that belongs to it, and ends what runs there in the
    /// background. One whose directory somebody uses stays, with everything that belongs to it.
    pub async fn remove(&self, id: WorkspaceId) -> Result<(), ServiceError> {
        let inner = &*self.inner;
        let workspace = inner.store.workspace(id).await?;
        let workspace = workspace.ok_or(ServiceError::NoWorkspace { id })?;
        if self.has_work(id).await? {
            return Err(ServiceError::WorkspaceBusy { id });
        }
        let _leaving = inner.leave(id);
        let space = self.opened().remove(&id);
        if let Some(space) = space {
            space.code.toolbox().jobs.stop_all().await;
        }
        let doomed = inner.workspaces.lock_for_removal(identifier(id)?).await?;
        if !inner.store.delete_workspace(id).await? {
            return Err(ServiceError::WorkspaceBusy { id });
        }
        if let Err(error) = inner.workspaces.remove_locked(doomed, false, &inner.hooks).await {
            // What is still there has to be known, or nobody could remove it later.
            inner.store.add_workspace(workspace).await?;
            return Err(error.into());
        }
        Ok(())
    }

    /// Tells whether a task waits or runs.
    async fn has_work(&self, id: WorkspaceId) -> Result<bool, ServiceError> {
        for status in [TaskStatus::Queued, TaskStatus::Running] {
            let status = Some(status);
            let filter = TaskFilter { workspace: id, status, task_type: None, limit: 1, offset: 0 };
            if self.inner.store.tasks(filter).await?.total > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the volume that this directory of workspaces is.
    pub fn volume(&self) -> VolumeId {
        self.inner.volume
    }

    /// Returns the directory that holds the workspaces.
    pub fn root(&self) -> &std::path::Path {
        self.inner.workspaces.path()
    }

    /// Returns how many files a workspace may hold, if that is limited.
    pub fn quota_files(&self) -> Option<u64> {
        self.inner.options.quota.files
    }

    /// Ends everything that runs in the background.
    pub async fn close(&self) {
        let spaces: Vec<_> = self.opened().drain().map(|(_, space)| space).collect();
        for space in spaces {
            space.code.toolbox().jobs.stop_all().await;
            self.let_go(&space).await;
        }
    }

    /// Ends what somebody left running in the background, wherever that is.
    pub async fn stop_owner(&self, owner: &Owner) {
        let spaces: Vec<_> = self.opened().values().cloned().collect();
        for space in spaces {
            space.code.toolbox().jobs.stop_owner(owner).await;
        }
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Arc<OpenWorkspace>>> {
        sync::lock(&self.inner.open)
    }
}

fn identifier(id: WorkspaceId) -> Result<Identifier, ServiceError> {
    Identifier::parse(id.to_string()).map_err(|_| ServiceError::NoWorkspace { id })
}

impl Inner {
    fn leaving(&self) -> MutexGuard<'_, HashSet<WorkspaceId>> {
        sync::lock(&self.leaving)
    }

    /// Keeps a workspace from staying open until the result is dropped.
    fn leave(&self, id: WorkspaceId) -> Leaving<'_> {
        self.leaving().insert(id);
        Leaving { inner: self, id }
    }

    /// Removes the directory of a workspace that nobody knows of, unless somebody else uses it.
    async fn remove_remains(&self, id: WorkspaceId) {
        let Ok(identifier) = identifier(id) else { return };
        let remove = Remove { target: Target::Identifier(identifier), keep_if_dirty: false };
        if let Err(error) = self.workspaces.remove(remove, &self.hooks).await {
            debug!(workspace = %id, %error, "the directory stays");
        }
    }

    async fn space(&self, workspace: Workspace) -> Result<OpenWorkspace, ServiceError> {
        let identifier = identifier(workspace.id)?;
        let quota = Quota { bytes: ByteSize::bytes(workspace.quota_bytes), ..self.options.quota };
        let create = Create {
            layout: workspace.layout,
            quota: Some(quota),
            ..Create::new(identifier.clone())
        };
        let made = self.workspaces.create(create, &self.hooks).await?;
        let key = made.record.key.clone();
        let counted = self.workspaces.mark_in_use_and_measure(&key).await?;
        let counted = counted.ok_or(ServiceError::NoWorkspace { id: workspace.id })?;
        let opened = self.workspaces.open(&identifier).await?;
        let desk = WorkspaceHandle::for_workspace(opened, counted.amount)?;
        let watcher = desk.quota_watcher()?.expect("every workspace of the service has a quota");
        let books = UsageCache::new(watcher, counted);
        let entry = WorkspaceEntry {
            name: workspace.id.to_string(),
            path: made.path,
            access: WorkspaceAccess::ReadWrite,
        };
        let place = NamedWorkspace::new(entry, desk);
        let places = carrel_tools::Workspaces::new(vec![place]).expect("one overlaps no other");
        let place = Arc::clone(places.iter().next().expect("there is one"));
        let options = &self.options;
        let toolbox = Toolbox::new(ToolboxOptions {
            workspaces: places,
            runner: options.runner.clone(),
            secrets: Secrets::default(),
            events: options.events.clone(),
            access: WorkspaceAccess::ReadWrite,
            network: workspace.network,
            git: options.git.clone(),
        });
        let service = Registry::new(Arc::clone(&toolbox), Toolset::Workspace);
        let code = Registry::new(toolbox, Toolset::Code).without_operator_tools();
        Ok(OpenWorkspace { workspace, key, books, place, service, code })
    }
}

impl OpenWorkspace {
    /// Calls a tool of either toolset.
    pub async fn call(
        &self,
        session: &Arc<Session>,
        tool: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        let registry = if self.service.has(tool) { &self.service } else { &self.code };
        registry.call(session, tool, arguments, options).await
    }

    /// Begins to take a file that arrives in parts, of which so much is known to come.
    pub async fn upload(&self, path: &str, expected: Option<u64>) -> Result<Upload, Failure> {
        Upload::begin(self.code.toolbox(), &self.place, path, expected).await
    }

    /// Gives a file that has arrived its name.
    pub async fn finish(&self, upload: Upload) -> Result<UploadedFile, Failure> {
        upload.finish(self.code.toolbox()).await
    }

    /// Says that something may have been written.
    pub fn expect_changes(&self) {
        self.books.expect_changes();
    }

    /// Returns the tools of both toolsets.
    pub fn registries(&self) -> [&Registry; 2] {
        [&self.service, &self.code]
    }

    /// Returns the place that tools work in.
    pub fn named_workspace(&self) -> &Arc<NamedWorkspace> {
        &self.place
    }

    /// Tells whether something runs in the background.
    fn is_busy(&self) -> bool {
        let jobs = self.code.toolbox().jobs.list();
        jobs.iter().any(|job| matches!(job.status(), JobStatus::Running))
    }
}
