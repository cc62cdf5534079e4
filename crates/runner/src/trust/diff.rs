//! The differences between a baseline and a later snapshot, each with its remedy.
//!
//! Pure: two snapshots in, a list out. Paths are visited in order, a directory before its entries. When
//! a directory differs as a whole, its remedy covers everything below, which is then skipped.
//!
//! The remedy follows the role of an entry. A hook, settings file or configuration entry that is new
//! goes to the quarantine; one that was changed or removed is restored. A project directory that
//! vanished is no difference, because nothing in it runs any more. Three changes are accepted and only
//! reported: a git directory with hooks or sensitive configuration that vanished from a project
//! directory that is still there; settings that came with a repository that is new itself, because git
//! would report them as deleted otherwise; and a directory that has grown beyond the bounds of a scan.
//!
//! Links that stand where a project directory is watched need a second comparison. A command could
//! point `repos/a` at an unwatched directory of its own with hooks in it. So what is behind a new link
//! is compared with what was trusted at the link's path; if it differs, the *link* is undone and the
//! directory behind it left alone, since it may be an ordinary source directory. Directories that are
//! in the snapshot only because a new link leads to them are therefore left out of the first
//! comparison.

use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::directory_link::{is_project_location, rebased};
use super::git_config_diff::Config;
use super::references::{depth_of, git_directory};
use super::report::ChangeKind;
use super::snapshot::{EntryState, LinkDestination, Snapshot, WatchedEntry};
use super::watch_rules::{Role, WatchRule};

/// An entry that differs from the baseline, with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: PathBuf,
    pub(super) remedy: Remedy,
    /// The changes to report; several for a git configuration.
    pub(super) notes: Vec<(ChangeKind, String)>,
}

/// The way in which a difference is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    Quarantine,
    /// The entry is moved into the quarantine, and the trusted one written. Of a directory that something
    /// else replaced, only the watched entries are written, since the baseline has no others. A project
    /// or git directory is not written but looked for and renamed back.
    Restore,
    /// The sensitive entries of a git configuration are rewritten; the rest of the file stays.
    RewriteConfig,
    /// Nothing is done, for this reason, and the new state becomes the baseline.
    Accept(&'static str),
}

/// The policy for settings in a repository that seems to be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewRepositoryPolicy {
    /// Settings that come with a clone are accepted.
    AcceptSettings,
    /// They go to the quarantine: it cannot be told whether the repository is really new.
    QuarantineSettings,
}

/// Lists the differences in the order of paths. `top` is the absolute path of the workspace.
pub(super) fn differences(
    top: &Path,
    old: &Snapshot,
    new: &Snapshot,
    new_repository_policy: NewRepositoryPolicy,
) -> Vec<Difference> {
    let comparer = Comparer { top, old, new, new_repository_policy };
    let (by_new, by_known) = comparer.directories_behind_links();
    let is_compared = |path: &&PathBuf| {
        !comparer.is_watched_only_in(path, &by_new) || comparer.is_watched_only_in(path, &by_known)
    };
    comparer.all(old.keys().chain(new.keys()).filter(is_compared).collect())
}

enum PathComparison {
    /// Equivalent; what is below it is compared.
    Same,
    /// Nothing to report here or below.
    SkipSubtree,
    /// Different as a whole: the remedy covers everything below, which is not compared.
    SubtreeDiffers(Difference),
    /// Different; what is below it is compared all the same.
    EntryDiffers(Difference),
}

struct Comparer<'a> {
    top: &'a Path,
    old: &'a Snapshot,
    new: &'a Snapshot,
    new_repository_policy: NewRepositoryPolicy,
}

