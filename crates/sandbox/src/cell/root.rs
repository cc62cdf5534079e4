//! Building the root directory of a cell.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, mknodat, openat2};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::{Doors, During, Failure, Step};
use crate::host::Host;
use crate::mounts::{self, Detached, Use};
use crate::namespaces::{Mapping, Users};
use crate::plan::{HOST_NAME, Identity, Node, Plan, Reach, Source, tree};
use crate::policy::Owner;

/// Every system has it, and it is replaced at once.
const ANY_DIRECTORY: &str = "/usr";

/// Returns the namespaces of a cell besides those of users and of mounts.
pub(super) fn namespaces(with_network: bool) -> UnshareFlags {
    let common = UnshareFlags::NEWIPC | UnshareFlags::NEWUTS | UnshareFlags::NEWCGROUP;
    if with_network { common | UnshareFlags::NEWNET } else { common }
}

/// Parts of the system, opened before it is known who is to see them.
#[derive(Debug, Default)]
pub(super) struct System {
    found: HashMap<(PathBuf, Reach), Detached>,
}

impl System {
    /// Opens what every command of an administrator's server sees. An ordinary user opens things after
    /// moving to mounts of their own.
    pub(super) fn open() -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::default();
        }
        let found = tree::system(&Host::look()).into_iter().filter_map(|(path, reach)| {
            // What fails here is tried again when it is needed, and fails there.
            let piece = Detached::of(&path).ok()?;
            piece.limit(usage(reach)).ok()?;
            Some(((path, reach), piece))
        });
        Self { found: found.collect() }
    }

    fn take(&mut self, source: &Source, reach: Reach) -> Option<Detached> {
        match source {
            Source::System(path) => self.found.remove(&(path.clone(), reach)),
            Source::Granted(_) | Source::Workspace | Source::Scratch(_) | Source::Itself => None,
        }
    }
}

/// What of the host is to be seen, by where.
pub(super) struct Sources {
    found: HashMap<PathBuf, Detached>,
}

impl Sources {
    /// Opens everything that the plan shows of the host.
    pub(super) fn open(plan: &Plan, doors: &Doors, mut system: System) -> Result<Self, Failure> {
        let mut finder = Finder { plan, doors, owners: HashMap::new() };
        let mut found = HashMap::new();
        for node in &plan.tree {
            match node {
                Node::Bind { path, source, reach } => {
                    if let Some(piece) = system.take(source, *reach) {
                        found.insert(path.clone(), piece);
                    } else if let Some(piece) = finder.find(source)? {
                        piece.limit(usage(*reach)).during_with(Step::Root, path)?;
                        found.insert(path.clone(), piece);
                    }
                }
                Node::Processes(path) => {
                    let piece = Detached::of(path).during_with(Step::Find, path)?;
                    piece.limit(Use::Read).during_with(Step::Root, path)?;
                    found.insert(path.clone(), piece);
                }
                Node::Directory(_) | Node::Link { .. } | Node::File { .. } | Node::Terminals(_) => {
                }
            }
        }
        Ok(Self { found })
    }
}

fn usage(reach: Reach) -> Use {
    match reach {
        Reach::Read => Use::Read,
        Reach::Change => Use::Change,
        Reach::Device => Use::Device,
    }
}

struct Finder<'a> {
    plan: &'a Plan,
    doors: &'a Doors,
    /// The user namespaces that turn an owner on disk into the commands' own user.
    owners: HashMap<(u32, u32), (Users, OwnedFd)>,
}

impl Finder<'_> {
    /// Finds what a node shows; none if that is not of the host.
    fn find(&mut self, source: &Source) -> Result<Option<Detached>, Failure> {
        let Plan { workspace, scratch, .. } = self.plan;
        match source {
            Source::System(path) => Detached::of(path).during_with(Step::Find, path).map(Some),
            Source::Workspace => {
                let piece = same(self.doors.workspace.as_fd(), workspace)?;
                self.map(&piece, workspace)?;
                Ok(Some(piece))
            }
            Source::Scratch(name) => {
                let path = scratch.join(name);
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                let directory = openat2(&self.doors.scratch, name, flags, Mode::empty(), resolve)
                    .during_with(Step::Find, &path)?;
                let piece = same(directory.as_fd(), &path)?;
                self.map(&piece, &path)?;
                Ok(Some(piece))
            }
            Source::Granted(path) => {
                // The path is real; what is a link by now was put there by somebody else.
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let resolve = ResolveFlags::NO_SYMLINKS;
                let found = openat2(CWD, path, flags, Mode::empty(), resolve)
                    .during_with(Step::Find, path)?;
                let piece = Detached::of_descriptor(found.as_fd()).during_with(Step::Find, path)?;
                self.map(&piece, path)?;
                Ok(Some(piece))
            }
            // What is there already is looked up when it is there.
            Source::Itself => Ok(None),
        }
    }

    /// Makes what belongs to the owner of a path belong to the commands' own user.
    fn map(&mut self, piece: &Detached, path: &Path) -> Result<(), Failure> {
        let Identity::Own { outside, .. } = self.plan.identity else { return Ok(()) };
        let status = piece.status().during_with(Step::Find, path)?;
        let disk = Owner { user: status.st_uid, group: status.st_gid };
        let (_, namespace) = match self.owners.entry((disk.user, disk.group)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                let mapping = Mapping { inside: disk, outside, privileged: true };
                unknown.insert(users(mapping).during(Step::UserNamespace)?)
            }
        };
        piece.map_owner(namespace).during_with(Step::MapOwner, path)
    }
}

