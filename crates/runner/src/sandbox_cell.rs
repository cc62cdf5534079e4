//! The sandbox cell of a workspace, and the site where a command runs.
//!
//! A cell is a process that has applied a sandbox plan once and is forked for each command; making one
//! takes milliseconds, a command in it a fraction of one. [`Cells::enter`] returns the cell for a
//! request, from the cache or newly made, or the host if the operator switched the sandbox off.
//!
//! The tier is chosen here. With `auto`, tier `full` is tried first. If it fails because of the host
//! (no user namespaces), that is remembered and every later cell is made in tier `landlock`; if it fails
//! because of one workspace (its path or its file system), only that workspace falls back. Any other
//! failure is an error: a command never runs with less than was asked for.
//!
//! Commands of a cell in tier `full` have mounts of their own for `/tmp`. In tier `landlock` all
//! commands see the same file system, so each gets a directory of its own with an unpredictable name.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use carrel_config::TierChoice;
use carrel_domain::{Network, Tier, WorkspaceAccess, sync};
use carrel_exec::{Cell, CellError, Directory, Spawner};
use carrel_fsroot::Root;
use carrel_sandbox::{CommandUser, GitDirectory, Host, Owner, Plan, Policy, UserRange};
use tracing::{debug, warn};

use crate::cell_cache::{CacheSlot, CellCache, CellKey};
use crate::error::RunError;
use crate::real_path_cache::RealPathCache;
use crate::request::{Grants, RunRequest};
use crate::runner::{Feature, RunnerInner, SandboxMode};
use crate::scratch_directory::{ScratchDirectory, ScratchParent, SweepSchedule};
use crate::workspace_handle::WorkspaceHandle;

/// The site of a command.
#[derive(Clone, Debug)]
pub(crate) enum ExecutionSite {
    /// A cell, and in tier `landlock` the command's own directory for temporary files.
    Cell(Arc<SandboxCell>, Option<OwnDirectory>),
    /// The host, because the sandbox is off.
    Host(Spawner),
}

/// A directory for the temporary files of one command, below the scratch directory.
#[derive(Clone, Debug)]
pub(crate) struct OwnDirectory {
    name: PathBuf,
    /// Set for a directory that an earlier command left empty.
    exists: bool,
}

/// A cell with its plan and its scratch directory. Dropping it ends the cell's process and removes the
/// temporary files.
#[derive(Debug)]
pub(crate) struct SandboxCell {
    cell: Cell,
    pub(crate) plan: Plan,
    scratch: ScratchDirectory,
    /// An empty directory that an earlier command left, for the next one. Saves making and removing one
    /// for each command.
    spare: Mutex<Option<PathBuf>>,
}

/// The cells of a runner, and what making them has shown about the host.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    cache: CellCache,
    /// The reason why the host does not allow tier `full`, once that is known.
    full_tier_failure: OnceLock<String>,
    sweeps: Arc<SweepSchedule>,
    real_paths: RealPathCache,
}

