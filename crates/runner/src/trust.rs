//! The trust check: files that a command writes inside its sandbox and that the operator's own tools
//! would run later, outside it. Git hooks, commands in a git configuration, settings of editors and
//! agents, shell start-up files.
//!
//! [`TrustBaseline::capture`] takes a snapshot of these files before the first command; what is there
//! then counts as the operator's wish. [`TrustBaseline::check`] runs after each command:
//!
//! 1. `scan` takes a new snapshot, reading only what may have changed;
//! 2. `renames` and `tombstones` move the baseline along with directories that were renamed, or that
//!    vanished and came back, so that moving a repository neither loses nor launders trust;
//! 3. `diff` compares both snapshots: pure, a list of differences, each with its remedy;
//! 4. `restore` applies the remedies, and what a command wrote goes to the `quarantine`;
//! 5. the snapshot becomes the baseline. After a restoration that is a snapshot of a last scan, except
//!    where a difference could not be undone: there the old entry stays, so that the next check finds
//!    and reports it again.
//!
//! Ordinary work with git (`init`, `clone`, `commit`, `remote add`, `config user.name`, submodules,
//! work trees) makes no difference: of a git configuration only sensitive entries are compared
//! (`git_config_diff`), and the samples among the hooks are no hooks. `preflight` answers the same
//! question before a tool writes a file itself.
//!
//! **Cost.** An entry whose kernel time stamp is the same was not changed; checking an unchanged
//! workspace is one or two system calls for each watched directory and file, and reads no contents.
//!
//! **Scope.** The workspace, the directories directly in it and those in `repos`; in their git
//! directories also submodules, with names of up to four components, and work trees. `watch_rules` has
//! the names and `scan` the bounds. Repositories deeper in the tree, and programs that trusted entries
//! name in the work tree (a hook that calls `scripts/lint`), are source like any other and not watched.
//! Nor is an unfinished rebase, whose list may hold `exec` lines.
//! `directory_link` covers links that stand where a directory is watched.
//!
//! **Safety.** All access goes through [`Root`], one directory at a time and with no link on the way.
//! Contents are replaced by renaming, so neither a link nor a hard link carries a write elsewhere. One
//! failure does not stop the other remedies. A check can be repeated and can stop at any point: the
//! baseline is in memory and changes last, so what was not restored is found again.
//!
//! **Limits.** A background job that outlives its command can change a file after the check; the next
//! check finds it. After a restart of the server, what is there is trusted. A branch that brings other
//! editor settings cannot be told from a command that writes them, and is restored like it.

mod diff;
mod directory_link;
mod git_config;
mod git_config_diff;
mod git_config_keys;
mod preflight;
mod quarantine;
mod references;
mod renames;
mod report;
mod restore;
mod scan;
mod snapshot;
mod stamp_reliability;
mod tombstones;
mod watch_rules;
mod watched_names;

use std::fmt;
use std::path::{Path, PathBuf};

use carrel_config::Trust;
use carrel_fsroot::{Error, Root};

use diff::{Difference, NewRepositoryPolicy, Remedy, below, differences};
pub use report::{ChangeKind, MAX_CHANGES, TrustChange, TrustReport};
use restore::{UndoResult, undo};
use scan::{Reference, is_provably_unchanged, scan};
use snapshot::{Snapshot, WatchedEntry};
use tombstones::Tombstones;

/// The longest chain of references that is followed, such as a configuration that includes another.
/// Git itself stops at ten.
const MAX_REFERENCE_ROUNDS: usize = 10;

/// The largest baseline that [`TrustBaseline::is_unchanged`] compares, which bounds its system calls.
const MAX_QUICK_ENTRIES: usize = 64;

/// The trusted state of one workspace's watched files, kept from command to command.
pub struct TrustBaseline {
    trusted: Snapshot,
    references: Vec<Reference>,
    tombstones: Tombstones,
}

impl fmt::Debug for TrustBaseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustBaseline")
            .field("entries", &self.trusted.len())
            .finish_non_exhaustive()
    }
}