impl<'a> Comparer<'a> {
    fn all(&self, mut paths: Vec<&PathBuf>) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut done: Option<PathBuf> = None;
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            if done.as_ref().is_some_and(|above| path.starts_with(above)) {
                continue;
            }
            match self.at(path) {
                PathComparison::Same => {}
                PathComparison::SkipSubtree => done = Some(path.clone()),
                PathComparison::SubtreeDiffers(difference) => {
                    done = Some(path.clone());
                    found.push(difference);
                }
                PathComparison::EntryDiffers(difference) => found.push(difference),
            }
        }
        found
    }

    /// Returns the [new directories](Self::new_directories_behind) behind new links, and those behind links
    /// that the baseline has with the same destination.
    fn directories_behind_links(&self) -> (Vec<&'a Path>, Vec<&'a Path>) {
        let (mut by_new, mut by_known) = (Vec::new(), Vec::new());
        for (path, entry) in self.new {
            let EntryState::DirectoryLink { destination: LinkDestination::Inside(behind), .. } =
                &entry.state
            else {
                continue;
            };
            let is_known = self.old.get(path).is_some_and(|old| old.state == entry.state);
            let found = self.new_directories_behind(entry.rule, behind);
            if is_known { &mut by_known } else { &mut by_new }.extend(found);
        }
        (by_new, by_known)
    }

    /// Returns the directories behind one link that are neither in the baseline nor watched for their own
    /// path: its destination and, behind a link named `repos`, the project directories in it.
    fn new_directories_behind(&self, rule: WatchRule, behind: &'a Path) -> Vec<&'a Path> {
        let projects = below(self.new, behind).filter(|(path, entry)| {
            matches!(rule, WatchRule::Repositories { .. })
                && entry.rule.role() == Role::Project
                && path.parent() == Some(behind)
        });
        let projects = projects.map(|(path, _)| path.as_path());
        let is_unknown = |path: &&Path| {
            !path.as_os_str().is_empty()
                && !is_project_location(path)
                && !self.old.contains_key(*path)
        };
        [behind].into_iter().chain(projects).filter(is_unknown).collect()
    }

    /// Returns whether a path lies in one of these directories, with no entry of the baseline between.
    fn is_watched_only_in(&self, path: &Path, linked: &[&Path]) -> bool {
        linked.iter().any(|directory| {
            let mut inside = path.ancestors().take_while(|above| above.starts_with(directory));
            path.starts_with(directory) && !inside.any(|above| self.old.contains_key(above))
        })
    }

    /// Returns the reason to undo a link: it leaves the workspace, or what is behind it differs from what
    /// was trusted at its path.
    fn objection(
        &self,
        path: &Path,
        rule: WatchRule,
        destination: &'a LinkDestination,
    ) -> Option<&'static str> {
        let behind = match destination {
            LinkDestination::Dangling | LinkDestination::System => return None,
            LinkDestination::Outside(_) => return Some("link out of the workspace"),
            LinkDestination::Inside(behind) => behind,
        };
        let linked = self.new_directories_behind(rule, behind);
        let trusted = rebased(self.old, path, behind);
        let comparer = Comparer {
            old: &trusted,
            new_repository_policy: NewRepositoryPolicy::QuarantineSettings,
            ..*self
        };
        let paths = trusted.keys().chain(below(self.new, behind).map(|(path, _)| path));
        let paths = paths.filter(|path| self.is_watched_only_in(path, &linked));
        let found = comparer.all(paths.collect());
        let is_undone = |found: &Difference| !matches!(found.remedy, Remedy::Accept(_));
        found.iter().any(is_undone).then_some("link to what would run later")
    }

    /// Compares a link that is new or has a new destination.
    fn directory_link(
        &self,
        path: &Path,
        rule: WatchRule,
        target: &Path,
        destination: &'a LinkDestination,
    ) -> PathComparison {
        let Some(what) = self.objection(path, rule, destination) else {
            return PathComparison::SkipSubtree;
        };
        let (remedy, kind) = match self.old.get(path).map(|entry| &entry.state) {
            None => (Remedy::Quarantine, ChangeKind::Added),
            // Restoring the same link would lead to the same directory.
            Some(EntryState::DirectoryLink { target: before, .. }) if before == target => {
                (Remedy::Quarantine, ChangeKind::Changed)
            }
            Some(_) => (Remedy::Restore, ChangeKind::Changed),
        };
        PathComparison::SubtreeDiffers(one(path, remedy, kind, what))
    }

    fn at(&self, path: &Path) -> PathComparison {
        match (self.old.get(path), self.new.get(path)) {
            (Some(old), Some(new)) => self.both(path, old, new),
            (None, Some(new)) => self.added(path, new),
            (Some(old), None) => self.removed(path, old),
            (None, None) => PathComparison::Same,
        }
    }

    fn both(&self, path: &Path, old: &WatchedEntry, new: &'a WatchedEntry) -> PathComparison {
        if old.is_equivalent(new, depth_of(path)) {
            if !new.is_incomplete() || old.is_incomplete() {
                return PathComparison::Same;
            }
            let remedy = Remedy::Accept("only a bounded number of directories is looked at");
            let difference = one(path, remedy, ChangeKind::Changed, "more than is watched");
            return PathComparison::EntryDiffers(difference);
        }
        match (&old.state, &new.state) {
            (_, EntryState::DirectoryLink { target, destination }) => {
                return self.directory_link(path, new.rule, target, destination);
            }
            // A directory that replaces a link is compared entry by entry.
            (EntryState::DirectoryLink { .. }, _) => return PathComparison::Same,
            _ => {}
        }
        let role = old.rule.role();
        if role == Role::Config
            && let (Some(old), Some(new)) = (old.bytes(), new.bytes())
            && let Some(difference) = config_change(path, old, new, Remedy::RewriteConfig)
        {
            return PathComparison::SubtreeDiffers(difference);
        }
        if role == Role::GitDirectory && self.is_own_pointer(path, new) {
            return PathComparison::SkipSubtree;
        }
        PathComparison::SubtreeDiffers(one(path, Remedy::Restore, ChangeKind::Changed, role.what()))
    }

    fn added(&self, path: &Path, new: &'a WatchedEntry) -> PathComparison {
        let role = new.rule.role();
        let difference = |remedy| {
            PathComparison::SubtreeDiffers(one(path, remedy, ChangeKind::Added, role.what()))
        };
        match (&new.state, role) {
            (EntryState::DirectoryLink { target, destination }, _) => {
                self.directory_link(path, new.rule, target, destination)
            }
            (EntryState::Directory { .. }, Role::Settings(_)) => {
                let whole = matches!(new.rule, WatchRule::Tree { .. });
                if whole && self.has_files_below(path) {
                    difference(self.remedy_for_settings(path))
                } else {
                    PathComparison::Same
                }
            }
            (EntryState::Directory { .. }, _) | (_, Role::Project) => PathComparison::Same,
            (EntryState::File { bytes, .. }, Role::Config) => {
                match config_change(path, b"", bytes, Remedy::RewriteConfig) {
                    Some(change) if change.notes.is_empty() => PathComparison::Same,
                    Some(change) => PathComparison::SubtreeDiffers(change),
                    None => difference(Remedy::Quarantine),
                }
            }
            (EntryState::File { bytes, .. }, Role::CommonDirectory)
                if is_own_repository(path, bytes) =>
            {
                PathComparison::Same
            }
            (_, Role::GitDirectory) if self.is_own_pointer(path, new) => PathComparison::Same,
            (_, Role::Settings(_)) => difference(self.remedy_for_settings(path)),
            (_, Role::Hook | Role::Config | Role::GitDirectory | Role::CommonDirectory) => {
                difference(Remedy::Quarantine)
            }
        }
    }

    fn removed(&self, path: &Path, old: &WatchedEntry) -> PathComparison {
        let role = old.rule.role();
        let difference = |remedy| {
            PathComparison::SubtreeDiffers(one(path, remedy, ChangeKind::Removed, role.what()))
        };
        match (&old.state, role) {
            // With the whole directory gone, nothing in it runs.
            (_, Role::Project) => PathComparison::SkipSubtree,
            (EntryState::Directory { .. }, Role::GitDirectory) => {
                let elsewhere = |entry: &WatchedEntry| entry.stamp.identity == old.stamp.identity;
                let ran_something =
                    below(self.old, path).any(|(path, entry)| could_run(path, entry));
                if ran_something && !self.new.values().any(elsewhere) {
                    difference(Remedy::Accept("a repository that is gone runs nothing"))
                } else {
                    PathComparison::SkipSubtree
                }
            }
            (EntryState::Directory { .. }, _) => PathComparison::Same,
            (_, Role::GitDirectory | Role::CommonDirectory) => PathComparison::SkipSubtree,
            (EntryState::File { bytes, .. }, Role::Config) => {
                match config_change(path, bytes, b"", Remedy::Restore) {
                    Some(change) if change.notes.is_empty() => PathComparison::SkipSubtree,
                    Some(change) => PathComparison::SubtreeDiffers(change),
                    None => difference(Remedy::Restore),
                }
            }
            _ => difference(Remedy::Restore),
        }
    }

    /// Returns the remedy for new settings. Settings that came with a new clone or work tree are accepted:
    /// they are as new to every tool as the directory itself, and git would report them as deleted.
    fn remedy_for_settings(&self, path: &Path) -> Remedy {
        // A project directory holds more than the settings as which a link to it has it watched.
        if matches!(WatchRule::of_path(path), Some(WatchRule::Project { .. })) {
            return Remedy::Quarantine;
        }
        let mut projects = path.ancestors().skip(1).filter(|above| {
            self.new.get(*above).is_some_and(|entry| entry.rule.role() == Role::Project)
        });
        match projects.next() {
            Some(project)
                if !self.old.contains_key(project) && self.may_bring_settings(project) =>
            {
                Remedy::Accept("it came with a repository that is new itself")
            }
            _ => Remedy::Quarantine,
        }
    }

    fn may_bring_settings(&self, project: &Path) -> bool {
        let git = project.join(".git");
        let is_own =
            |entry: &WatchedEntry| entry.is_directory() || self.is_own_pointer(&git, entry);
        self.new_repository_policy == NewRepositoryPolicy::AcceptSettings
            && self.new.get(&git).is_some_and(is_own)
    }

    /// Returns whether a `.git` file names the git directory of a submodule or work tree of a repository
    /// that is watched itself.
    fn is_own_pointer(&self, path: &Path, new: &WatchedEntry) -> bool {
        let Some(bytes) = new.bytes() else { return false };
        let directory = path.parent().unwrap_or(Path::new(""));
        let target = git_directory(self.top, directory, bytes).map(|(path, _)| path);
        target.and_then(|target| self.new.get(&target)).is_some_and(|entry| {
            let watched = matches!(entry.rule, WatchRule::Module(_) | WatchRule::GitDirectory(1..));
            watched && entry.is_directory()
        })
    }

    fn has_files_below(&self, path: &Path) -> bool {
        below(self.new, path).any(|(_, entry)| !entry.is_directory())
    }
}