impl ExecutionSite {
    pub(crate) fn spawner(&self) -> &Spawner {
        match self {
            Self::Cell(cell, _) => &cell.cell,
            Self::Host(spawner) => spawner,
        }
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Cell(cell, _) => Some(&cell.plan),
            Self::Host(_) => None,
        }
    }

    /// Returns the directory for temporary files, by its path inside the sandbox.
    pub(crate) fn temporary(&self) -> PathBuf {
        match self {
            Self::Cell(cell, Some(own)) => cell.plan.scratch.join(&own.name),
            Self::Cell(cell, None) => cell.plan.temporary(),
            Self::Host(_) => "/tmp".into(),
        }
    }

    /// Returns the scratch directory of the cell.
    pub(crate) fn scratch(&self) -> Option<Root> {
        match self {
            Self::Cell(cell, _) => cell.scratch.directory().try_clone().ok(),
            Self::Host(_) => None,
        }
    }

    /// Creates a directory below the one for temporary files. Returns the scratch directory and the path
    /// in it.
    pub(crate) fn make_below_temporary(&self, name: &str) -> Result<(Root, PathBuf), RunError> {
        match self {
            Self::Cell(cell, own) => {
                let above = own.as_ref().map_or(Path::new("tmp"), |own| &own.name);
                let path = above.join(name);
                cell.scratch.for_command(&path, cell.owner())?;
                let scratch = cell.scratch.directory().try_clone().map_err(RunError::Workspace)?;
                Ok((scratch, path))
            }
            Self::Host(_) => {
                let temporary = Root::open(&self.temporary()).map_err(RunError::Workspace)?;
                let path = PathBuf::from(name);
                temporary.create_directory(&path, 0o700).map_err(RunError::Workspace)?;
                Ok((temporary, path))
            }
        }
    }

    /// Returns the working directory for the spawner. A path in a cell is resolved again by the cell.
    pub(crate) fn directory(
        &self,
        workspace: &WorkspaceHandle,
        relative: &Path,
    ) -> Result<Directory, RunError> {
        match self {
            Self::Cell(..) => Ok(Directory::Inside(relative.to_owned())),
            Self::Host(_) if relative.as_os_str().is_empty() => {
                Ok(Directory::Opened(workspace.descriptor()?))
            }
            Self::Host(_) => {
                let directory =
                    workspace.directory.open_root(relative).map_err(RunError::Directory)?;
                Ok(Directory::Opened(directory.into()))
            }
        }
    }

    /// Returns whether the command needs a directory of its own that does not exist yet.
    pub(crate) fn lacks_directory(&self) -> bool {
        matches!(self, Self::Cell(_, Some(own)) if !own.exists)
    }

    /// Creates the command's own directory for temporary files, if it has one.
    pub(crate) fn make_directory(&self) -> Result<(), RunError> {
        let Self::Cell(cell, Some(own)) = self else { return Ok(()) };
        cell.scratch.for_command(&own.name, cell.owner())
    }

    /// Keeps the command's own directory for the next command if it is empty. Returns whether nothing
    /// has to be removed.
    pub(crate) fn keep_directory(&self) -> bool {
        let Self::Cell(cell, Some(own)) = self else { return true };
        if !cell.scratch.is_untouched(&own.name) {
            return false;
        }
        let mut spare = sync::lock(&cell.spare);
        if spare.is_some() {
            return false;
        }
        *spare = Some(own.name.clone());
        true
    }

    /// Removes the command's own directory with its contents.
    pub(crate) fn remove_directory(&self) {
        let Self::Cell(cell, Some(own)) = self else { return };
        cell.scratch.remove(&own.name);
    }
}

impl Cells {
    /// Returns the site for a request, and makes its cell if there is none.
    pub(crate) async fn enter(
        &self,
        inner: &RunnerInner,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        network: Network,
    ) -> Result<ExecutionSite, RunError> {
        let choice = match inner.options.sandbox {
            SandboxMode::Off => return Ok(ExecutionSite::Host(inner.options.spawner.get()?)),
            SandboxMode::Enforced(choice) => choice,
        };
        let key = CellKey {
            workspace: workspace.path().to_owned(),
            access: request.access,
            network,
            repository: workspace.repository(),
            grants: request.grants.clone(),
        };
        let slot = self.cache.slot(&key);
        let cell = slot.cell.get_or_try_init(|| self.make(inner, workspace, &key, choice)).await?;
        let cell = Arc::clone(cell);
        let own = cell.directory_of_command();
        Ok(ExecutionSite::Cell(cell, own))
    }

    /// Removes the idle cells of a workspace from the cache and returns them.
    pub(crate) fn take_idle(&self, workspace: &Path) -> Vec<Arc<CacheSlot>> {
        self.cache.take_idle(workspace)
    }

    /// Makes a cell in a given tier that is not cached, for the diagnosis.
    pub(crate) async fn try_tier(
        &self,
        inner: &RunnerInner,
        workspace: &WorkspaceHandle,
        tier: Tier,
    ) -> Result<ExecutionSite, RunError> {
        let key = CellKey {
            workspace: workspace.path().to_owned(),
            access: WorkspaceAccess::ReadWrite,
            network: Network::None,
            repository: GitDirectory::Absent,
            grants: Grants::default(),
        };
        let cell = Arc::new(self.make_in(inner, workspace, &key, tier).await?);
        let own = cell.directory_of_command();
        Ok(ExecutionSite::Cell(cell, own))
    }

