//! Directories of a walk and the entries that the walk continues with.
//!
//! A [`Node`] keeps its directory open while entries of it are queued, so that files are opened by
//! name relative to it and a rename of a parent cannot lead the walk elsewhere. Below 16 levels the
//! descriptor is closed and opened again for each batch, from the nearest open ancestor, so that
//! depth alone never exhausts descriptors.
//!
//! A directory is listed once, filtered by the scope, the ignore rules and the path filter of the
//! search, and sorted by name. Entries that vanish or change their kind between listing and use are
//! skipped silently, since a build may run at the same time; every other error is reported.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Directory, Entry, FileKind, Metadata, Problem};
use ignore::Match;

use crate::ignore_rules::{PresentRuleFiles, Rules};
use crate::read_failure::ReadFailures;
use crate::scope::{Scope, last_name};

/// Depth below the scope down to which directories are kept open.
const MAX_OPEN_DEPTH: usize = 16;

/// Bounds the entries of one directory, which are sorted in memory.
const MAX_DIRECTORY_ENTRIES: usize = 1 << 20;

/// Bounds the path that is opened in one step, half of `PATH_MAX`.
const MAX_STEP_BYTES: usize = 2048;

#[derive(Debug)]
pub(crate) struct Node {
    /// Relative to the workspace's root.
    path: PathBuf,
    parent: Option<Arc<Node>>,
    depth: usize,
    open: Option<Directory>,
    rules: Option<Arc<Rules>>,
}

/// A listed directory: the entries to visit or enter, sorted by name.
#[derive(Debug)]
pub(crate) struct ExpandedDirectory {
    pub(crate) node: Arc<Node>,
    pub(crate) entries: Vec<Entry>,
}

/// The selection of a search, applied after the scope and the ignore rules.
pub(crate) trait PathFilter: Sync {
    /// Returns true if a file is visited, or a directory entered.
    fn accepts(&self, path: &Path, kind: FileKind) -> bool;

    /// Notes a directory that is about to be listed.
    fn opened(&self, _path: &Path, _directory: &Directory) {}

    /// Notes that a directory is the top of a repository, whose own rules are about to be read.
    fn found_repository(&self, _path: &Path, _directory: &Directory) {}

    /// Notes the rules for the entries of a directory.
    fn read_rules(&self, _path: &Path, _rules: Option<&Arc<Rules>>) {}
}

impl Node {
    /// Lists the directory of a scope with the rules of all directories above it.
    pub(crate) fn root(
        scope: &Scope<'_>,
        path: PathBuf,
        directory: Directory,
        filter: &impl PathFilter,
        unreadable: &mut ReadFailures,
    ) -> Result<ExpandedDirectory, carrel_fsroot::Error> {
        let rules = if scope.ignored { None } else { rules_above(scope, &path, unreadable)? };
        Self::list(scope, directory, path, None, rules.as_ref(), filter, unreadable)
    }

    /// Opens and lists a child directory; `None` if it vanished or could not be read.
    pub(crate) fn enter(
        self: &Arc<Self>,
        name: &OsStr,
        scope: &Scope<'_>,
        filter: &impl PathFilter,
        unreadable: &mut ReadFailures,
    ) -> Option<ExpandedDirectory> {
        let path = self.path.join(name);
        let opened = self.with_directory(|directory| directory.directory(Path::new(name)));
        let expanded = opened.and_then(|directory| {
            let rules = self.rules.as_ref();
            let parent = Some(Arc::clone(self));
            Self::list(scope, directory, path.clone(), parent, rules, filter, unreadable)
        });
        expanded.map_err(|error| unreadable.add_error(path, &error)).ok()
    }

    fn list(
        scope: &Scope<'_>,
        directory: Directory,
        path: PathBuf,
        parent: Option<Arc<Self>>,
        rules: Option<&Arc<Rules>>,
        filter: &impl PathFilter,
        unreadable: &mut ReadFailures,
    ) -> Result<ExpandedDirectory, carrel_fsroot::Error> {
        filter.opened(&path, &directory);
        let (mut entries, all) = directory.entries(MAX_DIRECTORY_ENTRIES)?;
        if !all {
            let reason = format!("more than {MAX_DIRECTORY_ENTRIES} entries; the rest is skipped");
            unreadable.add(path.clone(), reason);
        }
        let rules = if scope.ignored {
            None
        } else {
            let mut present = PresentRuleFiles::default();
            for entry in &entries {
                present.note(&entry.name);
            }
            if present.has_repository() {
                filter.found_repository(&path, &directory);
            }
            Rules::read(rules, &directory, &path, present, unreadable)
        };
        filter.read_rules(&path, rules.as_ref());
        filter_entries(&mut entries, scope, &path, rules.as_deref(), filter);
        let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
        let open = (depth < MAX_OPEN_DEPTH).then_some(directory);
        let node = Arc::new(Self { path, parent, depth, open, rules });
        Ok(ExpandedDirectory { node, entries })
    }

