//! The sandbox cell of a workspace, and the site where a command runs.
//!
//! A cell is a process that has applied a sandbox plan once and is forked for each command; making one
//! takes milliseconds, a command in it a fraction of one. [`RunnerInner::enter_cell`] returns the cell for a
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
use carrel_domain::{GrantedNetwork, Network, Tier, WorkspaceAccess, sync};
use carrel_exec::{Cell, CellError, CellWorkspace, Directory, Spawner};
use carrel_fsroot::Root;
use carrel_sandbox::{CommandUser, GitDirectory, Owner, Plan, Policy, UserRange, WorkspaceSource};
use tracing::{debug, warn};

use crate::cell_cache::{CellCache, CellKey};
use crate::error::RunError;
use crate::real_path_cache::RealPathCache;
use crate::request::{Grants, RunRequest};
use crate::runner::{Feature, RunnerInner, SandboxMode, state_directory};
use crate::scratch_directory::{ScratchDirectory, SweepSchedule};
use crate::server_directory::ServerDirectory;
use crate::workspace_handle::WorkspaceHandle;

#[derive(Clone, Debug)]
pub(crate) enum ExecutionSite {
    /// A cell, and in tier `landlock` the command's own directory for temporary files.
    Cell(Arc<SandboxCell>, Option<OwnDirectory>),
    /// The host, because the sandbox is off, and the home directory.
    Host(Spawner, PathBuf),
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
    /// The home, where that is not the one that counts towards the quota anyway.
    moved_home: Option<Root>,
    /// The home by its path outside the sandbox; none if the workspace is its own home.
    home: Option<PathBuf>,
    /// An empty directory that an earlier command left, for the next one. Saves making and removing one
    /// for each command.
    spare: Mutex<Option<PathBuf>>,
}

/// The cells of a runner, and what making them has shown about the host.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    pub(crate) cache: CellCache,
    /// The reason why the host does not allow tier `full`, once that is known.
    full_tier_failure: OnceLock<String>,
    sweeps: Arc<SweepSchedule>,
    real_paths: RealPathCache,
}

impl ExecutionSite {
    fn in_cell(cell: Arc<SandboxCell>) -> Self {
        let own = cell.directory_of_command();
        Self::Cell(cell, own)
    }

    pub(crate) fn spawner(&self) -> &Spawner {
        match self {
            Self::Cell(cell, _) => &cell.cell,
            Self::Host(spawner, _) => spawner,
        }
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Cell(cell, _) => Some(&cell.plan),
            Self::Host(..) => None,
        }
    }

    /// Returns the directory for temporary files, by its path inside the sandbox.
    pub(crate) fn temporary(&self) -> PathBuf {
        match self {
            Self::Cell(cell, Some(own)) => cell.plan.scratch.join(&own.name),
            Self::Cell(cell, None) => cell.plan.temporary(),
            Self::Host(..) => "/tmp".into(),
        }
    }

    /// Returns the home directory, by its path inside the sandbox.
    pub(crate) fn home(&self) -> &Path {
        match self {
            Self::Cell(cell, _) => &cell.plan.home,
            Self::Host(_, home) => home,
        }
    }

    /// Returns whether the home is another directory than the workspace.
    pub(crate) fn has_separate_home(&self) -> bool {
        match self {
            Self::Cell(cell, _) => cell.home.is_some(),
            Self::Host(..) => true,
        }
    }

    /// Returns whether commands have left a directory in the home.
    pub(crate) fn has_at_home(&self, path: &str) -> bool {
        let home = match self {
            Self::Cell(cell, _) => cell.home.as_deref(),
            Self::Host(_, home) => Some(home.as_path()),
        };
        home.is_some_and(|home| rustix::fs::stat(home.join(path)).is_ok())
    }

    /// Returns the directories that count towards the quota beside the workspace and its usual home.
    pub(crate) fn counted(&self) -> Vec<Root> {
        match self {
            Self::Cell(cell, _) => {
                let directories = cell.moved_home.iter().chain([cell.scratch.directory()]);
                directories.filter_map(|directory| directory.try_clone().ok()).collect()
            }
            Self::Host(..) => Vec::new(),
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
            Self::Host(..) => {
                let temporary = Root::open(&self.temporary()).map_err(RunError::Workspace)?;
                let path = PathBuf::from(name);
                temporary.create_directory(&path, 0o700).map_err(RunError::Workspace)?;
                Ok((temporary, path))
            }
        }
    }

    /// Returns the working directory for the spawner. A path in a cell is resolved again by the cell, which
    /// follows no absolute links.
    pub(crate) fn directory(
        &self,
        workspace: &WorkspaceHandle,
        relative: &Path,
    ) -> Result<Directory, RunError> {
        match self {
            Self::Cell(..) if relative.as_os_str().is_empty() => {
                Ok(Directory::Inside(PathBuf::new()))
            }
            Self::Cell(..) => {
                let located = workspace.directory.locate(relative).map_err(RunError::Directory)?;
                Ok(Directory::Inside(located))
            }
            Self::Host(..) if relative.as_os_str().is_empty() => {
                Ok(Directory::Opened(workspace.directory.as_fd().try_clone_to_owned()?))
            }
            Self::Host(..) => {
                let directory = workspace.directory.open_root(relative);
                Ok(Directory::Opened(directory.map_err(RunError::Directory)?.into()))
            }
        }
    }

    /// Keeps the command's own directory for the next command if it is empty. Returns whether nothing
    /// has to be removed.
    pub(crate) fn keep_directory(&self) -> bool {
        let Self::Cell(cell, Some(own)) = self else { return true };
        if !cell.scratch.is_untouched(&own.name) {
            return false;
        }
        let mut spare = sync::lock(&cell.spare);
        let is_first = spare.is_none();
        spare.get_or_insert_with(|| own.name.clone());
        is_first
    }

    pub(crate) fn remove_directory(&self) {
        let Self::Cell(cell, Some(own)) = self else { return };
        cell.scratch.remove(&own.name);
    }
}