impl TrustBaseline {
    /// Trusts what is in a workspace now, and what its trusted files refer to.
    pub fn capture(root: &Root) -> Result<Self, Error> {
        let trusted = scan(root, &Snapshot::new(), &[])?.entries;
        let mut trust = Self { trusted, references: Vec::new(), tombstones: Tombstones::default() };
        trust.watch_references(root)?;
        Ok(trust)
    }

    /// Returns whether time stamps alone prove that nothing changed, with a bounded number of system
    /// calls. `false` proves nothing: [`TrustBaseline::check`] finds out.
    pub fn is_unchanged(&self, root: &Root) -> bool {
        self.references.is_empty()
            && self.trusted.len() <= MAX_QUICK_ENTRIES
            && is_provably_unchanged(root, &self.trusted)
    }

    /// Compares a workspace with its baseline, and restores what changed or, if the policy only reports,
    /// trusts it from here on.
    ///
    /// Fails only when the workspace itself cannot be read. A difference that could not be undone is
    /// part of the report, and is found again by the next check.
    pub fn check(&mut self, root: &Root, on_change: Trust) -> Result<TrustReport, Error> {
        let seen = scan(root, &self.trusted, &self.references)?;
        let has_read = seen.has_read;
        let seen = seen.entries;
        let renamed = renames::follow_renames(&mut self.trusted, &seen);
        self.tombstones.record(renamed);
        self.tombstones.revive(&mut self.trusted, &seen);
        let found = self.differences(root, &seen);
        let changed = !found.is_empty();
        let mut report = if changed && on_change == Trust::Restore {
            self.restore(root, seen, found)?
        } else {
            self.replace_baseline(seen);
            report_of(found.iter().map(|difference| (difference, None)))
        };
        if has_read || changed {
            self.watch_references(root)?;
        }
        report.unchecked = self.unchecked();
        Ok(report)
    }

    /// Returns a directory whose watched entries exceed the bounds of a scan, if there is one. What is
    /// beyond the bounds is not watched.
    fn unchecked(&self) -> Option<PathBuf> {
        let mut entries = self.trusted.iter();
        entries.find(|(_, entry)| entry.is_incomplete()).map(|(path, _)| path.clone())
    }

    fn differences(&self, root: &Root, seen: &Snapshot) -> Vec<Difference> {
        // Beyond the bounds, an entry that looks new may be an old one that was not seen before.
        let policy = match self.unchecked() {
            Some(_) => NewRepositoryPolicy::QuarantineSettings,
            None => self.tombstones.new_repository_policy(),
        };
        differences(root.path(), &self.trusted, seen, policy)
    }

    /// Makes a snapshot the baseline, and keeps tombstones of the entries that are not in it.
    fn replace_baseline(&mut self, seen: Snapshot) {
        let before = std::mem::replace(&mut self.trusted, seen);
        directory_link::keep_dangling_links(&before, &mut self.trusted);
        let vanished = before.into_iter().filter(|(path, _)| !self.trusted.contains_key(path));
        self.tombstones.record(vanished);
    }

