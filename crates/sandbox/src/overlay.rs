//! The tree of a fork: an overlay file system over a frozen base, in a mount namespace of its own.
//!
//! A process ([`MountedOverlay::mount`]) enters a user and a mount namespace, mounts the overlay on the fork's
//! own directory, and passes on three descriptors: the root of the merged tree and both namespaces. Then it
//! ends. A descriptor keeps a namespace with its mounts alive as well as a process does, so no process stays
//! for a fork; the overlay is unmounted when the last of these descriptors and the last cell that joined
//! the namespaces are gone. In the mount namespace everything is as on the host except
//! the fork's directory (and, for a server that runs as root, the directory of the layers, which no plan shows).
//!
//! The mount has to be in a user namespace, since only there may an ordinary user mount, and `userxattr`
//! keeps the marks of the overlay in attributes that such a user can write. A server that runs as root
//! uses the same kind of mount, so that both behave alike and copied-up files keep their owner. Its layers
//! are id-mapped: the owner on disk becomes the user of the commands. The kernel takes id-mapped layers only
//! from mounts of the namespace itself. They are attached there by root, which may open them below
//! directories of any mode, and the process becomes an ordinary user of the namespace afterwards.
//!
//! Layers are named by descriptors (`/proc/self/fd/N`): a path may contain what separates options, and the
//! options of a mount can be read in `/proc/self/mountinfo` by every command of the fork.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use carrel_domain::exact_path;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid, chmodat, chownat, fstat, mkdirat, openat2,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::cell::{SetupError, SetupStep, StepContext, become_user, open_if_same};
use crate::mounts::DetachedMount;
use crate::namespaces::{IdMapping, UserNamespace};
use crate::plan::{CommandUser, Plan};
use crate::policy::Owner;

/// The directory of changed and new files in the directory of the layers.
const UPPER: &str = "upper";

/// The directory in which the overlay prepares files before it moves them to the upper one.
const WORK: &str = "work";

/// The directory that the kernel leaves in the working directory of a volatile overlay. It refuses to mount
/// layers with such a directory.
const VOLATILE_MARK: &str = "work/incompat/volatile";

/// The file in it.
const DIRTY_MARK: &str = "work/incompat/volatile/dirty";

/// The tree of a fork, to be mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayPlan {
    /// The directory of the fork, which the merged tree covers.
    #[serde(with = "exact_path")]
    target: PathBuf,
    #[serde(with = "exact_path")]
    lower: PathBuf,
    #[serde(with = "exact_path")]
    layers: PathBuf,
    run_as: CommandUser,
    used_layers: UsedLayers,
}

/// The treatment of layers that were mounted before. The overlay is volatile: nothing of it is synced, so
/// layers that were mounted when the machine stopped may lack any part of their changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsedLayers {
    /// Such layers are refused with [`SetupStep::UsedLayers`].
    Refuse,
    /// They are mounted again. The caller knows that the machine has run all the time since.
    Accept,
}

impl OverlayPlan {
    /// Makes the plan for the overlay of a fork, whose plan for commands it is given; `None` if that plan does
    /// not show an overlay.
    ///
    /// `lower` is the directory of the base. `layers` is a directory for this overlay alone, below a directory
    /// that is closed to commands and on a file system that can be an upper layer. It gets the owner of the
    /// base, and the directories `upper` and `work`. All paths are absolute and without links.
    pub fn new(plan: &Plan, lower: PathBuf, layers: PathBuf) -> Option<Self> {
        plan.shows_overlay().then(|| Self {
            target: plan.workspace.clone(),
            lower,
            layers,
            run_as: plan.run_as,
            used_layers: UsedLayers::Refuse,
        })
    }

    /// Sets the treatment of layers that were mounted before, which are refused otherwise.
    #[must_use]
    pub fn with_used_layers(self, used_layers: UsedLayers) -> Self {
        Self { used_layers, ..self }
    }

    /// Returns the path of the fork's directory.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the user as which a server that runs as root has to create files in the merged tree; `None`
    /// if it is an ordinary user, who creates them as itself.
    ///
    /// Root of the host is not mapped in the user namespace of the overlay: what it creates fails with
    /// `EOVERFLOW`.
    pub fn writer(&self) -> Option<Owner> {
        match self.run_as {
            CommandUser::Mapped { outside, .. } => Some(outside),
            CommandUser::Server(_) | CommandUser::WorkspaceOwner(_) => None,
        }
    }
}

/// The directories of an overlay. The plan's paths must lead to the same ones. `T` is owned by a process that
/// mounts it and borrowed by one that asks for it.
#[derive(Debug)]
pub struct OverlayDirectories<T> {
    /// The directory of the base.
    pub lower: T,
    /// The directory of the layers.
    pub layers: T,
    /// The directory of the fork.
    pub target: T,
}