/// Makes a user namespace that is only looked at, and a descriptor that keeps it.
fn users(mapping: Mapping) -> io::Result<(Users, OwnedFd)> {
    let users = Users::make(UnshareFlags::empty())?;
    users.describe(mapping)?;
    let kept = users.keep()?;
    Ok((users, kept))
}

/// Copies what is at a path, if that is what a descriptor stands for.
///
/// A descriptor from outside belongs to the mounts outside and cannot be copied from inside.
fn same(descriptor: BorrowedFd<'_>, path: &Path) -> Result<Detached, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let found = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .during_with(Step::Find, path)?;
    let (meant, there) = (
        fstat(descriptor).during_with(Step::Find, path)?,
        fstat(&found).during_with(Step::Find, path)?,
    );
    if (meant.st_dev, meant.st_ino) != (there.st_dev, there.st_ino) {
        return Err(Errno::STALE).during_with(Step::Find, path);
    }
    Detached::of_descriptor(found.as_fd()).during_with(Step::Find, path)
}

/// Makes the root directory and moves into it.
pub(super) fn build(plan: &Plan, sources: &Sources) -> Result<(), Failure> {
    let root = Detached::memory().during(Step::Root)?;
    root.become_root(Path::new(ANY_DIRECTORY)).during(Step::Root)?;
    for node in &plan.tree {
        place(node, sources)?;
    }
    mounts::seal_root().during(Step::Root)?;
    rustix::system::sethostname(HOST_NAME.as_bytes()).during(Step::Root)
}

fn place(node: &Node, sources: &Sources) -> Result<(), Failure> {
    match node {
        Node::Directory(path) => directory(path),
        Node::Link { path, target } => {
            let made = below_made(path, || rustix::fs::symlink(target, path))?;
            made.during_with(Step::Root, path)
        }
        Node::File { path, text } => {
            let file = open_file(path)?;
            rustix::io::write(file, text.as_bytes()).during_with(Step::Root, path).map(drop)
        }
        Node::Terminals(path) => {
            directory(path)?;
            let terminals = Detached::terminals().during_with(Step::Root, path)?;
            terminals.attach(path).during_with(Step::Root, path)
        }
        Node::Bind { path, source: Source::Itself, reach } => {
            // Commands may be changing the workspace: what is opened is what is used, and no link
            // of theirs is followed.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::NO_SYMLINKS;
            let found = openat2(CWD, path, flags, Mode::empty(), resolve);
            let found = found.during_with(Step::Find, path)?;
            let piece = Detached::of_descriptor(found.as_fd()).during_with(Step::Find, path)?;
            piece.limit(usage(*reach)).during_with(Step::Find, path)?;
            piece.attach_to(found.as_fd()).during_with(Step::Find, path)
        }
        Node::Bind { path, .. } | Node::Processes(path) => show(path, sources.found.get(path)),
    }
}

/// Attaches a piece of the host, if it was found.
fn show(path: &Path, piece: Option<&Detached>) -> Result<(), Failure> {
    let Some(piece) = piece else { return Ok(()) };
    match piece.kind().during_with(Step::Root, path)? {
        FileType::Directory => directory(path)?,
        _ => file(path)?,
    }
    piece.attach(path).during_with(Step::Root, path)
}

/// Makes a directory and those above it, unless they are there.
fn directory(path: &Path) -> Result<(), Failure> {
    match below_made(path, || mkdirat(CWD, path, Mode::from_raw_mode(0o755)))? {
        Ok(()) | Err(Errno::EXIST | Errno::ROFS) => Ok(()),
        Err(errno) => Err(errno).during_with(Step::Root, path),
    }
}

/// Makes something, and if that fails for want of the directories above it, those first. Most are
/// there, so that most things take one call.
fn below_made<T>(
    path: &Path,
    make: impl Fn() -> Result<T, Errno>,
) -> Result<Result<T, Errno>, Failure> {
    match (make(), path.parent()) {
        (Err(Errno::NOENT), Some(above)) => {
            directory(above)?;
            Ok(make())
        }
        (result, _) => Ok(result),
    }
}

/// Makes an empty file, unless it is there.
fn file(path: &Path) -> Result<(), Failure> {
    let make = || mknodat(CWD, path, FileType::RegularFile, Mode::from_raw_mode(0o644), 0);
    match below_made(path, make)? {
        Ok(()) => Ok(()),
        // It must be a file.
        Err(Errno::EXIST | Errno::ROFS) => open_file(path).map(drop),
        Err(errno) => Err(errno).during_with(Step::Root, path),
    }
}

/// Opens a file for writing, and makes it unless it is there.
fn open_file(path: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::open(path, flags, Mode::from_raw_mode(0o644));
    below_made(path, open)?.during_with(Step::Root, path)
}
