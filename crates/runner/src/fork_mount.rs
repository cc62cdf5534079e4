//! The mounted trees of forks.
//!
//! A process mounts the overlay of a fork once, when the fork is first opened, and everything that works in it shares
//! the mount: tools read and write through the root of the merged tree, and cells join the namespaces in which it is
//! mounted. The mount ends with the last of them. The kernel would let a second process mount the same layers and
//! damage them, so a lock on the layers refuses that.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use carrel_domain::{Network, Tier, WorkspaceAccess, sync};
use carrel_exec::{OverlayError, OverlayMount};
use carrel_fork::{Layers, Readiness};
use carrel_fsroot::{Root, Writer};
use carrel_sandbox::{
    GitDirectory, OverlayDirectories, OverlayPlan, Owner, Plan, Policy, UsedLayers, WorkspaceSource,
};
use carrel_workspace::{Amount, Workspace};
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use crate::cell_cache::CellKey;
use crate::error::RunError;
use crate::request::Grants;
use crate::runner::{Runner, RunnerInner, SandboxMode};
use crate::workspace_handle::WorkspaceHandle;

/// The time for the end of the processes that have the layers of a fork mounted, and of a pause meanwhile.
const END_TIME: Duration = Duration::from_secs(1);
const END_PAUSE: Duration = Duration::from_millis(20);

/// The mounted tree of a fork.
#[derive(Debug)]
pub(crate) struct ForkMount {
    pub(crate) mount: OverlayMount,
    /// The path of the base.
    pub(crate) base: PathBuf,
    /// The merged tree, under the path of the fork.
    pub(crate) tree: Root,
    /// The upper layer, which holds what the fork changed.
    pub(crate) upper: Root,
}

/// The mounted trees of a runner's forks, by their paths.
#[derive(Debug, Default)]
pub(crate) struct ForkMounts {
    slots: Mutex<HashMap<PathBuf, Slot>>,
    /// One was mounted.
    has_mounted: AtomicBool,
}

type Slot = Arc<tokio::sync::Mutex<Weak<ForkMount>>>;

impl ForkMounts {
    fn slot(&self, fork: &Path) -> Slot {
        let mut slots = sync::lock(&self.slots);
        slots.retain(|_, slot| {
            let is_used = Arc::strong_count(slot) > 1;
            is_used || slot.try_lock().is_ok_and(|mount| mount.strong_count() > 0)
        });
        Arc::clone(slots.entry(fork.to_owned()).or_default())
    }
}

impl Runner {
    /// Opens a workspace for tools and commands, after a last check of its path and its quota.
    pub async fn open(&self, workspace: &Arc<Workspace>) -> Result<WorkspaceHandle, RunError> {
        let used = workspace.mark_in_use().await?;
        self.open_counted(Arc::clone(workspace), used).await
    }

    /// Opens a workspace whose usage is known. It cannot be removed while the handle exists. The tree of a fork is
    /// mounted, unless this runner has it mounted already.
    pub async fn open_counted(
        &self,
        workspace: impl Into<Arc<Workspace>>,
        used: Amount,
    ) -> Result<WorkspaceHandle, RunError> {
        let workspace = workspace.into();
        match self.inner.mount_of(&workspace).await? {
            None => WorkspaceHandle::for_workspace(workspace, used),
            Some(mount) => WorkspaceHandle::for_fork(workspace, used, mount),
        }
    }

    /// Returns whether forks are overlays here, as far as that is known; otherwise they are copies.
    pub fn mounts_overlays(&self) -> bool {
        self.inner.expected_tier() == Some(Tier::Full)
    }

    /// Returns whether a fork was mounted, so that this host can.
    pub fn has_mounted_forks(&self) -> bool {
        self.inner.forks.has_mounted.load(Ordering::Relaxed)
    }

    /// Ends the idle cells of a fork and its mount. Fails while something else uses the fork.
    pub fn end_fork<'a>(&'a self, fork: &'a Path) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(self.unmount(fork))
    }

    async fn unmount(&self, fork: &Path) -> Result<(), RunError> {
        let idle = self.inner.cells.cache.take_idle(fork);
        let drop_all = move || {
            drop(idle);
            Ok(())
        };
        self.inner.files(drop_all).await?;
        let slot = self.inner.forks.slot(fork);
        let mounted = slot.lock().await.upgrade();
        let Some(mount) = mounted else { return Ok(()) };
        let Some(ForkMount { mount, tree, .. }) = Arc::into_inner(mount) else {
            return Err(RunError::ForkInUse { fork: fork.to_owned() });
        };
        drop(tree);
        Ok(mount.end().await?)
    }
}