impl RunnerInner {
    /// Returns the tier of the next cell, as far as it is known before the cell is made.
    pub(crate) fn expected_tier(&self) -> Option<Tier> {
        match self.options.sandbox {
            SandboxMode::Off => None,
            SandboxMode::Enforced(TierChoice::Only(tier)) => Some(tier),
            SandboxMode::Enforced(TierChoice::Auto) => {
                let fails = self.cells.full_tier_failure.get().is_some();
                Some(if fails { Tier::Landlock } else { Tier::Full })
            }
        }
    }

    /// Returns the site for a request and its network. `granted` was decided for the expected tier; where
    /// the host turns out to have tier `landlock` only, the request is decided again.
    pub(crate) async fn enter_cell_for(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        granted: GrantedNetwork,
    ) -> Result<(ExecutionSite, GrantedNetwork), RunError> {
        match self.enter_cell(workspace, request, granted.network).await {
            Err(error) if error.is_lack_of_loopback() => {
                let policy = self.options.policy.networks();
                let again = request.network.decide(policy, Some(Tier::Landlock))?;
                if again.network == granted.network {
                    return Err(error);
                }
                Ok((self.enter_cell(workspace, request, again.network).await?, again))
            }
            entered => Ok((entered?, granted)),
        }
    }

    /// Returns the site for a network, and makes its cell if there is none.
    pub(crate) async fn enter_cell(
        &self,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        network: Network,
    ) -> Result<ExecutionSite, RunError> {
        let choice = match self.options.sandbox {
            SandboxMode::Off => {
                let home = self.open_home(workspace, None).await?;
                let home = home.as_ref().map_or(workspace.path(), Root::path).to_owned();
                return Ok(ExecutionSite::Host(self.options.spawner.get()?, home));
            }
            SandboxMode::Enforced(choice) => choice,
        };
        let key = CellKey {
            workspace: workspace.path().to_owned(),
            access: request.access,
            network,
            repository: workspace.repository(),
            grants: request.grants.clone(),
        };
        let slot = self.cells.cache.slot(&key);
        let cell = slot.cell.get_or_try_init(|| self.make_cell(workspace, &key, choice)).await?;
        Ok(ExecutionSite::in_cell(Arc::clone(cell)))
    }

    /// Creates the command's own directory for temporary files, if it needs one that does not exist yet.
    pub(crate) async fn make_own_directory(&self, site: &ExecutionSite) -> Result<(), RunError> {
        let ExecutionSite::Cell(cell, Some(OwnDirectory { name, exists: false })) = site else {
            return Ok(());
        };
        let (cell, name) = (Arc::clone(cell), name.clone());
        self.files(move || cell.scratch.for_command(&name, cell.owner())).await
    }

    /// Makes a cell in a given tier that is not cached, for the diagnosis.
    pub(crate) async fn try_tier(
        &self,
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
        let cell = self.make_cell_in(workspace, &key, tier).await?;
        Ok(ExecutionSite::in_cell(Arc::new(cell)))
    }

    /// Makes a cell in the best tier that the choice and the host allow.
    async fn make_cell(
        &self,
        workspace: &WorkspaceHandle,
        key: &CellKey,
        choice: TierChoice,
    ) -> Result<Arc<SandboxCell>, RunError> {
        let tier = match (choice, self.cells.full_tier_failure.get()) {
            (TierChoice::Only(tier), _) => tier,
            (TierChoice::Auto, Some(_)) => Tier::Landlock,
            (TierChoice::Auto, None) => Tier::Full,
        };
        let may_fall_back = choice == TierChoice::Auto && tier == Tier::Full;
        let cell = match self.make_cell_in(workspace, key, tier).await {
            Err(RunError::Cell(CellError::Refused(failure)))
                if may_fall_back && failure.is_tier_limitation() =>
            {
                warn!(%failure, "tier `full` cannot be had here, using tier `landlock`");
                if failure.is_host_limitation() {
                    self.cells.full_tier_failure.get_or_init(|| failure.to_string());
                }
                let made = self.make_cell_in(workspace, key, Tier::Landlock).await;
                made.map_err(|landlock| RunError::NoTier {
                    full: failure.to_string(),
                    landlock: Box::new(landlock),
                })?
            }
            made => made?,
        };
        Ok(Arc::new(cell))
    }

