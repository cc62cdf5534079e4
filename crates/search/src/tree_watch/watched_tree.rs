//! Watched directories, their paths and rules, and the paths that events are about.
//!
//! An event names a directory by its number, and the directory may have got another path since the walk. Where a
//! directory has moved, its parents have events of their own: it is forgotten with all below it, and the new place is
//! walked. A directory that one walk finds at two places was moved meanwhile; both places are looked at again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use carrel_domain::sync;
use carrel_fsroot::{Directory, Root, WatchEvent, WatchId, Watcher};

use crate::ignore_rules::{REPOSITORY, REPOSITORY_RULES, Rules, is_rule_file};
use crate::node::includes;
use crate::scope::Scope;

/// Directories of one tree that are watched, so that other programs have watches too: 192,000 is a usual limit.
const MAX_DIRECTORIES: usize = 16_384;

/// Trees of a process that are watched; the system's usual limit for all programs of a user is 128.
const MAX_TREES: usize = 32;

/// Repositories without rules of their own, in which these are looked for each time.
const MAX_BARE: usize = 64;

static TREES: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
pub(crate) struct WatchedTree {
    watcher: Watcher,
    directories: Mutex<Directories>,
    _counted: Counted,
}

#[derive(Debug, Default)]
struct Directories {
    by_id: HashMap<WatchId, PathBuf>,
    by_path: BTreeMap<PathBuf, Watched>,
    /// The tops of repositories that have no directory for rules of their own.
    bare: BTreeSet<PathBuf>,
    /// Places of directories that moved during a walk.
    moved: Vec<PathBuf>,
    /// The reason for which a directory could not be watched.
    failure: Option<String>,
}

#[derive(Debug)]
struct Watched {
    id: WatchId,
    role: Role,
}

#[derive(Debug)]
enum Role {
    /// Its entries are listed by these rules.
    Listed(Option<Arc<Rules>>),
    /// A walk did not get as far as its rules.
    Unknown,
    /// It holds the rules of a repository, the top of which this is.
    RulesOf(PathBuf),
}

/// A place among [`MAX_TREES`].
#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> Option<Self> {
        let before = TREES.fetch_add(1, Ordering::Relaxed);
        let counted = Self;
        (before < MAX_TREES).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        TREES.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WatchedTree {
    /// Watches nothing yet. The error is a reason in words.
    pub(crate) fn new() -> Result<Self, String> {
        let counted = Counted::new().ok_or_else(|| format!("{MAX_TREES} trees are watched"))?;
        let watcher = Watcher::new().map_err(|error| error.to_string())?;
        Ok(Self { watcher, directories: Mutex::default(), _counted: counted })
    }

    /// Watches a directory that is about to be listed.
    pub(crate) fn add(&self, path: &Path, directory: &Directory) {
        self.watch(path, directory, Role::Unknown);
    }

    /// Watches the rules of a repository, which are about to be read.
    pub(crate) fn add_repository(&self, top: &Path, directory: &Directory) {
        let (path, _) = REPOSITORY_RULES;
        if let Ok(rules) = directory.directory(Path::new(path)) {
            self.watch(&top.join(path), &rules, Role::RulesOf(top.to_owned()));
            return;
        }
        let mut all = sync::lock(&self.directories);
        all.bare.insert(top.to_owned());
        if all.bare.len() > MAX_BARE {
            all.failure = Some(format!("it has more than {MAX_BARE} repositories of this kind"));
        }
    }

    /// Notes the rules of a directory that was listed.
    pub(crate) fn set_rules(&self, path: &Path, rules: Option<&Arc<Rules>>) {
        if let Some(watched) = sync::lock(&self.directories).by_path.get_mut(path) {
            watched.role = Role::Listed(rules.cloned());
        }
    }

    fn watch(&self, path: &Path, directory: &Directory, role: Role) {
        let mut all = sync::lock(&self.directories);
        if all.failure.is_some() {
            return;
        }
        if all.by_path.len() >= MAX_DIRECTORIES {
            all.failure = Some(format!("it has more than {MAX_DIRECTORIES} directories"));
            return;
        }
        let id = match self.watcher.add(directory) {
            Ok(id) => id,
            Err(error) => {
                all.failure = Some(reason(&error));
                return;
            }
        };
        if let Some(other) = all.by_id.insert(id, path.to_owned())
            && other != path
        {
            all.by_path.remove(&other);
            all.moved.extend([other, path.to_owned()]);
        }
        let before = all.by_path.insert(path.to_owned(), Watched { id, role });
        if let Some(before) = before.filter(|before| before.id != id) {
            all.by_id.remove(&before.id);
            self.watcher.remove(before.id);
        }
    }

    /// Returns the path and the rules of a directory; none if it is not watched.
    pub(crate) fn rules(&self, path: &Path) -> Option<(PathBuf, Option<Arc<Rules>>)> {
        let all = sync::lock(&self.directories);
        let (path, watched) = all.by_path.get_key_value(path)?;
        match &watched.role {
            Role::Listed(rules) => Some((path.clone(), rules.clone())),
            Role::Unknown | Role::RulesOf(_) => None,
        }
    }

    /// Returns whether nothing has happened since events were taken last.
    pub(crate) fn is_quiet(&self) -> bool {
        self.watcher.is_empty()
    }

    /// Takes the places that moved during a walk, and the reason for which not all could be watched.
    pub(crate) fn take_walk(&self) -> (Vec<PathBuf>, Option<String>) {
        let mut all = sync::lock(&self.directories);
        (std::mem::take(&mut all.moved), all.failure.take())
    }

    /// Takes the events that are queued, and returns the places to look at again; none if events were lost.
    pub(crate) fn take_changes(
        &self,
        root: &Root,
    ) -> Result<Option<BTreeSet<PathBuf>>, carrel_fsroot::Error> {
        let events = self.watcher.take()?;
        let mut all = sync::lock(&self.directories);
        let mut changed = BTreeSet::new();
        let scope = Scope::whole(root);
        for event in events {
            let Ok(place) = all.place_of(&event, &scope) else { return Ok(None) };
            let Some(place) = place else { continue };
            if place.is_tree {
                all.forget(&place.path, &self.watcher);
            }
            changed.insert(place.path);
        }
        for top in all.found_rules(root) {
            all.forget(&top, &self.watcher);
            changed.insert(top);
        }
        Ok(Some(changed))
    }
}

