//! Looking at everything that is watched, reading only what may have changed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carrel_fsroot::{Error, FileKind, Root};

use super::diff::below;
use super::directory_link::leads;
use super::snapshot::{Leads, Node, Stamp, State, Tree};
use super::stamp_reliability::Stamping;
use super::watch_rules::{MAX_TREE_DEPTH, Role, Watch};
use super::watched_names::{tree_names, watched_names, with_bareness};

/// The largest file that is read, kept and put back.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How much of a workspace's files is kept in memory.
const MAX_KEPT_BYTES: u64 = 16 * 1024 * 1024;

/// How many entries a watched directory may have, all below it included, before it
/// counts as one thing.
const MAX_TREE_ENTRIES: usize = 512;

/// How many entries are watched in one workspace. Directories with all below them may
/// use half, so that they cannot displace repositories.
const MAX_NODES: usize = 64 * 1024;

/// One look at a workspace.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    root: &'a Root,
    before: &'a Tree,
    now: SystemTime,
    stamping: Stamping,
    kept: u64,
    /// How many more entries the present watched directory may have.
    tree_left: usize,
    /// Whether there was more than is watched.
    dropped: bool,
    /// Directories that links in places lead to, not yet looked at.
    behind_doors: Vec<Extra>,
    /// Directories of settings that are places as well, not yet looked at as such.
    also_places: Vec<PathBuf>,
    pub(super) nodes: Tree,
    /// Whether anything was read anew.
    pub(super) fresh: bool,
}

/// A path outside the fixed list, and how it is looked at.
pub(super) type Extra = (PathBuf, Watch);

/// Looks at a workspace, taking over from an earlier look what is certainly the same.
pub(super) fn scan<'a>(
    root: &'a Root,
    before: &'a Tree,
    extras: &[Extra],
) -> Result<Scan<'a>, Error> {
    let mut scan = Scan {
        root,
        before,
        now: SystemTime::now(),
        stamping: Stamping::of(root),
        kept: 0,
        tree_left: 0,
        dropped: false,
        behind_doors: Vec::new(),
        also_places: Vec::new(),
        nodes: Tree::new(),
        fresh: false,
    };
    let stamp = Stamp::new(&root.top()?, scan.now);
    // These first: how they are looked at goes before the rule for their place.
    for (path, watch) in extras {
        scan.extra(path, *watch);
    }
    let open = || root.try_clone();
    scan.directory(open, PathBuf::new(), Watch::Top { bare: false }, stamp);
    for path in std::mem::take(&mut scan.also_places) {
        scan.also_place(&path);
    }
    while let Some((path, watch)) = scan.behind_doors.pop() {
        scan.behind_door(&path, watch);
    }
    if scan.dropped
        && let Some(top) = scan.nodes.get_mut(Path::new(""))
        && let State::Directory { complete, .. } = &mut top.state
    {
        *complete = false;
    }
    Ok(scan)
}

/// Tells whether every entry of an earlier look is certainly the same, and there are no others.
///
/// A directory with the same stamp has the same names. No link is on the way to an entry: what is
/// above it is an entry too, and still the directory that it was.
pub(super) fn is_as_before(root: &Root, before: &Tree) -> bool {
    let (now, stamping) = (SystemTime::now(), Stamping::of(root));
    before.iter().all(|(path, node)| {
        let believed = match node.state {
            State::Directory { complete, .. } => complete && stamping.directories,
            State::File { .. } | State::Link(_) => stamping.files,
            State::Door { ref target, leads: ref led } => {
                // What is behind it may change without it.
                let led_inside = matches!(led, Leads::Inside(_));
                stamping.files && !led_inside && leads(root, path, target) == *led
            }
            State::Crowded | State::Large | State::Other | State::Unreadable => false,
        };
        let metadata = || match path.file_name() {
            None => root.top(),
            Some(_) => root.link_metadata(path),
        };
        believed && metadata().is_ok_and(|found| Stamp::new(&found, now).proves(&node.stamp))
    })
}

