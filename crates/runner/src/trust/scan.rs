//! Takes a snapshot of the watched entries, reading only what may have changed.
//!
//! The walk starts at the workspace with [`WatchRule::WorkspaceRoot`] and goes down by the rules. For
//! each entry it makes one `statx`. If the stamp proves that the entry was not changed since the earlier
//! snapshot, contents and names are taken from there; otherwise the directory is listed or the file
//! read. References of trusted files come first, because their rule goes before the rule for their
//! path, and directories behind links last, because they may be watched in their own right.
//!
//! Everything is bounded, since a command decides how much there is: a file of 1 MiB, 16 MiB in all,
//! 64 Ki entries, 64 levels of directories. Beyond the bounds a snapshot is marked incomplete, and the report of the check names
//! the directory in `unchecked`. Under the policy `restore` the runner turns that into an error of the
//! command, since the report would be a false all-clear.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use carrel_fsroot::{Error, FileKind, Root};

use super::directory_link::resolve;
use super::snapshot::{EntryState, LinkDestination, Snapshot, Stamp, WatchedEntry};
use super::stamp_reliability::StampReliability;
use super::watch_rules::{MAX_TREE_DEPTH, Role, WatchRule};
use super::watched_names::{tree_names, watched_names, with_bareness};

/// The largest file that is kept and can be restored.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The most memory for the contents of one workspace's watched files.
const MAX_KEPT_BYTES: u64 = 16 * 1024 * 1024;

/// The most entries of a directory that is watched as a whole, all below it included. A larger one is
/// recorded as [`EntryState::TooManyEntries`].
const MAX_TREE_ENTRIES: usize = 512;

/// The most watched entries of a workspace. Directories that are watched as a whole may use half of
/// them, so that they cannot displace repositories.
const MAX_ENTRIES: usize = 64 * 1024;

/// The most components of a path at which a directory is still searched. A scan recurses, and a command
/// can nest `.git/modules/a/modules/a` until the stack overflows, which would abort the server; in a
/// debug build 600 levels do.
const MAX_DEPTH: usize = 64;

/// A scan in progress, and its result.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    root: &'a Root,
    before: &'a Snapshot,
    now: SystemTime,
    reliability: StampReliability,
    kept_bytes: u64,
    /// The entries that the present directory watched as a whole may still have.
    tree_entries_left: usize,
    /// Set if there was more than the bounds allow.
    is_truncated: bool,
    /// Destinations of links, not yet scanned.
    behind_links: Vec<Reference>,
    /// Directories with another purpose that are project directories as well, not yet scanned as such.
    also_projects: Vec<PathBuf>,
    pub(super) entries: Snapshot,
    /// Set if any contents were read, so that references may have changed.
    pub(super) has_read: bool,
}

/// A path that is watched because a trusted file refers to it, with its rule.
pub(super) type Reference = (PathBuf, WatchRule);

/// Takes a snapshot, with an earlier one for what is provably the same.
pub(super) fn scan<'a>(
    root: &'a Root,
    before: &'a Snapshot,
    references: &[Reference],
) -> Result<Scan<'a>, Error> {
    let mut scan = Scan {
        root,
        before,
        now: SystemTime::now(),
        reliability: StampReliability::of(root),
        kept_bytes: 0,
        tree_entries_left: 0,
        is_truncated: false,
        behind_links: Vec::new(),
        also_projects: Vec::new(),
        entries: Snapshot::new(),
        has_read: false,
    };
    let stamp = Stamp::new(&root.own_metadata()?, scan.now);
    // First: the rule of a reference goes before the rule for its path.
    for (path, rule) in references {
        scan.reference(path, *rule);
    }
    let open = || root.try_clone();
    scan.directory(open, PathBuf::new(), WatchRule::WorkspaceRoot { bare: false }, stamp);
    for path in std::mem::take(&mut scan.also_projects) {
        scan.also_project(&path);
    }
    while let Some((path, rule)) = scan.behind_links.pop() {
        scan.behind_link(&path, rule);
    }
    if scan.is_truncated
        && let Some(top) = scan.entries.get_mut(Path::new(""))
        && let EntryState::Directory { complete, .. } = &mut top.state
    {
        *complete = false;
    }
    Ok(scan)
}