/// The place of an event.
struct Place {
    path: PathBuf,
    /// All below it may be different too.
    is_tree: bool,
}

/// Events were lost.
struct Lost;

impl Directories {
    /// Returns the place that an event is about, if it concerns files that are listed.
    fn place_of(&self, event: &WatchEvent, scope: &Scope<'_>) -> Result<Option<Place>, Lost> {
        let tree = |path: &Path| Ok(Some(Place { path: path.to_owned(), is_tree: true }));
        let (id, entry) = match event {
            WatchEvent::Lost => return Err(Lost),
            WatchEvent::Ended(id) | WatchEvent::Directory(id) => (id, None),
            WatchEvent::Entry { directory, name, is_directory, is_other } => {
                (directory, Some((name, *is_directory, *is_other)))
            }
        };
        // A number that is not known was forgotten, and its place is looked at for another reason.
        let Some(path) = self.by_id.get(id) else { return Ok(None) };
        let Some(watched) = self.by_path.get(path) else { return Ok(None) };
        let (rules, (name, is_directory, is_other)) = match (&watched.role, entry) {
            (Role::RulesOf(_), Some((name, ..))) if name != REPOSITORY_RULES.1 => return Ok(None),
            (Role::RulesOf(top), _) => return tree(top),
            (Role::Unknown, _) | (Role::Listed(_), None) => return tree(path),
            (Role::Listed(rules), Some(entry)) => (rules, entry),
        };
        if name == REPOSITORY {
            return if is_other { tree(path) } else { Ok(None) };
        }
        if is_rule_file(name) {
            return tree(path);
        }
        let path = path.join(name);
        let is_included = includes(scope, rules.as_deref(), &path, is_directory);
        Ok(is_included.then_some(Place { path, is_tree: is_directory }))
    }

    /// Forgets a directory and all below it.
    fn forget(&mut self, place: &Path, watcher: &Watcher) {
        let from = (Bound::Included(place), Bound::Unbounded);
        let below = self.by_path.range::<Path, _>(from).map(|(path, _)| path);
        let below: Vec<_> = below.take_while(|path| path.starts_with(place)).cloned().collect();
        for path in below {
            if let Some(watched) = self.by_path.remove(&path) {
                self.by_id.remove(&watched.id);
                watcher.remove(watched.id);
            }
        }
        self.bare.retain(|top| !top.starts_with(place));
    }

    /// Returns the tops of repositories that have a directory for rules now.
    fn found_rules(&self, root: &Root) -> Vec<PathBuf> {
        if self.bare.is_empty() {
            return Vec::new();
        }
        let Ok(top) = root.directory(Path::new("")) else { return Vec::new() };
        let has_rules =
            |repository: &&PathBuf| top.directory(&repository.join(REPOSITORY_RULES.0)).is_ok();
        self.bare.iter().filter(has_rules).cloned().collect()
    }
}

fn reason(error: &carrel_fsroot::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.problem().to_string(), ToString::to_string)
}
