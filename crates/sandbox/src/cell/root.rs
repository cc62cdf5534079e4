//! The root directory of a cell, built from the entries of a plan.
//!
//! The root is a small tmpfs that holds directories, links, generated files and copies of small system
//! files; everything else is a bind mount. It is built detached, before the process moves into it: mounts
//! are opened, limited and, where commands run as a mapped user, id-mapped, in the host's mount
//! namespace, where all of their sources can be opened. Then [`build`] pivots into the new root, attaches
//! the mounts in the order of the plan and makes the root itself read-only.
//!
//! Sources are opened without following links, and directories that came as descriptors are compared by
//! device and inode with the directory at their path. A path that was replaced between policy and setup
//! fails the setup with `ESTALE` or `ELOOP` instead of showing another directory.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::directory_builder::{DirectoryBuilder, with_public_umask};
use super::shared_mounts::{self, SharedDirectories};
use super::{CellLifetime, CellResources, SetupError, SetupStep, StepContext};
use crate::host::{Host, is_copied};
use crate::mounts::{self, DetachedMount, MountAccess};
use crate::namespaces::{IdMapping, UserNamespace};
use crate::plan::{BindSource, CommandUser, FileAccess, HOST_NAME, Plan, RootEntry, root_tree};
use crate::policy::Owner;

/// A directory for files that are only the source of a bind mount. A mount covers it later.
const COVERED: &str = "/proc";

/// The mount point of the new root until it becomes the root. Every system has this directory.
const PIVOT_TARGET: &str = "/usr";

/// Returns the namespaces of a cell besides its user and mount namespaces.
pub(super) fn namespaces(with_network: bool) -> UnshareFlags {
    let common = UnshareFlags::NEWIPC | UnshareFlags::NEWUTS | UnshareFlags::NEWCGROUP;
    if with_network { common | UnshareFlags::NEWNET } else { common }
}

/// An unfinished root directory with the mounts that will be attached in it.
#[derive(Debug)]
pub(super) struct PartialRoot {
    root: DetachedMount,
    builder: DirectoryBuilder,
    /// Mounts by their path.
    binds: HashMap<PathBuf, DetachedMount>,
    /// Copies of shared directories, which are attached before `binds`.
    shared: Vec<(&'static Path, DetachedMount)>,
    /// Entries that are complete, by their path.
    done: HashMap<PathBuf, RootEntry>,
}

impl PartialRoot {
    fn new() -> Result<Self, SetupError> {
        let root = DetachedMount::tmpfs().during(SetupStep::Root)?;
        let builder =
            DirectoryBuilder::new(root.as_fd().try_clone_to_owned().during(SetupStep::Root)?);
        Ok(Self { root, builder, binds: HashMap::new(), shared: Vec::new(), done: HashMap::new() })
    }

    /// Copies the directories that all cells share, and creates the entries that differ in this plan.
    fn take(&mut self, shared: &SharedDirectories, plan: &Plan) -> Result<(), SetupError> {
        for directory in &shared.directories {
            self.builder.directory(directory.path)?;
            let copy = DetachedMount::copy_of_descriptor(directory.tree.as_fd())
                .during_with(SetupStep::Root, directory.path)?;
            self.shared.push((directory.path, copy));
            for entry in shared_mounts::below(plan, directory.path) {
                let path = entry.path().to_owned();
                match entry {
                    entry if directory.has(entry) => {}
                    RootEntry::File { text, .. } => {
                        let hidden = Path::new(COVERED).join(self.binds.len().to_string());
                        self.builder.file(&hidden, text.as_bytes())?;
                        let found = self.builder.open_entry(&hidden)?;
                        let mount = DetachedMount::copy_of_descriptor(found.as_fd());
                        let mount = mount.during_with(SetupStep::Root, &path)?;
                        mount.limit(MountAccess::Read).during_with(SetupStep::Root, &path)?;
                        self.binds.insert(path.clone(), mount);
                    }
                    // Entries that each cell mounts itself are opened later.
                    _ => continue,
                }
                self.done.insert(path, entry.clone());
            }
        }
        Ok(())
    }

    fn has(&self, entry: &RootEntry) -> bool {
        self.done.get(entry.path()) == Some(entry)
    }

