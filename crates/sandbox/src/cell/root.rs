//! Building the root directory of a cell.

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

/// A directory that something is mounted on, so that nobody sees what is in it.
const COVERED: &str = "/proc";

/// Every system has it, and it is replaced at once.
const ANY_DIRECTORY: &str = "/usr";

/// Returns the namespaces of a cell besides those of users and of mounts.
pub(super) fn namespaces(with_network: bool) -> UnshareFlags {
    let common = UnshareFlags::NEWIPC | UnshareFlags::NEWUTS | UnshareFlags::NEWCGROUP;
    if with_network { common | UnshareFlags::NEWNET } else { common }
}

/// A root directory that is not complete, and what of the host is to be seen in it.
#[derive(Debug)]
struct PartialRoot {
    root: DetachedMount,
    directory_builder: DirectoryBuilder,
    /// What is mounted, by where.
    pieces: HashMap<PathBuf, DetachedMount>,
    /// What is mounted before that.
    tops: Vec<(&'static Path, DetachedMount)>,
    /// What has been seen to, by where.
    nodes: HashMap<PathBuf, RootEntry>,
}

impl PartialRoot {
    fn new() -> Result<Self, SetupError> {
        let root = DetachedMount::memory().during(SetupStep::Root)?;
        let directory_builder =
            DirectoryBuilder::new(root.as_fd().try_clone_to_owned().during(SetupStep::Root)?);
        let (pieces, nodes) = (HashMap::new(), HashMap::new());
        Ok(Self { root, directory_builder, pieces, tops: Vec::new(), nodes })
    }

    /// Takes the parts that all cells have in common, and makes what is different in them.
    fn take(&mut self, shared: &SharedDirectories, plan: &Plan) -> Result<(), SetupError> {
        for top in &shared.tops {
            self.directory_builder.directory(top.path)?;
            self.tops.push((top.path, top.tree.again().during_with(SetupStep::Root, top.path)?));
            for node in shared_mounts::below(plan, top.path) {
                let path = node.path().to_owned();
                match node {
                    node if top.has(node) => {}
                    RootEntry::File { text, .. } => {
                        let hidden = Path::new(COVERED).join(self.pieces.len().to_string());
                        self.directory_builder.file(&hidden, text.as_bytes())?;
                        let found = self.directory_builder.find(&hidden)?;
                        let piece = DetachedMount::of_descriptor(found.as_fd());
                        let piece = piece.during_with(SetupStep::Root, &path)?;
                        piece.limit(MountAccess::Read).during_with(SetupStep::Root, &path)?;
                        self.pieces.insert(path.clone(), piece);
                    }
                    // What each cell mounts is found as ever.
                    _ => continue,
                }
                self.nodes.insert(path, node.clone());
            }
        }
        Ok(())
    }

    fn has(&self, node: &RootEntry) -> bool {
        self.nodes.get(node.path()) == Some(node)
    }

    /// Makes what a node stands for, or a place to mount it on.
    fn add(&mut self, node: &RootEntry, piece: Option<DetachedMount>) -> Result<(), SetupError> {
        make(&mut self.directory_builder, node, piece.as_ref())?;
        let path = node.path().to_owned();
        if let Some(piece) = piece {
            self.pieces.insert(path.clone(), piece);
        }
        self.nodes.insert(path, node.clone());
        Ok(())
    }
}

/// Makes what a node stands for, or a place to mount it on.
pub(super) fn make(
    directory_builder: &mut DirectoryBuilder,
    node: &RootEntry,
    piece: Option<&DetachedMount>,
) -> Result<(), SetupError> {
    match node {
        RootEntry::Directory(path) | RootEntry::DevPts(path) | RootEntry::Proc(path) => {
            directory_builder.directory(path)
        }
        RootEntry::Link { path, target } => directory_builder.link(path, target),
        RootEntry::File { path, text } => directory_builder.file(path, text.as_bytes()),
        RootEntry::Copy(path) => {
            directory_builder.file(path, &read(path).during_with(SetupStep::Find, path)?)
        }
        RootEntry::Bind { path, .. } => {
            let Some(piece) = piece else { return Ok(()) };
            match piece.kind().during_with(SetupStep::Root, path)? {
                FileType::Directory => directory_builder.directory(path),
                _ => directory_builder.empty_file(path),
            }
        }
    }
}

/// The part of a root directory that is the same for all commands, made before there is any.
#[derive(Debug, Default)]
pub(super) struct PrebuiltRoot(Option<PartialRoot>);

impl PrebuiltRoot {
    /// Makes what every command of an administrator's server sees. An ordinary user makes it after
    /// moving to mounts of their own.
    pub(super) fn open() -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::default();
        }
        Self(with_public_umask(Self::begin).ok())
    }

    fn begin() -> Result<PartialRoot, SetupError> {
        let mut begun = PartialRoot::new()?;
        for node in root_tree::system(&Host::probe()) {
            // What fails here is tried again when it is needed, and fails there.
            let _ = Self::add(&mut begun, &node);
        }
        Ok(begun)
    }

    fn add(begun: &mut PartialRoot, node: &RootEntry) -> Result<(), SetupError> {
        match node {
            RootEntry::Bind { path, source: BindSource::System(_), access } => {
                let piece = DetachedMount::of(path).during_with(SetupStep::Find, path)?;
                piece.limit(usage(*access)).during_with(SetupStep::Root, path)?;
                begun.add(node, Some(piece))
            }
            // What it shows is not known yet.
            RootEntry::Bind { .. } => Ok(()),
            _ => begun.add(node, None),
        }
    }
}

