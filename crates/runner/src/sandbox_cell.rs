//! The cells of the workspaces that are in use.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use carrel_config::TierChoice;
use carrel_domain::{Network, Tier, WorkspaceAccess, sync};
use carrel_exec::{Cell, CellError, Directory, Spawner};
use carrel_fsroot::Root;
use carrel_sandbox::{CommandUser, GitDirectory, Host, Owner, Plan, Policy, UserRange};
use tracing::{debug, warn};

use crate::cell_cache::{Key, Rooms, Slot};
use crate::error::RunError;
use crate::real_path_cache::Whereabouts;
use crate::request::{Grants, RunRequest};
use crate::runner::{Feature, Inner, SandboxMode};
use crate::scratch_directory::{Scratch, ScratchHome, Swept};
use crate::workspace_handle::WorkspaceHandle;

/// Where a command runs.
#[derive(Clone, Debug)]
pub(crate) enum Walled {
    /// In a cell; with a directory of its own for temporary files, where commands see those of
    /// others.
    In(Arc<Room>, Option<OwnDirectory>),
    /// On the host.
    Outside(Spawner),
}

/// A directory for the temporary files of one command, below the scratch directory.
#[derive(Clone, Debug)]
pub(crate) struct OwnDirectory {
    name: PathBuf,
    /// Whether it is there already.
    made: bool,
}

/// A cell with what it needs.
#[derive(Debug)]
pub(crate) struct Room {
    cell: Cell,
    pub(crate) plan: Plan,
    scratch: Scratch,
    /// A directory that is ready for the next command.
    spare: Mutex<Option<PathBuf>>,
}

/// The cells that are kept, and what was learned about the machine.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    rooms: Rooms,
    /// Why the best tier cannot be had here, once that is known.
    refused: OnceLock<String>,
    swept: Arc<Swept>,
    whereabouts: Whereabouts,
}

impl Walled {
    pub(crate) fn spawner(&self) -> &Spawner {
        match self {
            Self::In(room, _) => &room.cell,
            Self::Outside(spawner) => spawner,
        }
    }

    pub(crate) fn plan(&self) -> Option<&Plan> {
        match self {
            Self::In(room, _) => Some(&room.plan),
            Self::Outside(_) => None,
        }
    }

    /// Returns the directory for temporary files, as the command sees it.
    pub(crate) fn temporary(&self) -> PathBuf {
        match self {
            Self::In(room, Some(own)) => room.plan.scratch.join(&own.name),
            Self::In(room, None) => room.plan.temporary(),
            Self::Outside(_) => "/tmp".into(),
        }
    }

    /// Returns the door to the temporary files of the workspace.
    pub(crate) fn scratch(&self) -> Option<Root> {
        match self {
            Self::In(room, _) => room.scratch.directory().try_clone().ok(),
            Self::Outside(_) => None,
        }
    }

    /// Makes a directory below the one for temporary files, and returns the door to it.
    pub(crate) fn make_below_temporary(&self, name: &str) -> Result<(Root, PathBuf), RunError> {
        match self {
            Self::In(room, own) => {
                let above = own.as_ref().map_or(Path::new("tmp"), |own| &own.name);
                let path = above.join(name);
                room.scratch.for_command(&path, room.owner())?;
                let scratch = room.scratch.directory().try_clone().map_err(RunError::Workspace)?;
                Ok((scratch, path))
            }
            Self::Outside(_) => {
                let temporary = Root::open(&self.temporary()).map_err(RunError::Workspace)?;
                let path = PathBuf::from(name);
                temporary.create_directory(&path, 0o700).map_err(RunError::Workspace)?;
                Ok((temporary, path))
            }
        }
    }

    /// Says where a command starts. The directory was looked at before; the cell looks again.
    pub(crate) fn directory(
        &self,
        workspace: &WorkspaceHandle,
        relative: &Path,
    ) -> Result<Directory, RunError> {
        match self {
            Self::In(..) => Ok(Directory::Inside(relative.to_owned())),
            Self::Outside(_) if relative.as_os_str().is_empty() => {
                Ok(Directory::Opened(workspace.descriptor()?))
            }
            Self::Outside(_) => {
                let directory =
                    workspace.directory.open_root(relative).map_err(RunError::Directory)?;
                Ok(Directory::Opened(directory.into()))
            }
        }
    }