    /// Makes a cell in the best tier that the choice and the host allow.
    async fn make(
        &self,
        inner: &RunnerInner,
        workspace: &WorkspaceHandle,
        key: &CellKey,
        choice: TierChoice,
    ) -> Result<Arc<SandboxCell>, RunError> {
        let cell = match (choice, self.full_tier_failure.get()) {
            (TierChoice::Only(tier), _) => self.make_in(inner, workspace, key, tier).await?,
            (TierChoice::Auto, Some(_)) => {
                self.make_in(inner, workspace, key, Tier::Landlock).await?
            }
            (TierChoice::Auto, None) => match self.make_in(inner, workspace, key, Tier::Full).await
            {
                Err(RunError::Cell(CellError::Refused(failure)))
                    if failure.is_tier_limitation() =>
                {
                    warn!(%failure, "tier `full` cannot be had here, using tier `landlock`");
                    if failure.is_host_limitation() {
                        self.full_tier_failure.get_or_init(|| failure.to_string());
                    }
                    let made = self.make_in(inner, workspace, key, Tier::Landlock).await;
                    made.map_err(|error| error.after_full_tier(&failure.to_string()))?
                }
                made => made?,
            },
        };
        Ok(Arc::new(cell))
    }

    async fn make_in(
        &self,
        inner: &RunnerInner,
        workspace: &WorkspaceHandle,
        key: &CellKey,
        tier: Tier,
    ) -> Result<SandboxCell, RunError> {
        inner.check_features(tier)?;
        let owner = owner_of(workspace)?;
        let own = (tier == Tier::Landlock && inner.host.is_root()).then_some(owner);
        if let Some(owner) = own {
            check_reachable(workspace.path(), owner)?;
        }
        let parent = match (own, workspace.workspace_root()) {
            // Other users than Carrel's cannot pass through a root's `.carrel`.
            (Some(_), Some(_)) => inner.shared_scratch_parent(workspace),
            _ => workspace.scratch_parent.clone(),
        };
        let sweeps = Arc::clone(&self.sweeps);
        let scratch =
            inner.files(move || ScratchDirectory::make(&parent, &sweeps, own, tier)).await?;
        let policy = inner.policy(workspace, key, owner, scratch.directory().path());
        let plan = Plan::new(&policy, &inner.host, tier)?;
        let spawner = inner.cell_spawner()?;
        let companion = self.cache.companion(key);
        let companion = companion.as_ref().map(|cell| &cell.cell);
        let directory = workspace.directory.as_fd();
        let scratch_directory = scratch.directory().as_fd();
        let cell = spawner.cell(plan.clone(), directory, scratch_directory, companion).await?;
        debug!(workspace = %workspace.path().display(), %tier, "made a cell");
        Ok(SandboxCell { cell, plan, scratch, spare: Mutex::default() })
    }
}

impl SandboxCell {
    pub(crate) fn is_gone(&self) -> bool {
        self.cell.is_gone()
    }

    /// Returns whether commands left temporary files that later commands could use.
    pub(crate) fn has_files(&self) -> bool {
        match self.plan.tier {
            Tier::Full => !self.scratch.is_empty(),
            // Each command had a directory of its own, which is gone.
            Tier::Landlock => false,
        }
    }

    /// Chooses the directory for the temporary files of one command.
    fn directory_of_command(&self) -> Option<OwnDirectory> {
        if self.plan.tier == Tier::Full {
            return None;
        }
        let spare = sync::lock(&self.spare).take();
        let exists = spare.is_some();
        // Other commands can write to the directory above, and must not guess the name.
        let new = || Path::new("tmp").join(format!("{:016x}", fastrand::u64(..)));
        Some(OwnDirectory { name: spare.unwrap_or_else(new), exists })
    }

    /// Returns the owner of the command's files, if that is not Carrel's own user.
    fn owner(&self) -> Option<Owner> {
        match self.plan.run_as {
            CommandUser::WorkspaceOwner(owner) => Some(owner),
            CommandUser::Server(_) | CommandUser::Mapped { .. } => None,
        }
    }
}