/// A root directory in which nothing is mounted yet, and what is to be.
pub(super) struct PreparedRoot {
    begun: PartialRoot,
    /// Kept because to end them takes a moment.
    _owners: Owners,
}

/// User namespaces that turn an owner on disk into the commands' own user.
type Owners = HashMap<(u32, u32), (UserNamespace, OwnedFd)>;

impl PreparedRoot {
    /// Opens everything that the plan shows of the host, and makes places for it.
    pub(super) fn open(
        plan: &Plan,
        resources: &CellResources,
        (system, spare): (PrebuiltRoot, Option<UserNamespace>),
    ) -> Result<Self, SetupError> {
        let mut finder = BindOpener { plan, resources, owners: HashMap::new(), spare };
        let mut begun = system.0.map_or_else(PartialRoot::new, Ok)?;
        let shared = resources.shared_mounts.for_plan(plan);
        with_public_umask(|| shared.map_or(Ok(()), |shared| begun.take(shared, plan)))?;
        let missing: Vec<&RootEntry> = plan.tree.iter().filter(|node| !begun.has(node)).collect();
        with_public_umask(|| {
            missing.into_iter().try_for_each(|node| begun.add(node, finder.find_for(node)?))
        })?;
        Ok(Self { begun, _owners: finder.owners })
    }
}

/// Reads a file that is copied, as long as it is one.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let status = fstat(&file)?;
    if !is_copied(&status) {
        return Err(Errno::STALE.into());
    }
    let mut bytes = vec![0; usize::try_from(status.st_size).unwrap_or_default()];
    // What others write at this moment is seen as of now, or not at all.
    let length = rustix::io::read(file, &mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

pub(super) fn usage(access: FileAccess) -> MountAccess {
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
    /// A user namespace that was made before.
    spare: Option<UserNamespace>,
}

impl BindOpener<'_> {
    /// Finds what is to be mounted for a node, if anything of the host is, and limits it.
    fn find_for(&mut self, node: &RootEntry) -> Result<Option<DetachedMount>, SetupError> {
        let (path, found, limit) = match node {
            RootEntry::Bind { path, source, access } => (path, self.find(source)?, usage(*access)),
            // They are those of the only command, and there is none yet.
            RootEntry::Proc(_) if self.resources.lifetime == CellLifetime::OneCommand => {
                return Ok(None);
            }
            RootEntry::Proc(path) => (
                path,
                Some(DetachedMount::of(path).during_with(SetupStep::Find, path)?),
                MountAccess::Read,
            ),
            RootEntry::Directory(_)
            | RootEntry::Link { .. }
            | RootEntry::File { .. }
            | RootEntry::Copy(_)
            | RootEntry::DevPts(_) => return Ok(None),
        };
        found.iter().try_for_each(|piece| piece.limit(limit)).during_with(SetupStep::Root, path)?;
        Ok(found)
    }

    /// Finds what a node shows; none if that is not of the host.
    fn find(&mut self, source: &BindSource) -> Result<Option<DetachedMount>, SetupError> {
        let Plan { workspace, scratch, .. } = self.plan;
        match source {
            BindSource::System(path) => {
                DetachedMount::of(path).during_with(SetupStep::Find, path).map(Some)
            }
            BindSource::Workspace => {
                let piece = same(self.resources.workspace.as_fd(), workspace)?;
                self.map(&piece, workspace)?;
                Ok(Some(piece))
            }
            BindSource::Scratch(name) => {
                let path = scratch.join(name);
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                let directory =
                    openat2(&self.resources.scratch, name, flags, Mode::empty(), resolve)
                        .during_with(SetupStep::Find, &path)?;
                let piece = same(directory.as_fd(), &path)?;
                self.map(&piece, &path)?;
                Ok(Some(piece))
            }
            BindSource::Granted(path) => {
                // The path is real; what is a link by now was put there by somebody else.
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let resolve = ResolveFlags::NO_SYMLINKS;
                let found = openat2(CWD, path, flags, Mode::empty(), resolve)
                    .during_with(SetupStep::Find, path)?;
                let piece = DetachedMount::of_descriptor(found.as_fd())
                    .during_with(SetupStep::Find, path)?;
                self.map(&piece, path)?;
                Ok(Some(piece))
            }
            // What is there already is looked up when it is there.
            BindSource::InPlace | BindSource::Ancestor => Ok(None),
        }
    }

    /// Makes what belongs to the owner of a path belong to the commands' own user.
    fn map(&mut self, piece: &DetachedMount, path: &Path) -> Result<(), SetupError> {
        let CommandUser::Mapped { outside, .. } = self.plan.run_as else { return Ok(()) };
        let status = piece.status().during_with(SetupStep::Find, path)?;
        let disk = Owner { user: status.st_uid, group: status.st_gid };
        let (_, namespace) = match self.owners.entry((disk.user, disk.group)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                let mapping = IdMapping { inside: disk, outside, privileged: true };
                let spare = self.spare.take();
                unknown.insert(users(mapping, spare).during(SetupStep::UserNamespace)?)
            }
        };
        piece.map_owner(namespace).during_with(SetupStep::MapOwner, path)
    }
}