    /// Returns whether the command is to have a directory of its own that is not there yet.
    pub(crate) fn lacks_directory(&self) -> bool {
        matches!(self, Self::In(_, Some(own)) if !own.made)
    }

    /// Makes the command's own directory for temporary files, if it is to have one.
    pub(crate) fn make_directory(&self) -> Result<(), RunError> {
        let Self::In(room, Some(own)) = self else { return Ok(()) };
        room.scratch.for_command(&own.name, room.owner())
    }

    /// Keeps it for the next command if this one left nothing there. Returns whether nothing has to be
    /// removed.
    pub(crate) fn keep_directory(&self) -> bool {
        let Self::In(room, Some(own)) = self else { return true };
        if !room.scratch.is_untouched(&own.name) {
            return false;
        }
        let mut spare = sync::lock(&room.spare);
        if spare.is_some() {
            return false;
        }
        *spare = Some(own.name.clone());
        true
    }

    /// Removes it, with what the command left there.
    pub(crate) fn remove_directory(&self) {
        let Self::In(room, Some(own)) = self else { return };
        room.scratch.remove(&own.name);
    }
}

impl Cells {
    /// Returns where the command of a request runs, and makes it first if need be.
    pub(crate) async fn enter(
        &self,
        inner: &Inner,
        workspace: &WorkspaceHandle,
        request: &RunRequest,
        network: Network,
    ) -> Result<Walled, RunError> {
        let choice = match inner.options.sandbox {
            SandboxMode::Off => return Ok(Walled::Outside(inner.options.spawner.get()?)),
            SandboxMode::Enforced(choice) => choice,
        };
        let key = Key {
            workspace: workspace.path().to_owned(),
            access: request.access,
            network,
            repository: workspace.repository(),
            grants: request.grants.clone(),
        };
        let slot = self.rooms.slot(&key);
        let room = slot.room.get_or_try_init(|| self.make(inner, workspace, &key, choice)).await?;
        let room = Arc::clone(room);
        let own = room.directory_of_command();
        Ok(Walled::In(room, own))
    }

    /// Takes out the cells of a workspace that no command runs in.
    pub(crate) fn take_idle(&self, workspace: &Path) -> Vec<Arc<Slot>> {
        self.rooms.take_idle(workspace)
    }

    /// Makes a cell in a certain tier, for nothing but this.
    pub(crate) async fn try_tier(
        &self,
        inner: &Inner,
        workspace: &WorkspaceHandle,
        tier: Tier,
    ) -> Result<Walled, RunError> {
        let key = Key {
            workspace: workspace.path().to_owned(),
            access: WorkspaceAccess::ReadWrite,
            network: Network::None,
            repository: GitDirectory::Absent,
            grants: Grants::default(),
        };
        let room = Arc::new(self.make_in(inner, workspace, &key, tier).await?);
        let own = room.directory_of_command();
        Ok(Walled::In(room, own))
    }

    /// Makes the cell in the best tier that can be had.
    async fn make(
        &self,
        inner: &Inner,
        workspace: &WorkspaceHandle,
        key: &Key,
        choice: TierChoice,
    ) -> Result<Arc<Room>, RunError> {
        let room = match (choice, self.refused.get()) {
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
                        self.refused.get_or_init(|| failure.to_string());
                    }
                    let made = self.make_in(inner, workspace, key, Tier::Landlock).await;
                    made.map_err(|error| error.after(&failure.to_string()))?
                }
                made => made?,
            },
        };
        Ok(Arc::new(room))
    }

    async fn make_in(
        &self,
        inner: &Inner,
        workspace: &WorkspaceHandle,
        key: &Key,
        tier: Tier,
    ) -> Result<Room, RunError> {
        inner.check_features(tier)?;
        let owner = owner_of(workspace)?;
        let own = (tier == Tier::Landlock && inner.host.is_root()).then_some(owner);
        if let Some(owner) = own {
            check_reachable(workspace.path(), owner)?;
        }
        let home = match (own, workspace.workspace_root()) {
            // Those who are not Carrel's own user cannot pass through a root's own directory.
            (Some(_), Some(_)) => inner.open_home(workspace),
            _ => workspace.scratch_home.clone(),
        };
        let swept = Arc::clone(&self.swept);
        let scratch = inner.files(move || Scratch::make(&home, &swept, own, tier)).await?;
        let policy = inner.policy(workspace, key, owner, scratch.directory().path());
        let plan = Plan::new(&policy, &inner.host, tier)?;
        let spawner = inner.cell_spawner()?;
        let companion = self.rooms.companion(key);
        let companion = companion.as_ref().map(|room| &room.cell);
        let directory = workspace.directory.as_fd();
        let scratch_directory = scratch.directory().as_fd();
        let cell = spawner.cell(plan.clone(), directory, scratch_directory, companion).await?;
        debug!(workspace = %workspace.path().display(), %tier, "made a cell");
        Ok(Room { cell, plan, scratch, spare: Mutex::default() })
    }
}