fn one(path: &Path, remedy: Remedy, kind: ChangeKind, what: &str) -> Difference {
    Difference { path: path.to_owned(), remedy, notes: vec![(kind, what.to_owned())] }
}

pub(super) fn below<'a>(
    tree: &'a Snapshot,
    path: &'a Path,
) -> impl Iterator<Item = (&'a PathBuf, &'a WatchedEntry)> {
    let range = (Bound::Excluded(path.to_owned()), Bound::Unbounded);
    tree.range(range).take_while(move |(below, _)| below.starts_with(path))
}

/// Returns whether a trusted entry could run something.
fn could_run(path: &Path, entry: &WatchedEntry) -> bool {
    match (&entry.state, entry.rule.role()) {
        (EntryState::Directory { .. }, _)
        | (_, Role::Project | Role::GitDirectory | Role::CommonDirectory | Role::Settings(_)) => {
            false
        }
        (EntryState::File { bytes, .. }, Role::Config) => {
            changed_entries(path, b"", bytes).is_some_and(|entries| !entries.is_empty())
        }
        (_, Role::Hook | Role::Config) => true,
    }
}

/// Lists the sensitive entries by which a configuration differs from a trusted one; `None` if one of them
/// cannot be parsed. The empty file stands for one that is not there.
fn changed_entries(path: &Path, old: &[u8], new: &[u8]) -> Option<Vec<(ChangeKind, String)>> {
    let trusted = Config::read(old, depth_of(path)).ok()?;
    let config = Config::read(new, depth_of(path)).ok()?;
    Some(config.changes(&trusted))
}