impl Scan<'_> {
    fn extra(&mut self, path: &Path, watch: Watch) {
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => self.root.open_root_strict(parent),
            Some(_) => self.root.try_clone(),
            None => return,
        };
        // Gone, or no longer to be reached by this name: it is missed when compared.
        if let Ok(parent) = parent {
            self.entry(&parent, path.to_owned(), watch);
        }
    }

    /// Looks at a directory of settings for what counts in every place.
    fn also_place(&mut self, path: &Path) {
        let before: &Tree = self.before;
        let known = before
            .get(path)
            .zip(self.nodes.get(path))
            .filter(|(before, now)| self.stamping.directories && now.stamp.proves(&before.stamp));
        let names: Vec<(PathBuf, Watch)> = if known.is_some() {
            let inside = below(before, path).filter(|(below, _)| below.parent() == Some(path));
            inside.map(|(path, node)| (path.clone(), node.watch)).collect()
        } else {
            let Ok(directory) = self.root.open_root_strict(path) else { return };
            let watch = with_bareness(&directory, Watch::Place { bare: false });
            let names = watch.names().into_iter().map(OsStr::new);
            names.map(|name| (path.join(name), watch.child(name))).collect()
        };
        let is_new = |path: &Path| !self.nodes.contains_key(path);
        let names: Vec<_> = names.into_iter().filter(|(path, _)| is_new(path)).collect();
        if names.is_empty() {
            return;
        }
        let Ok(directory) = self.root.open_root_strict(path) else { return };
        for (path, watch) in names {
            self.entry(&directory, path, watch);
        }
    }

    /// Looks at the directory that a link in a place leads to as if it stood there.
    fn behind_door(&mut self, path: &Path, watch: Watch) {
        let place = Watch::Place { bare: false };
        self.extra(path, place);
        let Some(found) = self.nodes.get(path).map(|node| node.watch) else { return };
        let is_place = found.role() == Role::Place;
        if is_place && watch != Watch::Repositories {
            return;
        }
        let Ok(directory) = self.root.open_root_strict(path) else { return };
        let (names, complete) = watched_names(&directory, watch, Vec::new());
        self.dropped |= !complete;
        for name in names {
            self.entry(&directory, path.join(&name), watch.child(&name));
        }
    }

    /// Looks at one entry of an open directory.
    fn entry(&mut self, parent: &Root, path: PathBuf, watch: Watch) {
        let Some(name) = path.file_name().map(Path::new) else { return };
        if self.nodes.contains_key(&path) {
            return;
        }
        if self.nodes.len() >= MAX_NODES {
            self.dropped = true;
            return;
        }
        // Nothing runs from where nobody gets; a change of that changes the directory.
        let Ok(metadata) = parent.link_metadata(name) else { return };
        let stamp = Stamp::new(&metadata, self.now);
        match (metadata.kind, watch) {
            (FileKind::Directory, Watch::File(_)) => self.insert(path, watch, stamp, State::Other),
            (FileKind::Directory, _) => {
                let name = name.to_owned();
                self.directory(|| parent.open_root_strict(&name), path, watch, stamp);
            }
            (FileKind::Link, Watch::Place { .. } | Watch::Repositories) => {
                self.door(parent, path, watch, stamp);
            }
            // A file is no place.
            (_, Watch::Place { .. } | Watch::Repositories) => {}
            (FileKind::Link, _) => self.link(parent, path, watch, stamp),
            (FileKind::File, Watch::File(_) | Watch::Tree { .. } | Watch::DotGit) => {
                self.file(parent, path, watch, stamp, metadata.size, metadata.mode);
            }
            // A file where only a directory means something.
            (FileKind::File, _) => {}
            _ => self.insert(path, watch, stamp, State::Other),
        }
    }

    fn file(
        &mut self,
        parent: &Root,
        path: PathBuf,
        watch: Watch,
        stamp: Stamp,
        size: u64,
        mode: u32,
    ) {
        if self.stamping.files && self.take_over(&path, watch, stamp) {
            self.kept += size.min(MAX_FILE_BYTES);
            return;
        }
        self.fresh = true;
        let name = path.file_name().map_or(Path::new(""), Path::new);
        let room = MAX_KEPT_BYTES.saturating_sub(self.kept).min(MAX_FILE_BYTES);
        let state = match parent.read_strict(name, room) {
            Ok(bytes) => {
                self.kept += bytes.len() as u64;
                State::File { mode, bytes: bytes.into() }
            }
            Err(error) if error.is_not_found() => return,
            Err(_) if size > room => State::Large,
            Err(_) => State::Unreadable,
        };
        self.insert(path, watch, stamp, state);
    }

    fn link(&mut self, parent: &Root, path: PathBuf, watch: Watch, stamp: Stamp) {
        if self.stamping.files && self.take_over(&path, watch, stamp) {
            return;
        }
        let name = path.file_name().map_or(Path::new(""), Path::new);
        let state = parent.read_link(name).map_or(State::Unreadable, State::Link);
        self.fresh = true;
        self.insert(path, watch, stamp, state);
    }

    /// Looks at a link that stands where a directory would be a place.
    fn door(&mut self, parent: &Root, path: PathBuf, watch: Watch, stamp: Stamp) {
        let name = path.file_name().map_or(Path::new(""), Path::new);
        let before = self.before.get(&path).filter(|_| self.stamping.files);
        let known = match before.map(|node| (&node.state, stamp.proves(&node.stamp))) {
            Some((State::Door { target, .. }, true)) => Some(target.clone()),
            _ => None,
        };
        let target = match known.map_or_else(|| parent.read_link(name), Ok) {
            Ok(target) => target,
            Err(error) if error.is_not_found() => return,
            Err(_) => return self.insert(path, watch, stamp, State::Unreadable),
        };
        let leads = leads(self.root, &path, &target);
        if let Leads::Inside(behind) = &leads
            && !behind.as_os_str().is_empty()
        {
            self.behind_doors.push((behind.clone(), watch));
        }
        self.insert(path, watch, stamp, State::Door { target, leads });
    }

    /// Looks at a directory and at what is watched in it.
    fn directory(
        &mut self,
        open: impl FnOnce() -> Result<Root, Error>,
        path: PathBuf,
        watch: Watch,
        stamp: Stamp,
    ) {
        if watch.is_also_place(&path) {
            self.also_places.push(path.clone());
        }
        let known = self.known(&path, watch, stamp);
        if let Some((watch, _, complete)) =
            known.as_ref().filter(|(_, children, _)| children.is_empty())
        {
            let state = State::Directory { children: Vec::new(), complete: *complete };
            let born = self.before.get(&path).and_then(|node| node.born);
            self.nodes.insert(path, Node { watch: *watch, stamp, born, state });
            return;
        }
        let Ok(directory) = open() else {
            return self.insert(path, watch, stamp, State::Unreadable);
        };
        let before = known.as_ref().and_then(|_| self.before.get(&path));
        let born = before.map_or_else(|| directory.born(), |node| node.born);
        let (watch, names, complete) = if let Some(known) = known {
            known
        } else {
            let watch = with_bareness(&directory, watch);
            match self.names(&directory, &path, watch) {
                Some((names, complete)) => (watch, names, complete),
                None => return self.insert(path, watch, stamp, State::Crowded),
            }
        };
        let mut children = Vec::new();
        for name in names {
            let child = path.join(&name);
            self.entry(&directory, child.clone(), watch.child(&name));
            if self.nodes.contains_key(&child) {
                children.push(name);
            }
        }
        let state = State::Directory { children, complete };
        self.nodes.insert(path, Node { watch, stamp, born, state });
    }

    /// Returns what was watched in a directory whose names are certainly the same.
    fn known(
        &self,
        path: &Path,
        watch: Watch,
        stamp: Stamp,
    ) -> Option<(Watch, Vec<OsString>, bool)> {
        let node = self.before.get(path).filter(|_| self.stamping.directories)?;
        if !stamp.proves(&node.stamp) {
            return None;
        }
        let State::Directory { children, complete } = &node.state else { return None };
        same_kind(node.watch, watch).then(|| (node.watch, children.clone(), *complete))
    }

    /// Returns the names to look at in a directory that may have changed, and whether
    /// those are all; `None` if it counts as one thing.
    fn names(
        &mut self,
        directory: &Root,
        path: &Path,
        watch: Watch,
    ) -> Option<(Vec<OsString>, bool)> {
        let Watch::Tree { depth, .. } = watch else {
            return Some(watched_names(directory, watch, self.children_before(path)));
        };
        if depth == 0 {
            self.tree_left = MAX_TREE_ENTRIES;
        }
        let crowded = depth > MAX_TREE_DEPTH || self.nodes.len() > MAX_NODES / 2;
        let names = (!crowded).then(|| tree_names(directory, watch, self.tree_left))??;
        self.tree_left -= names.len();
        Some((names, true))
    }

    fn children_before(&self, path: &Path) -> Vec<OsString> {
        match self.before.get(path).map(|node| &node.state) {
            Some(State::Directory { children, .. }) => children.clone(),
            _ => Vec::new(),
        }
    }

    /// Keeps the earlier look at an entry that is certainly the same.
    fn take_over(&mut self, path: &Path, watch: Watch, stamp: Stamp) -> bool {
        let Some(node) = self.before.get(path) else { return false };
        if node.watch != watch || !stamp.proves(&node.stamp) {
            return false;
        }
        self.nodes.insert(path.to_owned(), node.clone());
        true
    }

    fn insert(&mut self, path: PathBuf, watch: Watch, stamp: Stamp, state: State) {
        self.nodes.insert(path, Node { watch, stamp, born: None, state });
    }
}

/// Whether a directory is bare is found when it is read.
fn same_kind(known: Watch, watch: Watch) -> bool {
    match (known, watch) {
        (Watch::Top { .. }, Watch::Top { .. }) | (Watch::Place { .. }, Watch::Place { .. }) => true,
        (known, watch) => known == watch,
    }
}