    pub(crate) fn path_of(&self, entry: &Entry) -> PathBuf {
        self.path.join(&entry.name)
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn open_file(&self, name: &OsStr) -> Result<(File, Metadata), carrel_fsroot::Error> {
        self.with_directory(|directory| directory.open_file(Path::new(name)))
    }

    pub(crate) fn with_directory<T>(
        &self,
        act: impl FnOnce(&Directory) -> Result<T, carrel_fsroot::Error>,
    ) -> Result<T, carrel_fsroot::Error> {
        match &self.open {
            Some(directory) => act(directory),
            None => act(&self.reopen()?),
        }
    }

    /// Opens the directory again, from its nearest open ancestor.
    fn reopen(&self) -> Result<Directory, carrel_fsroot::Error> {
        let mut names = vec![last_name(&self.path)];
        let mut above = self.parent.as_deref();
        while let Some(node) = above {
            if let Some(directory) = &node.open {
                return descend(directory, &names);
            }
            names.push(last_name(&node.path));
            above = node.parent.as_deref();
        }
        unreachable!("the first directory of a walk is always open")
    }
}

/// Opens a descendant in steps of bounded length. `names` is in reverse order.
fn descend(from: &Directory, names: &[&OsStr]) -> Result<Directory, carrel_fsroot::Error> {
    let mut reached = None;
    let mut step = PathBuf::new();
    for name in names.iter().rev() {
        step.push(name);
        if step.as_os_str().len() > MAX_STEP_BYTES {
            reached = Some(reached.as_ref().unwrap_or(from).directory(&step)?);
            step.clear();
        }
    }
    // An empty step reopens the directory that was reached.
    reached.as_ref().unwrap_or(from).directory(&step)
}

/// Reads the rules of the directories from the workspace's root to the parent of `path`.
fn rules_above(
    scope: &Scope<'_>,
    path: &Path,
    unreadable: &mut ReadFailures,
) -> Result<Option<Arc<Rules>>, carrel_fsroot::Error> {
    let mut rules = None;
    let mut directory = scope.root.directory(Path::new(""))?;
    let mut base = PathBuf::new();
    for name in path {
        rules =
            Rules::read(rules.as_ref(), &directory, &base, PresentRuleFiles::unknown(), unreadable);
        // A directory that vanished has no rules; the scope's own directory is already open.
        let Ok(next) = directory.directory(Path::new(name)) else { break };
        directory = next;
        base.push(name);
    }
    Ok(rules)
}

/// Retains the entries that the scope, the rules and the filter include, sorted by name.
fn filter_entries(
    entries: &mut Vec<Entry>,
    scope: &Scope<'_>,
    directory: &Path,
    rules: Option<&Rules>,
    filter: &impl PathFilter,
) {
    let mut path = directory.join("x");
    entries.retain(|entry| {
        path.set_file_name(&entry.name);
        let is_directory = entry.kind == FileKind::Directory;
        includes(scope, rules, &path, is_directory) && filter.accepts(&path, entry.kind)
    });
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    // readdir may return a name twice while entries are renamed.
    entries.dedup_by(|a, b| a.name == b.name);
}

/// Returns true if a scope and the rules of a directory include an entry of it.
pub(crate) fn includes(
    scope: &Scope<'_>,
    rules: Option<&Rules>,
    path: &Path,
    is_directory: bool,
) -> bool {
    let name = last_name(path);
    if scope.always_skips(name) {
        return false;
    }
    match rules.map_or(Match::None, |rules| rules.matched(path, is_directory)) {
        Match::None => !scope.hides_by_default(name),
        Match::Whitelist(()) => true,
        Match::Ignore(()) => false,
    }
}

/// Returns true if an entry vanished or changed its kind since it was listed.
pub(crate) fn vanished(problem: Problem) -> bool {
    match problem {
        Problem::NotFound
        | Problem::NotADirectory
        | Problem::IsADirectory
        | Problem::Link
        | Problem::LinkLoop
        | Problem::NotRegular(_) => true,
        Problem::Escapes(_)
        | Problem::Sensitive
        | Problem::Nul
        | Problem::NoName
        | Problem::Exists
        | Problem::NotEmpty
        | Problem::NameTooLong
        | Problem::TooLarge { .. }
        | Problem::CrossesMount
        | Problem::PermissionDenied
        | Problem::DiskFull
        | Problem::Contended
        | Problem::KernelTooOld
        | Problem::Io => false,
    }
}