/// Returns the difference of two configurations, without notes if no sensitive entry differs; `None` if
/// one of them cannot be parsed.
fn config_change(path: &Path, old: &[u8], new: &[u8], remedy: Remedy) -> Option<Difference> {
    let note = |(kind, key)| (kind, format!("{} {key}", Role::Config.what()));
    let notes = changed_entries(path, old, new)?.into_iter().map(note).collect();
    Some(Difference { path: path.to_owned(), remedy, notes })
}

/// Describes the changes to sensitive entries that writing a configuration would make, if any.
pub(super) fn config_notes(path: &Path, trusted: Option<&[u8]>, bytes: &[u8]) -> Option<String> {
    let Some(changes) = changed_entries(path, trusted.unwrap_or_default(), bytes) else {
        return Some(Role::Config.what().to_owned());
    };
    let keys: Vec<_> = changes.into_iter().map(|(_, key)| key).collect();
    (!keys.is_empty()).then(|| format!("{} {}", Role::Config.what(), keys.join(", ")))
}

/// Returns whether a `commondir` names the repository in whose `worktrees` it lies, as git writes it.
fn is_own_repository(path: &Path, bytes: &[u8]) -> bool {
    let mut above = path.ancestors().skip(2);
    let in_worktrees = above.next().is_some_and(|above| above.ends_with("worktrees"));
    in_worktrees && bytes.trim_ascii_end() == b"../.."
}