/// Returns whether stamps prove that every entry of a snapshot is unchanged and that there are no others.
///
/// A directory with the same stamp has the same names. There is no link on the way to an entry: the
/// directories above it are entries too, and still the same.
pub(super) fn is_provably_unchanged(root: &Root, before: &Snapshot) -> bool {
    let now = SystemTime::now();
    let reliability = StampReliability::of(root);
    before.iter().all(|(path, entry)| {
        let has_proof = match entry.state {
            EntryState::Directory { complete, .. } => complete && reliability.directories,
            EntryState::File { .. } | EntryState::Link(_) => reliability.files,
            EntryState::DirectoryLink { ref target, destination: ref led } => {
                // The directory behind it may change without the link.
                let is_inside = matches!(led, LinkDestination::Inside(_));
                reliability.files && !is_inside && resolve(root, path, target) == *led
            }
            EntryState::TooManyEntries
            | EntryState::TooLarge
            | EntryState::SpecialFile
            | EntryState::Unreadable => false,
        };
        let metadata = || match path.file_name() {
            None => root.own_metadata(),
            Some(_) => root.link_metadata(path),
        };
        has_proof
            && metadata()
                .is_ok_and(|found| Stamp::new(&found, now).proves_unchanged_since(&entry.stamp))
    })
}