impl RunnerInner {
    /// Returns the parent of scratch directories for commands that run as another user.
    fn shared_scratch_parent(&self, workspace: &WorkspaceHandle) -> ScratchParent {
        let state = crate::runner::state_directory(&self.options.environment);
        state.map_or_else(
            || workspace.scratch_parent.clone(),
            |state| ScratchParent::of_state(&state),
        )
    }

    /// Refuses a tier that needs a disabled feature.
    fn check_features(&self, tier: Tier) -> Result<(), RunError> {
        let missing = |feature| self.options.disabled.contains(&feature);
        if missing(Feature::Seccomp) {
            return Err(RunError::Missing { tier, feature: "seccomp" });
        }
        if tier == Tier::Full && missing(Feature::UserNamespaces) {
            let errno = rustix::io::Errno::PERM.raw_os_error();
            let step = carrel_sandbox::SetupStep::UserNamespace;
            let failure = carrel_sandbox::SetupError { step, object: None, errno };
            return Err(RunError::Cell(CellError::Refused(failure)));
        }
        Ok(())
    }

    fn policy(
        &self,
        workspace: &WorkspaceHandle,
        key: &CellKey,
        owner: Owner,
        scratch: &Path,
    ) -> Policy {
        let operator = &self.options.policy;
        let toolchains = &self.toolchains.readable;
        let readable = operator.readable.iter().chain(&operator.path).chain(toolchains);
        let readable = readable.chain(&key.grants.readable);
        let writable = operator.writable.iter().chain(&key.grants.writable);
        // Paths that do not exist are left out.
        let granted = |path: &PathBuf| {
            let seen = is_seen(path, workspace.path(), &self.host);
            if seen { None } else { self.cells.real_paths.resolve(path) }
        };
        Policy {
            workspace: key.workspace.clone(),
            owner,
            access: key.access,
            git_directory: key.repository,
            scratch: scratch.to_owned(),
            readable: readable.filter_map(granted).collect(),
            writable: writable.filter_map(granted).collect(),
            hidden: workspace.hidden.clone(),
            network: key.network,
            users: UserRange { first: operator.uids.first(), count: operator.uids.count() },
        }
    }
}

/// Returns whether every command sees a path anyway.
fn is_seen(path: &Path, workspace: &Path, host: &Host) -> bool {
    path.starts_with(workspace) || host.system.iter().any(|visible| path.starts_with(&visible.path))
}

fn owner_of(workspace: &WorkspaceHandle) -> Result<Owner, RunError> {
    let top = workspace.directory.own_metadata().map_err(RunError::Workspace)?;
    Ok(Owner { user: top.uid, group: top.gid })
}

/// Refuses a workspace that the commands' user cannot reach, and names the permission that is missing.
fn check_reachable(workspace: &Path, owner: Owner) -> Result<(), RunError> {
    for above in workspace.ancestors().skip(1) {
        let status = rustix::fs::stat(above).map_err(std::io::Error::from)?;
        let (bit, mode) = match status {
            _ if status.st_uid == owner.user => (0o100, "u+x"),
            _ if status.st_gid == owner.group => (0o010, "g+x"),
            _ => (0o001, "o+x"),
        };
        if status.st_mode & bit == 0 {
            let workspace = workspace.to_owned();
            let above = above.to_owned();
            return Err(RunError::Unreachable { workspace, above, user: owner.user, mode });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn an_unreachable_workspace_names_the_missing_permission() {
        let above = tempfile::tempdir().unwrap();
        let group = above.path().metadata().unwrap().gid();
        let closed = std::fs::Permissions::from_mode(0o701);
        std::fs::set_permissions(above.path(), closed).unwrap();
        let refused = |group| {
            let owner = Owner { user: 12_345, group };
            let refused = check_reachable(&above.path().join("CAR-1"), owner);
            refused.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let refusal = refused(group);
        assert!(refusal.contains(&format!("chmod g+x {}", above.path().display())), "{refusal}");
        let refusal = refused(group + 1);
        assert!(!refusal.contains(above.path().to_str().unwrap()), "{refusal}");
    }
}