/// Makes a user namespace that is only looked at, and a descriptor that keeps it.
fn users(mapping: IdMapping, spare: Option<UserNamespace>) -> io::Result<(UserNamespace, OwnedFd)> {
    let users = spare.map_or_else(|| UserNamespace::make(UnshareFlags::empty()), Ok)?;
    users.describe(mapping)?;
    let kept = users.keep()?;
    Ok((users, kept))
}

/// Copies what is at a path, if that is what a descriptor stands for.
///
/// A descriptor from outside belongs to the mounts outside and cannot be copied from inside.
fn same(descriptor: BorrowedFd<'_>, path: &Path) -> Result<DetachedMount, SetupError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let found = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .during_with(SetupStep::Find, path)?;
    let (meant, there) = (
        fstat(descriptor).during_with(SetupStep::Find, path)?,
        fstat(&found).during_with(SetupStep::Find, path)?,
    );
    if (meant.st_dev, meant.st_ino) != (there.st_dev, there.st_ino) {
        return Err(Errno::STALE).during_with(SetupStep::Find, path);
    }
    DetachedMount::of_descriptor(found.as_fd()).during_with(SetupStep::Find, path)
}

/// Moves into the root directory and mounts in it what is to be there. With one command to come, the
/// old one is left by that: the kernel wants to see its `/proc` before it makes another.
pub(super) fn build(
    plan: &Plan,
    sources: &PreparedRoot,
    lifetime: CellLifetime,
) -> Result<(), SetupError> {
    let PartialRoot { root, pieces, tops, .. } = &sources.begun;
    root.become_root(Path::new(ANY_DIRECTORY)).during(SetupStep::Root)?;
    if lifetime == CellLifetime::ManyCommands {
        mounts::leave_old_root().during(SetupStep::Root)?;
    }
    for (path, top) in tops {
        top.attach(path).during_with(SetupStep::Root, path)?;
    }
    // What was made in a place that something is mounted on is covered by it.
    let mut covers: Vec<&Path> = Vec::new();
    for node in &plan.tree {
        let piece = pieces.get(node.path());
        if covers.iter().any(|top| node.path().starts_with(top) && node.path() != *top) {
            make(&mut DirectoryBuilder::of_root()?, node, piece)?;
        }
        mount(node, piece)?;
        if let RootEntry::Bind { path, access: FileAccess::Change, .. } = node {
            covers.push(path);
        }
    }
    mounts::seal_root().during(SetupStep::Root)?;
    rustix::system::sethostname(HOST_NAME.as_bytes()).during(SetupStep::Root)
}

fn mount(node: &RootEntry, piece: Option<&DetachedMount>) -> Result<(), SetupError> {
    match node {
        RootEntry::Directory(_) | RootEntry::Link { .. } | RootEntry::Copy(_) => Ok(()),
        RootEntry::DevPts(path) => {
            let terminals = DetachedMount::terminals().during_with(SetupStep::Root, path)?;
            terminals.attach(path).during_with(SetupStep::Root, path)
        }
        RootEntry::Bind {
            path,
            source: source @ (BindSource::InPlace | BindSource::Ancestor),
            access,
        } => {
            // Commands may be changing the workspace: what is opened is what is used, and no link
            // of theirs is followed.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::NO_SYMLINKS;
            let found = openat2(CWD, path, flags, Mode::empty(), resolve);
            let found = found.during_with(SetupStep::Find, path)?;
            let piece =
                DetachedMount::of_descriptor(found.as_fd()).during_with(SetupStep::Find, path)?;
            match source {
                BindSource::Ancestor => piece.limit_alone(usage(*access)),
                _ => piece.limit(usage(*access)),
            }
            .during_with(SetupStep::Find, path)?;
            piece.attach_to(found.as_fd()).during_with(SetupStep::Find, path)
        }
        RootEntry::Bind { path, .. } | RootEntry::File { path, .. } | RootEntry::Proc(path) => {
            let Some(piece) = piece else { return Ok(()) };
            piece.attach(path).during_with(SetupStep::Root, path)
        }
    }
}