/// The namespaces of a mounted overlay. While one of them is open, the overlay stays mounted.
#[derive(Debug)]
pub struct OverlayNamespaces<T = OwnedFd> {
    /// The user namespace.
    pub users: T,
    /// The mount namespace.
    pub mounts: T,
}

/// An overlay that is mounted as long as its descriptors, or copies of them, are open.
#[derive(Debug)]
pub struct MountedOverlay {
    /// The root of the merged tree, an `O_PATH` descriptor that works in every namespace.
    pub root: OwnedFd,
    /// The namespaces that cells of the fork join.
    pub namespaces: OverlayNamespaces,
    /// The ended holder of the namespaces. Dropped last, because reaping it takes time.
    _holder: UserNamespace,
}

impl MountedOverlay {
    /// Mounts an overlay, in a process with one thread. The process is moved into its namespaces and has
    /// to pass the descriptors on and end.
    pub fn mount(
        plan: &OverlayPlan,
        directories: &OverlayDirectories<OwnedFd>,
    ) -> Result<Self, SetupError> {
        let (holder, namespaces) = OverlayNamespaces::create(plan.run_as)?;
        let layers = match plan.run_as {
            CommandUser::Mapped { inside, outside, .. } => {
                namespaces.join_mounts()?;
                let layers = Layers::open(plan, directories)?.map_owner(plan, outside)?;
                rustix::thread::set_thread_groups(&[]).during(SetupStep::CommandUser)?;
                namespaces.join_users()?;
                become_user(inside).during(SetupStep::CommandUser)?;
                layers
            }
            CommandUser::Server(_) | CommandUser::WorkspaceOwner(_) => {
                namespaces.join_users()?;
                namespaces.join_mounts()?;
                Layers::open(plan, directories)?
            }
        };
        layers.refuse_if_used(plan)?;
        let overlay = layers.overlay().during_with(SetupStep::Overlay, &plan.target)?;
        let attached = overlay.attach_to(layers.target.as_fd());
        attached.during_with(SetupStep::Overlay, &plan.target)?;
        Ok(Self { root: overlay.into(), namespaces, _holder: holder })
    }
}

impl OverlayNamespaces {
    /// Creates both namespaces. The process that made them has ended, and is reaped with the first value.
    fn create(run_as: CommandUser) -> Result<(UserNamespace, Self), SetupError> {
        // The files of an undumpable process in `/proc` belong to root, and its maps could not be written.
        set_dumpable_behavior(DumpableBehavior::Dumpable).during(SetupStep::UserNamespace)?;
        let mapping = match run_as {
            CommandUser::Server(owner) | CommandUser::WorkspaceOwner(owner) => {
                IdMapping { inside: owner, outside: owner, privileged: false }
            }
            CommandUser::Mapped { inside, outside, .. } => {
                IdMapping { inside, outside, privileged: true }
            }
        };
        let made = UserNamespace::create(UnshareFlags::NEWNS).during(SetupStep::UserNamespace)?;
        made.write_id_maps(mapping).during(SetupStep::UserNamespace)?;
        made.wait().during(SetupStep::Namespaces)?;
        let open = |name| made.open(name).during(SetupStep::Namespaces);
        let namespaces = Self { users: open("user")?, mounts: open("mnt")? };
        made.release();
        Ok((made, namespaces))
    }

    /// Moves the calling process, which must have one thread, into the user namespace.
    pub(crate) fn join_users(&self) -> Result<(), SetupError> {
        move_into_link_name_space(self.users.as_fd(), Some(LinkNameSpaceType::User))
            .during(SetupStep::UserNamespace)
    }

    /// Moves the calling process into the mount namespace.
    pub(crate) fn join_mounts(&self) -> Result<(), SetupError> {
        move_into_link_name_space(self.mounts.as_fd(), Some(LinkNameSpaceType::Mount))
            .during(SetupStep::Namespaces)
    }
}

/// The directories of an overlay, opened in its mount namespace.
struct Layers {
    lower: OwnedFd,
    directory: OwnedFd,
    upper: OwnedFd,
    work: OwnedFd,
    /// The place for the merged tree.
    target: OwnedFd,
}