    /// Creates an entry, or the mount point for it.
    fn add(&mut self, entry: &RootEntry, mount: Option<DetachedMount>) -> Result<(), SetupError> {
        make(&mut self.builder, entry, mount.as_ref())?;
        let path = entry.path().to_owned();
        if let Some(mount) = mount {
            self.binds.insert(path.clone(), mount);
        }
        self.done.insert(path, entry.clone());
        Ok(())
    }
}

/// Creates an entry, or the mount point for it.
pub(super) fn make(
    builder: &mut DirectoryBuilder,
    entry: &RootEntry,
    mount: Option<&DetachedMount>,
) -> Result<(), SetupError> {
    match entry {
        RootEntry::Directory(path) | RootEntry::DevPts(path) | RootEntry::Proc(path) => {
            builder.directory(path)
        }
        RootEntry::Link { path, target } => builder.link(path, target),
        RootEntry::File { path, text } => builder.file(path, text.as_bytes()),
        RootEntry::Copy(path) => {
            builder.file(path, &read(path).during_with(SetupStep::Find, path)?)
        }
        RootEntry::Bind { path, .. } => {
            let Some(mount) = mount else { return Ok(()) };
            match mount.kind().during_with(SetupStep::Root, path)? {
                FileType::Directory => builder.directory(path),
                _ => builder.empty_file(path),
            }
        }
    }
}

/// The part of a root directory that is the same for all commands, built before any plan is known.
/// Building it in advance took `carrel exec -- true` from 1.13 to 1.05 times the time of bubblewrap.
#[derive(Debug, Default)]
pub(super) struct PrebuiltRoot(Option<PartialRoot>);

impl PrebuiltRoot {
    /// Builds the part for a server that runs as root. An ordinary user may create mounts only inside
    /// their own mount namespace, which does not exist yet; the value is empty then.
    pub(super) fn build() -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::default();
        }
        Self(with_public_umask(Self::begin).ok())
    }

    fn begin() -> Result<PartialRoot, SetupError> {
        let mut partial = PartialRoot::new()?;
        for entry in root_tree::system(&Host::probe()) {
            // An entry that fails here is tried again with the plan, and its error is reported there.
            let _ = Self::add(&mut partial, &entry);
        }
        Ok(partial)
    }

    fn add(partial: &mut PartialRoot, entry: &RootEntry) -> Result<(), SetupError> {
        match entry {
            RootEntry::Bind { path, source: BindSource::System(_), access } => {
                partial.add(entry, Some(system_mount(path, *access)?))
            }
            // The sources of these are not known yet.
            RootEntry::Bind { .. } => Ok(()),
            _ => partial.add(entry, None),
        }
    }
}

/// A root directory whose mounts are open but not attached.
pub(super) struct PreparedRoot {
    partial: PartialRoot,
    /// Dropped after [`build`], because ending the processes in it takes time.
    _owners: Owners,
}

/// User namespaces that map an owner on disk to the commands' user, with the processes that held them.
type Owners = HashMap<(u32, u32), (UserNamespace, OwnedFd)>;

impl PartialRoot {
    /// Begins the root directory of a plan with the parts that were built before, in the mount namespace in
    /// which they were: in another one the kernel does not copy detached mounts.
    pub(super) fn begin(
        plan: &Plan,
        resources: &CellResources,
        system: PrebuiltRoot,
    ) -> Result<Self, SetupError> {
        let mut partial = system.0.map_or_else(Self::new, Ok)?;
        let shared = resources.shared_mounts.for_plan(plan);
        with_public_umask(|| shared.map_or(Ok(()), |shared| partial.take(shared, plan)))?;
        Ok(partial)
    }
}

impl PreparedRoot {
    /// Opens all other sources of the plan and creates their mount points.
    pub(super) fn open(
        mut partial: PartialRoot,
        plan: &Plan,
        resources: &CellResources,
        spare: Option<UserNamespace>,
    ) -> Result<Self, SetupError> {
        let mut opener = BindOpener { plan, resources, owners: HashMap::new(), spare };
        let missing: Vec<&RootEntry> =
            plan.tree.iter().filter(|entry| !partial.has(entry)).collect();
        with_public_umask(|| {
            missing.into_iter().try_for_each(|entry| partial.add(entry, opener.open_entry(entry)?))
        })?;
        Ok(Self { partial, _owners: opener.owners })
    }
}