    fn restore(
        &mut self,
        root: &Root,
        seen: Snapshot,
        found: Vec<Difference>,
    ) -> Result<TrustReport, Error> {
        // A directory that was renamed comes back first, with all that is trusted in it.
        let may_have_moved = |difference: &Difference| may_have_moved(&self.trusted, difference);
        let (mut found, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(may_have_moved);
        let undo = |seen: &Snapshot, difference| undo(root, &self.trusted, seen, difference);
        let mut undone: Vec<UndoResult> = found.iter().map(|one| undo(&seen, one)).collect();
        let (seen, rest) = if found.is_empty() {
            (seen, rest)
        } else {
            let seen = scan(root, &seen, &self.references)?.entries;
            let left = self.differences(root, &seen).into_iter();
            let is_new = |left: &Difference| !found.iter().any(|one| one.path == left.path);
            (seen, left.filter(is_new).collect())
        };
        undone.extend(rest.iter().map(|one| undo(&seen, one)));
        found.extend(rest);
        let after = scan(root, &seen, &self.references)?.entries;
        for left in self.accept_except_unresolved(root, after) {
            let same = found.iter().zip(&mut undone).find(|(found, _)| found.path == left);
            if let Some((_, undone)) = same {
                undone.failure.get_or_insert_with(|| "it was changed again".to_owned());
            }
        }
        let mut reported: Vec<_> = found.iter().zip(undone.into_iter().map(Some)).collect();
        reported.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        Ok(report_of(reported.into_iter()))
    }

    /// Makes the snapshot after the restoration the baseline, except where it still differs: an undo
    /// failed, or a process that still runs changed the entry again. There the old baseline stays, so
    /// that the next check reports the same difference. Returns those paths.
    fn accept_except_unresolved(&mut self, root: &Root, mut after: Snapshot) -> Vec<PathBuf> {
        let left = self.differences(root, &after).into_iter();
        let left: Vec<PathBuf> = left
            .filter(|left| !matches!(left.remedy, Remedy::Accept(_)))
            .map(|left| left.path)
            .collect();
        for path in &left {
            copy_subtree(&mut after, &self.trusted, path);
            // Should the directories above it be gone, they stay in the baseline with it.
            for above in path.ancestors().skip(1) {
                if let Some(entry) = self.trusted.get(above).filter(|_| !after.contains_key(above))
                {
                    after.insert(above.to_owned(), entry.clone());
                }
            }
        }
        self.replace_baseline(after);
        left
    }

    /// Adds the files that trusted files refer to, and in turn the files that these refer to.
    fn watch_references(&mut self, root: &Root) -> Result<(), Error> {
        for _ in 0..MAX_REFERENCE_ROUNDS {
            let references = references::find(root.path(), &self.trusted, &self.references);
            if references == self.references {
                break;
            }
            let seen = scan(root, &self.trusted, &references)?.entries;
            let added = references.iter().filter(|one| !self.references.contains(one));
            let dropped = self.references.iter().filter(|one| !references.contains(one));
            for (path, _) in added.chain(dropped) {
                copy_subtree(&mut self.trusted, &seen, path);
            }
            self.references = references;
        }
        Ok(())
    }
}

/// Returns whether the entry to restore is a directory that may only have been renamed.
fn may_have_moved(trusted: &Snapshot, difference: &Difference) -> bool {
    difference.remedy == Remedy::Restore
        && trusted.get(&difference.path).is_some_and(WatchedEntry::is_tracked_across_renames)
}

/// Replaces a path and all below it in one snapshot by what another snapshot has there.
fn copy_subtree(tree: &mut Snapshot, other: &Snapshot, path: &Path) {
    let stale: Vec<_> = below(tree, path).map(|(path, _)| path.clone()).collect();
    for path in stale.iter().map(PathBuf::as_path).chain([path]) {
        tree.remove(path);
    }
    let kept = below(other, path).chain(other.get_key_value(path));
    tree.extend(kept.map(|(path, entry)| (path.clone(), entry.clone())));
}

fn report_of<'a>(found: impl Iterator<Item = (&'a Difference, Option<UndoResult>)>) -> TrustReport {
    let mut report = TrustReport::default();
    for (difference, undone) in found {
        let path = &difference.path;
        let restored = undone.as_ref().is_some_and(|undone| undone.failure.is_none());
        let (put_aside, why_not) = match (undone, difference.remedy) {
            (Some(undone), _) => (undone.quarantined, undone.failure),
            (None, Remedy::Accept(reason)) => (None, Some(reason.to_owned())),
            (None, _) => (None, Some("changes are only reported here".to_owned())),
        };
        for (kind, what) in &difference.notes {
            report.push(TrustChange {
                path: if path.as_os_str().is_empty() { ".".into() } else { path.clone() },
                kind: *kind,
                what: what.clone(),
                restored,
                why_not: why_not.clone(),
                put_aside: put_aside.clone(),
            });
        }
    }
    report
}