impl RunnerInner {
    /// Returns the mounted tree of a fork; none for a workspace that is no overlay.
    fn mount_of<'a>(
        &'a self,
        workspace: &'a Arc<Workspace>,
    ) -> BoxFuture<'a, Result<Option<Arc<ForkMount>>, RunError>> {
        Box::pin(self.find_or_mount(workspace))
    }

    async fn find_or_mount(
        &self,
        workspace: &Arc<Workspace>,
    ) -> Result<Option<Arc<ForkMount>>, RunError> {
        if workspace.record().fork.is_none() {
            return Ok(None);
        }
        let own = Arc::clone(workspace);
        let Some((base, layers)) = self.files(move || Ok(own.overlay()?)).await? else {
            return Ok(None);
        };
        let slot = self.forks.slot(workspace.files().path());
        let mut mounted = slot.lock().await;
        if let Some(mount) = mounted.upgrade() {
            return Ok(Some(mount));
        }
        // Idle cells of an earlier mount keep the lock of the layers.
        let idle = self.cells.cache.take_idle(workspace.files().path());
        let drop_all = move || {
            drop(idle);
            Ok(())
        };
        self.files(drop_all).await?;
        let mount = Arc::new(self.mount(workspace, &base, layers).await?);
        *mounted = Arc::downgrade(&mount);
        Ok(Some(mount))
    }

    async fn mount(
        &self,
        workspace: &Workspace,
        base: &Root,
        layers: Layers,
    ) -> Result<ForkMount, RunError> {
        if self.options.sandbox == SandboxMode::Off {
            return Err(RunError::ForkWithoutSandbox { fork: workspace.files().path().to_owned() });
        }
        let place = workspace.files();
        let ready = layers.readiness().map_err(carrel_workspace::Error::from)?;
        if ready == Readiness::OtherBoot {
            return Err(RunError::ForkLost { fork: place.path().to_owned() });
        }
        let plan = self.overlay_plan(workspace, base, layers.directory())?;
        // Layers of this boot have lost nothing, although nothing of them is synced. The spawner makes them ready
        // under their lock: another process may have them mounted.
        let plan = plan.with_used_layers(UsedLayers::Accept);
        let spawner = self.options.spawner.get()?;
        let begun = Instant::now();
        let mount = loop {
            let directories = OverlayDirectories {
                lower: base.as_fd(),
                layers: layers.directory().as_fd(),
                target: place.as_fd(),
            };
            match spawner.overlay(plan.clone(), directories).await {
                // The processes of a server that was killed take a moment to end.
                Err(OverlayError::InUse) if begun.elapsed() < END_TIME => sleep(END_PAUSE).await,
                mounted => break mounted?,
            }
        };
        self.forks.has_mounted.store(true, Ordering::Relaxed);
        let root = mount.root().try_clone_to_owned()?;
        let writer = plan.writer().map(|Owner { user, group }| Writer { user, group });
        let tree = Root::with_label(root, place.path().to_owned(), writer);
        let upper = layers.upper().map_err(carrel_workspace::Error::from)?;
        Ok(ForkMount { mount, base: base.path().to_owned(), tree, upper })
    }

    /// Returns the plan of a fork's overlay, for the same users as its commands.
    fn overlay_plan(
        &self,
        workspace: &Workspace,
        base: &Root,
        layers: &Root,
    ) -> Result<OverlayPlan, RunError> {
        let top = workspace.files().own_metadata().map_err(RunError::Workspace)?;
        let key = CellKey {
            workspace: workspace.files().path().to_owned(),
            access: WorkspaceAccess::ReadWrite,
            network: Network::None,
            repository: GitDirectory::Absent,
            grants: Grants::default(),
        };
        let policy = Policy {
            workspace: key.workspace.clone(),
            owner: Owner { user: top.uid, group: top.gid },
            workspace_source: WorkspaceSource::Overlay,
            alias: None,
            access: key.access,
            git_directory: key.repository,
            scratch: layers.path().to_owned(),
            home: None,
            readable: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            network: key.network,
            users: self.users(),
        };
        let plan = Plan::new(&policy, &self.host, Tier::Full)?;
        let overlay = OverlayPlan::new(&plan, base.path().to_owned(), layers.path().to_owned());
        Ok(overlay.expect("the policy asks for an overlay"))
    }
}