impl<'a> Scan<'a> {
    fn reference(&mut self, path: &Path, rule: WatchRule) {
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => self.root.open_root_strict(parent),
            Some(_) => self.root.try_clone(),
            None => return,
        };
        // The rule may be that of an entry deep in a tree, but what it refers to is a tree of its own.
        self.tree_entries_left = MAX_TREE_ENTRIES;
        // If it is gone, the diff reports it as removed.
        let Ok(parent) = parent else { return };
        // No tool reads a directory in place of a file, and it may be watched for its own path.
        if matches!(rule, WatchRule::File(_)) && is_directory(&parent, path) {
            return;
        }
        self.entry(&parent, path.to_owned(), rule);
    }

    /// Scans a directory with another purpose for the names of a project directory.
    fn also_project(&mut self, path: &Path) {
        let Ok(directory) = self.root.open_root_strict(path) else { return };
        let rule = with_bareness(&directory, WatchRule::Project { bare: false });
        for name in rule.table_names() {
            self.entry(&directory, path.join(name), rule.child(OsStr::new(name)));
        }
    }

    /// Scans the destination of a link as if it stood at the link's path.
    fn behind_link(&mut self, path: &Path, rule: WatchRule) {
        let project = WatchRule::Project { bare: false };
        self.reference(path, project);
        let Some(found) = self.entries.get(path).map(|entry| entry.rule) else { return };
        let is_project = found.role() == Role::Project;
        if is_project && !matches!(rule, WatchRule::Repositories { .. }) {
            return;
        }
        let Ok(directory) = self.root.open_root_strict(path) else { return };
        let rule = with_bareness(&directory, rule);
        let (names, complete) = watched_names(&directory, rule, Vec::new());
        self.is_truncated |= !complete;
        for name in names {
            self.entry(&directory, path.join(&name), rule.child(&name));
        }
    }

    fn entry(&mut self, parent: &Root, path: PathBuf, rule: WatchRule) {
        let Some(name) = path.file_name().map(Path::new) else { return };
        if self.entries.contains_key(&path) {
            return;
        }
        if self.entries.len() >= MAX_ENTRIES {
            self.is_truncated = true;
            return;
        }
        // An entry that cannot be looked up runs nothing; when that changes, the directory's stamp does.
        let Ok(metadata) = parent.link_metadata(name) else { return };
        let stamp = Stamp::new(&metadata, self.now);
        match (metadata.kind, rule) {
            (FileKind::Directory, WatchRule::File(_)) => {
                self.insert(path, rule, stamp, EntryState::SpecialFile);
            }
            (FileKind::Directory, _) => {
                let name = name.to_owned();
                self.directory(|| parent.open_root_strict(&name), path, rule, stamp);
            }
            (FileKind::Link, WatchRule::Project { .. } | WatchRule::Repositories { .. }) => {
                self.directory_link(parent, path, rule, stamp);
            }
            // A file where only a project directory is watched.
            (_, WatchRule::Project { .. } | WatchRule::Repositories { .. }) => {}
            (FileKind::Link, _) => self.link(parent, path, rule, stamp),
            (FileKind::File, WatchRule::File(_) | WatchRule::Tree { .. } | WatchRule::DotGit) => {
                self.file(parent, path, rule, stamp);
            }
            // A file where only a directory is watched.
            (FileKind::File, _) => {}
            _ => self.insert(path, rule, stamp, EntryState::SpecialFile),
        }
    }

    fn file(&mut self, parent: &Root, path: PathBuf, rule: WatchRule, stamp: Stamp) {
        if self.reliability.files && self.reuse(&path, rule, stamp) {
            self.kept_bytes += stamp.size.min(MAX_FILE_BYTES);
            return;
        }
        self.has_read = true;
        let name = path.file_name().map_or(Path::new(""), Path::new);
        let limit = MAX_KEPT_BYTES.saturating_sub(self.kept_bytes).min(MAX_FILE_BYTES);
        let state = match parent.read_strict(name, limit) {
            Ok(bytes) => {
                self.kept_bytes += bytes.len() as u64;
                EntryState::File { mode: stamp.mode, bytes: bytes.into() }
            }
            Err(error) if error.is_not_found() => return,
            Err(_) if stamp.size > limit => EntryState::TooLarge,
            Err(_) => EntryState::Unreadable,
        };
        self.insert(path, rule, stamp, state);
    }

    fn link(&mut self, parent: &Root, path: PathBuf, rule: WatchRule, stamp: Stamp) {
        if self.reliability.files && self.reuse(&path, rule, stamp) {
            return;
        }
        let name = path.file_name().map_or(Path::new(""), Path::new);
        let state = parent.read_link(name).map_or(EntryState::Unreadable, EntryState::Link);
        self.has_read = true;
        self.insert(path, rule, stamp, state);
    }

    /// Scans a link that stands where a project directory is watched.
    fn directory_link(&mut self, parent: &Root, path: PathBuf, rule: WatchRule, stamp: Stamp) {
        let name = path.file_name().map_or(Path::new(""), Path::new);
        let target = match parent.read_link(name) {
            Ok(target) => target,
            Err(error) if error.is_not_found() => return,
            Err(_) => return self.insert(path, rule, stamp, EntryState::Unreadable),
        };
        let destination = resolve(self.root, &path, &target);
        if let LinkDestination::Inside(behind) = &destination
            && !behind.as_os_str().is_empty()
        {
            self.behind_links.push((behind.clone(), rule));
        }
        self.insert(path, rule, stamp, EntryState::DirectoryLink { target, destination });
    }

    /// Scans a directory and what is watched in it.
    fn directory(
        &mut self,
        open: impl FnOnce() -> Result<Root, Error>,
        path: PathBuf,
        rule: WatchRule,
        stamp: Stamp,
    ) {
        if path.components().nth(MAX_DEPTH).is_some() {
            let state = EntryState::Directory { children: Vec::new(), complete: false };
            return self.insert(path, rule, stamp, state);
        }
        if rule.is_also_project(&path) {
            self.also_projects.push(path.clone());
        }
        if matches!(rule, WatchRule::Tree { depth: 0, .. }) {
            self.tree_entries_left = MAX_TREE_ENTRIES;
        }
        let known = self.known(&path, rule, stamp);
        if let Some(entry) = known.filter(|entry| entry.children().is_empty()) {
            self.entries.insert(path, WatchedEntry { stamp, ..entry.clone() });
            return;
        }
        let Ok(directory) = open() else {
            return self.insert(path, rule, stamp, EntryState::Unreadable);
        };
        let created_at = known.map_or_else(|| directory.birth_time(), |entry| entry.created_at);
        let (rule, names, complete) = if let Some(entry) = known {
            (entry.rule, entry.children().to_vec(), !entry.is_incomplete())
        } else {
            let rule = with_bareness(&directory, rule);
            match self.names(&directory, &path, rule) {
                Some((names, complete)) => (rule, names, complete),
                None => return self.insert(path, rule, stamp, EntryState::TooManyEntries),
            }
        };
        if !self.fits_tree(rule, names.len()) {
            return self.insert(path, rule, stamp, EntryState::TooManyEntries);
        }
        let mut children = Vec::new();
        for name in names {
            let child = path.join(&name);
            self.entry(&directory, child.clone(), rule.child(&name));
            if self.entries.contains_key(&child) {
                children.push(name);
            }
        }
        let state = EntryState::Directory { children, complete };
        self.entries.insert(path, WatchedEntry { rule, stamp, created_at, state });
    }

    /// Returns a directory of the earlier snapshot, if its stamp proves that it has the same names.
    fn known(&self, path: &Path, rule: WatchRule, stamp: Stamp) -> Option<&'a WatchedEntry> {
        let entry = self.before.get(path).filter(|_| self.reliability.directories)?;
        let is_same = stamp.proves_unchanged_since(&entry.stamp)
            && entry.is_directory()
            && same_kind(entry.rule, rule);
        is_same.then_some(entry)
    }

    /// Returns the names to scan in a directory that may have changed, and whether they are all that its
    /// rule watches; `None` for [`EntryState::TooManyEntries`].
    fn names(
        &self,
        directory: &Root,
        path: &Path,
        rule: WatchRule,
    ) -> Option<(Vec<OsString>, bool)> {
        let WatchRule::Tree { depth, .. } = rule else {
            let before = self.before.get(path).map_or(&[][..], WatchedEntry::children);
            return Some(watched_names(directory, rule, before.to_vec()));
        };
        let is_too_large = depth > MAX_TREE_DEPTH || self.entries.len() > MAX_ENTRIES / 2;
        let names = (!is_too_large).then(|| tree_names(directory, rule))??;
        Some((names, true))
    }

    /// Counts the entries of a directory against the bound of its tree; `false` if there are too many.
    ///
    /// Those of a directory that is known count as well, so that the result does not depend on which
    /// directories of the tree were changed.
    fn fits_tree(&mut self, rule: WatchRule, entries: usize) -> bool {
        if !matches!(rule, WatchRule::Tree { .. }) {
            return true;
        }
        let left = self.tree_entries_left.checked_sub(entries);
        self.tree_entries_left = left.unwrap_or(self.tree_entries_left);
        left.is_some()
    }

    /// Takes an entry from the earlier snapshot, if its stamp proves that it is the same.
    fn reuse(&mut self, path: &Path, rule: WatchRule, stamp: Stamp) -> bool {
        let Some(entry) = self.before.get(path) else { return false };
        if entry.rule != rule || !stamp.proves_unchanged_since(&entry.stamp) {
            return false;
        }
        self.entries.insert(path.to_owned(), entry.clone());
        true
    }

    fn insert(&mut self, path: PathBuf, rule: WatchRule, stamp: Stamp, state: EntryState) {
        self.entries.insert(path, WatchedEntry { rule, stamp, created_at: None, state });
    }
}

fn is_directory(parent: &Root, path: &Path) -> bool {
    let name = path.file_name().map_or(Path::new(""), Path::new);
    parent.link_metadata(name).is_ok_and(|metadata| metadata.kind == FileKind::Directory)
}

/// Compares rules except for `bare`, which is only known after a directory was read.
fn same_kind(known: WatchRule, rule: WatchRule) -> bool {
    match (known, rule) {
        (WatchRule::WorkspaceRoot { .. }, WatchRule::WorkspaceRoot { .. })
        | (WatchRule::Project { .. }, WatchRule::Project { .. })
        | (WatchRule::Repositories { .. }, WatchRule::Repositories { .. }) => true,
        (known, rule) => known == rule,
    }
}