/// Reads a file that is to be copied. Fails with `ESTALE` if it no longer qualifies.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let status = fstat(&file)?;
    if !is_copied(&status) {
        return Err(Errno::STALE.into());
    }
    let mut bytes = vec![0; usize::try_from(status.st_size).unwrap_or_default()];
    // One read: a file that is being written is seen as it is now.
    let length = rustix::io::read(file, &mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Copies the tree at a path of the host and limits the copy.
pub(super) fn system_mount(path: &Path, access: FileAccess) -> Result<DetachedMount, SetupError> {
    let mount = DetachedMount::copy_of_path(path).during_with(SetupStep::Find, path)?;
    mount.limit(usage(access)).during_with(SetupStep::Root, path)?;
    Ok(mount)
}

fn usage(access: FileAccess) -> MountAccess {
    match access {
        FileAccess::Read => MountAccess::Read,
        FileAccess::Change => MountAccess::Change,
        FileAccess::Device => MountAccess::Device,
    }
}

struct BindOpener<'a> {
    plan: &'a Plan,
    resources: &'a CellResources,
    owners: Owners,
    spare: Option<UserNamespace>,
}

impl BindOpener<'_> {
    /// Opens and limits the mount of an entry, if its source is on the host.
    fn open_entry(&mut self, entry: &RootEntry) -> Result<Option<DetachedMount>, SetupError> {
        match entry {
            RootEntry::Bind { path, source, access } => {
                let found = self.open_source(source)?;
                let limited = found.iter().try_for_each(|mount| mount.limit(usage(*access)));
                limited.during_with(SetupStep::Root, path)?;
                Ok(found)
            }
            // The only command mounts its own.
            RootEntry::Proc(_) if self.resources.lifetime == CellLifetime::OneCommand => Ok(None),
            RootEntry::Proc(path) => system_mount(path, FileAccess::Read).map(Some),
            RootEntry::Directory(_)
            | RootEntry::Link { .. }
            | RootEntry::File { .. }
            | RootEntry::Copy(_)
            | RootEntry::DevPts(_) => Ok(None),
        }
    }

    /// Opens a source; `None` if it is inside the new root.
    fn open_source(&mut self, source: &BindSource) -> Result<Option<DetachedMount>, SetupError> {
        let Plan { workspace, scratch, .. } = self.plan;
        let (mount, path) = match source {
            BindSource::System(path) => {
                return DetachedMount::copy_of_path(path)
                    .during_with(SetupStep::Find, path)
                    .map(Some);
            }
            BindSource::Workspace => {
                (copy_if_same(self.resources.workspace.as_fd(), workspace)?, workspace.clone())
            }
            // Its layers are id-mapped, and an overlay cannot be.
            BindSource::Overlay => {
                return copy_if_same(self.resources.workspace.as_fd(), workspace).map(Some);
            }
            BindSource::Scratch(name) => {
                let path = scratch.join(name);
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                let directory =
                    openat2(&self.resources.scratch, name, flags, Mode::empty(), resolve)
                        .during_with(SetupStep::Find, &path)?;
                (copy_if_same(directory.as_fd(), &path)?, path)
            }
            BindSource::Granted(path) => {
                // The policy's path has no links; one that is there now was put there since.
                (copy_of(&open_without_links(path, OFlags::empty())?, path)?, path.clone())
            }
            // Opened when the entries before it are mounted.
            BindSource::InPlace | BindSource::Ancestor => return Ok(None),
        };
        self.map_owner(&mount, &path)?;
        Ok(Some(mount))
    }

    /// Id-maps a mount, so that files of the source's owner belong to the commands' user.
    fn map_owner(&mut self, mount: &DetachedMount, path: &Path) -> Result<(), SetupError> {
        let CommandUser::Mapped { outside, .. } = self.plan.run_as else { return Ok(()) };
        let status = mount.status().during_with(SetupStep::Find, path)?;
        let disk = Owner { user: status.st_uid, group: status.st_gid };
        let (_, namespace) = match self.owners.entry((disk.user, disk.group)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                let mapping = IdMapping { inside: disk, outside, privileged: true };
                let spare = self.spare.take();
                let made = UserNamespace::of_owners(mapping, spare);
                unknown.insert(made.during(SetupStep::UserNamespace)?)
            }
        };
        mount.map_owner(namespace).during_with(SetupStep::MapOwner, path)
    }
}