impl Room {
    pub(crate) fn is_gone(&self) -> bool {
        self.cell.is_gone()
    }

    /// Tells whether commands left temporary files that later ones could look for.
    pub(crate) fn has_files(&self) -> bool {
        match self.plan.tier {
            Tier::Full => !self.scratch.is_empty(),
            // Every command had files of its own, and they are gone.
            Tier::Landlock => false,
        }
    }

    /// Names a directory for the temporary files of one command.
    fn directory_of_command(&self) -> Option<OwnDirectory> {
        if self.plan.tier == Tier::Full {
            return None;
        }
        let spare = sync::lock(&self.spare).take();
        let made = spare.is_some();
        // LazySpawner can make directories there too, and must not foresee the name.
        let new = || Path::new("tmp").join(format!("{:016x}", fastrand::u64(..)));
        Some(OwnDirectory { name: spare.unwrap_or_else(new), made })
    }

    /// Returns who the command's own files belong to, if that is not Carrel's own user.
    fn owner(&self) -> Option<Owner> {
        match self.plan.run_as {
            CommandUser::WorkspaceOwner(owner) => Some(owner),
            CommandUser::Server(_) | CommandUser::Mapped { .. } => None,
        }
    }
}

impl Inner {
    /// Returns where scratch directories are made for commands that run as others.
    fn open_home(&self, workspace: &WorkspaceHandle) -> ScratchHome {
        let state = crate::runner::state_directory(&self.options.environment);
        state.map_or_else(|| workspace.scratch_home.clone(), |state| ScratchHome::of_state(&state))
    }

    /// Refuses a tier that needs what is taken as missing.
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
        key: &Key,
        owner: Owner,
        scratch: &Path,
    ) -> Policy {
        let operator = &self.options.policy;
        let toolchains = &self.toolchains.readable;
        let readable = operator.readable.iter().chain(&operator.path).chain(toolchains);
        let readable = readable.chain(&key.grants.readable);
        let writable = operator.writable.iter().chain(&key.grants.writable);
        // What is not there is left out.
        let granted = |path: &PathBuf| {
            let seen = is_seen(path, workspace.path(), &self.host);
            if seen { None } else { self.cells.whereabouts.of(path) }
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

/// Tells whether commands see what is at a path anyway.
fn is_seen(path: &Path, workspace: &Path, host: &Host) -> bool {
    path.starts_with(workspace) || host.system.iter().any(|visible| path.starts_with(&visible.path))
}

fn owner_of(workspace: &WorkspaceHandle) -> Result<Owner, RunError> {
    let top = workspace.directory.top().map_err(RunError::Workspace)?;
    Ok(Owner { user: top.uid, group: top.gid })
}

/// Refuses a workspace that the user a command is to run as cannot find.
fn check_reachable(workspace: &Path, owner: Owner) -> Result<(), RunError> {
    for above in workspace.ancestors().skip(1) {
        let status = rustix::fs::stat(above).map_err(std::io::Error::from)?;
        let (bit, mode) = match status {
            _ if status.st_uid == owner.user => (0o100, "u+x"),
            _ if status.st_gid == owner.group => (0o010, "g+x"),
            _ => (0o001, "o+x"),
        };
        if status.st_mode & bit == 0 {
            let (workspace, above) = (workspace.to_owned(), above.to_owned());
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
    fn whoever_cannot_pass_is_told_whose_permission_is_missing() {
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