impl Layers {
    fn open(plan: &OverlayPlan, meant: &OverlayDirectories<OwnedFd>) -> Result<Self, SetupError> {
        let lower = open_if_same(meant.lower.as_fd(), &plan.lower)?;
        let directory = open_if_same(meant.layers.as_fd(), &plan.layers)?;
        let target = open_if_same(meant.target.as_fd(), &plan.target)?;
        give_to_owner(directory.as_fd(), "", &lower).during_with(SetupStep::Find, &plan.layers)?;
        let layer = |name| {
            create_like(directory.as_fd(), name, &lower)
                .and_then(|()| open_layer(directory.as_fd(), name))
                .during_with(SetupStep::Find, &plan.layers.join(name))
        };
        let (upper, work) = (layer(UPPER)?, layer(WORK)?);
        Ok(Self { lower, directory, upper, work, target })
    }

    /// Replaces the layers by id-mapped ones in which files of the base's owner belong to `outside`. Upper and
    /// working directory have to be on one mount, so the directory above them is mapped.
    fn map_owner(self, plan: &OverlayPlan, outside: Owner) -> Result<Self, SetupError> {
        let status = fstat(&self.lower).during_with(SetupStep::Find, &plan.lower)?;
        let disk = Owner { user: status.st_uid, group: status.st_gid };
        let owners =
            UserNamespace::of_owners(IdMapping { inside: disk, outside, privileged: true }, None);
        let (_holder, owners) = owners.during(SetupStep::UserNamespace)?;
        let mapped = |source: &OwnedFd, path: &Path, on: &OwnedFd| {
            let mount = DetachedMount::copy_of_descriptor(source.as_fd());
            let mount = mount.during_with(SetupStep::Find, path)?;
            mount.map_owner(&owners).during_with(SetupStep::MapOwner, path)?;
            mount.attach_to(on.as_fd()).during_with(SetupStep::Overlay, path)?;
            Ok(OwnedFd::from(mount))
        };
        // The merged tree will cover the base here. At the base's own path the mapped mount would stay in
        // sight of cells, and a mount cannot be mapped twice.
        let lower = mapped(&self.lower, &plan.lower, &self.target)?;
        let directory = mapped(&self.directory, &plan.layers, &self.directory)?;
        let layer = |name| {
            let path = plan.layers.join(name);
            open_layer(directory.as_fd(), name).during_with(SetupStep::Find, &path)
        };
        let (upper, work) = (layer(UPPER)?, layer(WORK)?);
        let target = lower.try_clone().during(SetupStep::Overlay)?;
        Ok(Self { lower, directory, upper, work, target })
    }

    /// Fails if the layers were mounted before, or removes the mark by which the kernel would refuse them.
    fn refuse_if_used(&self, plan: &OverlayPlan) -> Result<(), SetupError> {
        let found = open_layer(self.work.as_fd(), VOLATILE_MARK);
        let path = || plan.layers.join(WORK).join(VOLATILE_MARK);
        match (found, plan.used_layers) {
            (Err(Errno::NOENT), _) => Ok(()),
            (Err(errno), _) => Err(errno).during_with(SetupStep::Find, &path()),
            (Ok(_), UsedLayers::Refuse) => {
                Err(Errno::STALE).during_with(SetupStep::UsedLayers, &plan.layers)
            }
            (Ok(_), UsedLayers::Accept) => {
                let file = unlinkat(&self.work, DIRTY_MARK, AtFlags::empty());
                let file = if file == Err(Errno::NOENT) { Ok(()) } else { file };
                file.and_then(|()| unlinkat(&self.work, VOLATILE_MARK, AtFlags::REMOVEDIR))
                    .during_with(SetupStep::Find, &path())
            }
        }
    }

    fn overlay(&self) -> io::Result<DetachedMount> {
        let path = |layer: &OwnedFd| format!("/proc/self/fd/{}", layer.as_raw_fd());
        DetachedMount::overlay(&path(&self.lower), &path(&self.upper), &path(&self.work))
    }
}

/// Creates a layer with the owner and mode of the base, which its top shows as its own, unless it exists.
fn create_like(directory: BorrowedFd<'_>, name: &str, base: &OwnedFd) -> Result<(), Errno> {
    match mkdirat(directory, name, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    give_to_owner(directory, name, base)?;
    let mode = Mode::from_raw_mode(fstat(base)?.st_mode & 0o7777);
    chmodat(directory, name, mode, AtFlags::empty())
}

/// Gives a directory to the owner of the base. In an id-mapped mount even root may not enter a directory of
/// an owner who is not mapped.
fn give_to_owner(at: BorrowedFd<'_>, name: &str, base: &OwnedFd) -> Result<(), Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let (meant, found) = (fstat(base)?, statat(at, name, flags)?);
    if (found.st_uid, found.st_gid) == (meant.st_uid, meant.st_gid) {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(meant.st_uid), Gid::from_raw(meant.st_gid));
    chownat(at, name, Some(user), Some(group), flags)
}

fn open_layer(directory: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(directory, name, flags, Mode::empty(), resolve)
}