/// Copies the tree at a path if it is the directory that a descriptor refers to; otherwise fails with
/// `ESTALE`.
///
/// The descriptor itself cannot be the source: it belongs to the mounts outside the namespace.
fn copy_if_same(descriptor: BorrowedFd<'_>, path: &Path) -> Result<DetachedMount, SetupError> {
    copy_of(&open_if_same(descriptor, path)?, path)
}

/// Opens the directory at a path if it is the one that a descriptor refers to; otherwise fails with `ESTALE`.
pub(crate) fn open_if_same(descriptor: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, SetupError> {
    let found = open_without_links(path, OFlags::DIRECTORY)?;
    let meant = fstat(descriptor).during_with(SetupStep::Find, path)?;
    let there = fstat(&found).during_with(SetupStep::Find, path)?;
    if (meant.st_dev, meant.st_ino) != (there.st_dev, there.st_ino) {
        return Err(Errno::STALE).during_with(SetupStep::Find, path);
    }
    Ok(found)
}

fn open_without_links(path: &Path, more: OFlags) -> Result<OwnedFd, SetupError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | more;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .during_with(SetupStep::Find, path)
}

fn copy_of(found: &OwnedFd, path: &Path) -> Result<DetachedMount, SetupError> {
    DetachedMount::copy_of_descriptor(found.as_fd()).during_with(SetupStep::Find, path)
}

/// Pivots into the new root and attaches the mounts in the order of the plan. If the cell serves one
/// command, the old root stays until that command has mounted its `/proc`: in a user namespace the kernel
/// permits a new procfs only while another is visible.
pub(super) fn build(
    plan: &Plan,
    sources: &PreparedRoot,
    lifetime: CellLifetime,
) -> Result<(), SetupError> {
    let PartialRoot { root, binds, shared, .. } = &sources.partial;
    root.become_root(Path::new(PIVOT_TARGET)).during(SetupStep::Root)?;
    if lifetime == CellLifetime::ManyCommands {
        mounts::detach_old_root().during(SetupStep::Root)?;
    }
    for (path, top) in shared {
        top.attach(path).during_with(SetupStep::Root, path)?;
    }
    // A mount covers entries that were created beneath its path; they are created again in it.
    let mut covers: Vec<&Path> = Vec::new();
    for entry in &plan.tree {
        let mount = binds.get(entry.path());
        if covers.iter().any(|top| entry.path().starts_with(top) && entry.path() != *top) {
            make(&mut DirectoryBuilder::of_root()?, entry, mount)?;
        }
        attach(entry, mount)?;
        if let RootEntry::Bind { path, access: FileAccess::Change, .. } = entry {
            covers.push(path);
        }
    }
    mounts::make_root_read_only().during(SetupStep::Root)?;
    rustix::system::sethostname(HOST_NAME.as_bytes()).during(SetupStep::Root)
}

fn attach(entry: &RootEntry, mount: Option<&DetachedMount>) -> Result<(), SetupError> {
    match entry {
        RootEntry::Directory(_) | RootEntry::Link { .. } | RootEntry::Copy(_) => Ok(()),
        RootEntry::DevPts(path) => {
            let terminals = DetachedMount::devpts().during_with(SetupStep::Root, path)?;
            terminals.attach(path).during_with(SetupStep::Root, path)
        }
        RootEntry::Bind {
            path,
            source: source @ (BindSource::InPlace | BindSource::Ancestor),
            access,
        } => {
            // Commands may be changing the workspace meanwhile: the directory is opened once, without
            // following links, and only that descriptor is used.
            let found = open_without_links(path, OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
            let mount = copy_of(&found, path)?;
            match source {
                BindSource::Ancestor => mount.limit_alone(usage(*access)),
                _ => mount.limit(usage(*access)),
            }
            .during_with(SetupStep::Find, path)?;
            mount.attach_to(found.as_fd()).during_with(SetupStep::Find, path)
        }
        RootEntry::Bind { path, .. } | RootEntry::File { path, .. } | RootEntry::Proc(path) => {
            let Some(mount) = mount else { return Ok(()) };
            mount.attach(path).during_with(SetupStep::Root, path)
        }
    }
}
