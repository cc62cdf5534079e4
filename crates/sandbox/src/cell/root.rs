//! Building the root directory of a cell.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;

use super::ground::{Ground, for_all_to_see};
use super::shared::{self, Shared};
use super::{Doors, During, Expected, Failure, Step};
use crate::host::{Host, is_copied};
use crate::mounts::{self, Detached, Use};
use crate::namespaces::{Mapping, Users};
use crate::plan::{HOST_NAME, Identity, Node, Plan, Reach, Source, tree};
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
struct Begun {
    root: Detached,
    ground: Ground,
    /// What is mounted, by where.
    pieces: HashMap<PathBuf, Detached>,
    /// What is mounted before that.
    tops: Vec<(&'static Path, Detached)>,
    /// What has been seen to, by where.
    nodes: HashMap<PathBuf, Node>,
}

impl Begun {
    fn new() -> Result<Self, Failure> {
        let root = Detached::memory().during(Step::Root)?;
        let ground = Ground::new(root.as_fd().try_clone_to_owned().during(Step::Root)?);
        let (pieces, nodes) = (HashMap::new(), HashMap::new());
        Ok(Self { root, ground, pieces, tops: Vec::new(), nodes })
    }

    /// Takes the parts that all cells have in common, and makes what is different in them.
    fn take(&mut self, shared: &Shared, plan: &Plan) -> Result<(), Failure> {
        for top in &shared.tops {
            self.ground.directory(top.path)?;
            self.tops.push((top.path, top.tree.again().during_with(Step::Root, top.path)?));
            for node in shared::below(plan, top.path) {
                let path = node.path().to_owned();
                match node {
                    node if top.has(node) => {}
                    Node::File { text, .. } => {
                        let hidden = Path::new(COVERED).join(self.pieces.len().to_string());
                        self.ground.file(&hidden, text.as_bytes())?;
                        let found = self.ground.find(&hidden)?;
                        let piece = Detached::of_descriptor(found.as_fd());
                        let piece = piece.during_with(Step::Root, &path)?;
                        piece.limit(Use::Read).during_with(Step::Root, &path)?;
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

    fn has(&self, node: &Node) -> bool {
        self.nodes.get(node.path()) == Some(node)
    }

    /// Makes what a node stands for, or a place to mount it on.
    fn add(&mut self, node: &Node, piece: Option<Detached>) -> Result<(), Failure> {
        make(&mut self.ground, node, piece.as_ref())?;
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
    ground: &mut Ground,
    node: &Node,
    piece: Option<&Detached>,
) -> Result<(), Failure> {
    match node {
        Node::Directory(path) | Node::Terminals(path) | Node::Processes(path) => {
            ground.directory(path)
        }
        Node::Link { path, target } => ground.link(path, target),
        Node::File { path, text } => ground.file(path, text.as_bytes()),
        Node::Copy(path) => ground.file(path, &read(path).during_with(Step::Find, path)?),
        Node::Bind { path, .. } => {
            let Some(piece) = piece else { return Ok(()) };
            match piece.kind().during_with(Step::Root, path)? {
                FileType::Directory => ground.directory(path),
                _ => ground.empty_file(path),
            }
        }
    }
}

/// The part of a root directory that is the same for all commands, made before there is any.
#[derive(Debug, Default)]
pub(super) struct System(Option<Begun>);

impl System {
    /// Makes what every command of an administrator's server sees. An ordinary user makes it after
    /// moving to mounts of their own.
    pub(super) fn open() -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::default();
        }
        Self(for_all_to_see(Self::begin).ok())
    }

    fn begin() -> Result<Begun, Failure> {
        let mut begun = Begun::new()?;
        for node in tree::system(&Host::look()) {
            // What fails here is tried again when it is needed, and fails there.
            let _ = Self::add(&mut begun, &node);
        }
        Ok(begun)
    }

    fn add(begun: &mut Begun, node: &Node) -> Result<(), Failure> {
        match node {
            Node::Bind { path, source: Source::System(_), reach } => {
                let piece = Detached::of(path).during_with(Step::Find, path)?;
                piece.limit(usage(*reach)).during_with(Step::Root, path)?;
                begun.add(node, Some(piece))
            }
            // What it shows is not known yet.
            Node::Bind { .. } => Ok(()),
            _ => begun.add(node, None),
        }
    }
}

/// A root directory in which nothing is mounted yet, and what is to be.
pub(super) struct Sources {
    begun: Begun,
    /// Kept because to end them takes a moment.
    _owners: Owners,
}

/// User namespaces that turn an owner on disk into the commands' own user.
type Owners = HashMap<(u32, u32), (Users, OwnedFd)>;

impl Sources {
    /// Opens everything that the plan shows of the host, and makes places for it.
    pub(super) fn open(
        plan: &Plan,
        doors: &Doors,
        (system, spare): (System, Option<Users>),
    ) -> Result<Self, Failure> {
        let mut finder = Finder { plan, doors, owners: HashMap::new(), spare };
        let mut begun = system.0.map_or_else(Begun::new, Ok)?;
        let shared = doors.parts.for_plan(plan);
        for_all_to_see(|| shared.map_or(Ok(()), |shared| begun.take(shared, plan)))?;
        let missing: Vec<&Node> = plan.tree.iter().filter(|node| !begun.has(node)).collect();
        for_all_to_see(|| {
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

pub(super) fn usage(reach: Reach) -> Use {
    match reach {
        Reach::Read => Use::Read,
        Reach::Change => Use::Change,
        Reach::Device => Use::Device,
    }
}

struct Finder<'a> {
    plan: &'a Plan,
    doors: &'a Doors,
    owners: Owners,
    /// A user namespace that was made before.
    spare: Option<Users>,
}

impl Finder<'_> {
    /// Finds what is to be mounted for a node, if anything of the host is, and limits it.
    fn find_for(&mut self, node: &Node) -> Result<Option<Detached>, Failure> {
        let (path, found, limit) = match node {
            Node::Bind { path, source, reach } => (path, self.find(source)?, usage(*reach)),
            // They are those of the only command, and there is none yet.
            Node::Processes(_) if self.doors.expected == Expected::One => return Ok(None),
            Node::Processes(path) => {
                (path, Some(Detached::of(path).during_with(Step::Find, path)?), Use::Read)
            }
            Node::Directory(_)
            | Node::Link { .. }
            | Node::File { .. }
            | Node::Copy(_)
            | Node::Terminals(_) => return Ok(None),
        };
        found.iter().try_for_each(|piece| piece.limit(limit)).during_with(Step::Root, path)?;
        Ok(found)
    }

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
            Source::Itself | Source::Above => Ok(None),
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
                let spare = self.spare.take();
                unknown.insert(users(mapping, spare).during(Step::UserNamespace)?)
            }
        };
        piece.map_owner(namespace).during_with(Step::MapOwner, path)
    }
}

/// Makes a user namespace that is only looked at, and a descriptor that keeps it.
fn users(mapping: Mapping, spare: Option<Users>) -> io::Result<(Users, OwnedFd)> {
    let users = spare.map_or_else(|| Users::make(UnshareFlags::empty()), Ok)?;
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

/// Moves into the root directory and mounts in it what is to be there. With one command to come, the
/// old one is left by that: the kernel wants to see its `/proc` before it makes another.
pub(super) fn build(plan: &Plan, sources: &Sources, expected: Expected) -> Result<(), Failure> {
    let Begun { root, pieces, tops, .. } = &sources.begun;
    root.become_root(Path::new(ANY_DIRECTORY)).during(Step::Root)?;
    if expected == Expected::Many {
        mounts::leave_old_root().during(Step::Root)?;
    }
    for (path, top) in tops {
        top.attach(path).during_with(Step::Root, path)?;
    }
    // What was made in a place that something is mounted on is covered by it.
    let mut covers: Vec<&Path> = Vec::new();
    for node in &plan.tree {
        let piece = pieces.get(node.path());
        if covers.iter().any(|top| node.path().starts_with(top) && node.path() != *top) {
            make(&mut Ground::of_root()?, node, piece)?;
        }
        mount(node, piece)?;
        if let Node::Bind { path, reach: Reach::Change, .. } = node {
            covers.push(path);
        }
    }
    mounts::seal_root().during(Step::Root)?;
    rustix::system::sethostname(HOST_NAME.as_bytes()).during(Step::Root)
}

fn mount(node: &Node, piece: Option<&Detached>) -> Result<(), Failure> {
    match node {
        Node::Directory(_) | Node::Link { .. } | Node::Copy(_) => Ok(()),
        Node::Terminals(path) => {
            let terminals = Detached::terminals().during_with(Step::Root, path)?;
            terminals.attach(path).during_with(Step::Root, path)
        }
        Node::Bind { path, source: source @ (Source::Itself | Source::Above), reach } => {
            // Commands may be changing the workspace: what is opened is what is used, and no link
            // of theirs is followed.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::NO_SYMLINKS;
            let found = openat2(CWD, path, flags, Mode::empty(), resolve);
            let found = found.during_with(Step::Find, path)?;
            let piece = Detached::of_descriptor(found.as_fd()).during_with(Step::Find, path)?;
            match source {
                Source::Above => piece.limit_alone(usage(*reach)),
                _ => piece.limit(usage(*reach)),
            }
            .during_with(Step::Find, path)?;
            piece.attach_to(found.as_fd()).during_with(Step::Find, path)
        }
        Node::Bind { path, .. } | Node::File { path, .. } | Node::Processes(path) => {
            let Some(piece) = piece else { return Ok(()) };
            piece.attach(path).during_with(Step::Root, path)
        }
    }
}