    async fn make_cell_in(
        &self,
        workspace: &WorkspaceHandle,
        key: &CellKey,
        tier: Tier,
    ) -> Result<SandboxCell, RunError> {
        self.check_features(tier)?;
        let top = workspace.place().own_metadata().map_err(RunError::Workspace)?;
        let owner = Owner { user: top.uid, group: top.gid };
        let own = (tier == Tier::Landlock && self.host.is_root()).then_some(owner);
        if let Some(owner) = own {
            check_reachable(workspace.path(), owner)?;
        }
        // Other users than Carrel's cannot pass through a root's `.carrel`.
        let is_shared = own.is_some() && workspace.workspace_root().is_some();
        let state = state_directory(&self.options.environment).filter(|_| is_shared);
        let server = state.as_deref().map(ServerDirectory::of_state);
        let server = server.unwrap_or_else(|| workspace.shared.server.clone());
        let sweeps = Arc::clone(&self.cells.sweeps);
        let scratch =
            self.files(move || ScratchDirectory::make(&server, &sweeps, own, tier)).await?;
        let home = self.open_home(workspace, state.as_deref()).await?;
        let policy = self.policy(workspace, key, owner, scratch.directory().path());
        let policy = Policy { home: home.as_ref().map(|home| home.path().to_owned()), ..policy };
        let plan = Plan::new(&policy, &self.host, tier)?;
        let spawner = self.cell_spawner()?;
        let companion = self.cells.cache.companion(key);
        let companion = companion.as_ref().map(|cell| &cell.cell);
        let tree = match &workspace.shared.fork {
            Some(fork) => CellWorkspace::Overlay(&fork.mount),
            None => CellWorkspace::Directory(workspace.directory.as_fd()),
        };
        let scratch_directory = scratch.directory().as_fd();
        let cell = spawner.cell(plan.clone(), tree, scratch_directory, companion).await?;
        debug!(workspace = %workspace.path().display(), %tier, "made a cell");
        let path = home.as_ref().map(|home| home.path().to_owned());
        let moved_home = home.filter(|_| is_shared);
        Ok(SandboxCell { cell, plan, scratch, moved_home, home: path, spare: Mutex::default() })
    }

    /// Opens the home of a workspace's commands, below `state` if other users must reach it; none if the
    /// workspace itself is the home.
    async fn open_home(
        &self,
        workspace: &WorkspaceHandle,
        state: Option<&Path>,
    ) -> Result<Option<Root>, RunError> {
        let Some(home) = &workspace.shared.home else { return Ok(None) };
        let home = state.map_or_else(|| home.clone(), |state| home.moved_to(state));
        let tree = workspace.place().try_clone().map_err(RunError::Workspace)?;
        self.files(move || home.open(&tree)).await.map(Some)
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

    /// Returns the paths of the host that the operator's policy lets every command read.
    fn readable(&self) -> impl Iterator<Item = &PathBuf> {
        let operator = &self.options.policy;
        operator.readable.iter().chain(&operator.path).chain(&self.toolchains.readable)
    }

    /// Returns whether a path lies in a directory of the system, which every command can read.
    fn is_system(&self, path: &Path) -> bool {
        self.host.system.iter().any(|visible| path.starts_with(&visible.path))
    }

    /// Returns whether every command can read a path of the host.
    pub(crate) fn is_visible(&self, path: &Path) -> bool {
        self.is_system(path) || self.readable().any(|readable| path.starts_with(readable))
    }

    /// Returns the ids that commands of a server that runs as root have outside their namespace.
    pub(crate) fn users(&self) -> UserRange {
        let uids = &self.options.policy.uids;
        UserRange { first: uids.first(), count: uids.count() }
    }

    fn policy(
        &self,
        workspace: &WorkspaceHandle,
        key: &CellKey,
        owner: Owner,
        scratch: &Path,
    ) -> Policy {
        let operator = &self.options.policy;
        let readable = self.readable().chain(&key.grants.readable);
        let writable = operator.writable.iter().chain(&key.grants.writable);
        // Paths that every command sees anyway, and paths that do not exist, are left out.
        let granted = |path: &PathBuf| {
            let is_seen = path.starts_with(workspace.path()) || self.is_system(path);
            if is_seen { None } else { self.cells.real_paths.resolve(path) }
        };
        Policy {
            workspace: key.workspace.clone(),
            owner,
            workspace_source: match workspace.shared.fork {
                Some(_) => WorkspaceSource::Overlay,
                None => WorkspaceSource::Directory,
            },
            alias: workspace.shared.fork.as_ref().map(|fork| fork.base.clone()),
            access: key.access,
            git_directory: key.repository,
            scratch: scratch.to_owned(),
            home: None,
            readable: readable.filter_map(granted).collect(),
            writable: writable.filter_map(granted).collect(),
            hidden: workspace.shared.hidden.clone(),
            network: key.network,
            users: self.users(),
        }
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
