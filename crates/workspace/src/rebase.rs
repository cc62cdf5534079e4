//! Changes of a base past Carrel, and the forks that take them over.
//!
//! A fork shows what changed in its base wherever it has not changed the same, so taking that over is a look at both
//! sides and a note of the moment up to which the base was looked at: `.carrel/forks/KEY/rebased`, in nanoseconds of
//! the file system's clock. A promotion asks for changes after that moment only. The note is replaced as a whole: a crash
//! leaves the earlier moment or the later one.
//!
//! What changed is known by times that only the kernel sets. Not known is what the base had before: a file that was
//! deleted there, and that the fork had replaced by one of the same name, looks like one that the fork added.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_domain::WorkspaceKey;
use carrel_fork::{Change, Node};
use carrel_fsroot::{Durability, Root, WriteOptions};

use crate::error::Error;
use crate::fork::ForkKind;
use crate::promote::{changed_since, kind};
use crate::record::Record;
use crate::remove::RemovalLock;
use crate::workspace::Workspace;
use crate::workspaces::{RootInner, Workspaces};

/// The note of the moment up to which a fork has taken over what changed in its base.
const REBASED: &str = "rebased";

/// Its change time is the present of the file system's clock.
const CLOCK: &str = "clock";

/// Bounds the text of the note, which has 19 digits.
const MAX_NOTE_BYTES: u64 = 64;

/// The changes of a base that are looked for when a fork takes them over.
const MAX_TAKEN_OVER: usize = 100_000;

/// What changed in a base past Carrel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseDrift {
    /// The entries that changed.
    pub paths: Vec<PathBuf>,
    /// The entries that the fork has changed as well.
    pub conflicts: Vec<PathBuf>,
}

impl Workspaces {
    /// Returns what changed in a base past Carrel since it was forked, or since the fork took that over. All of it is in
    /// conflict with a copy, which shows nothing of it.
    pub fn base_drift(&self, fork: &Record, base: &Workspace) -> Result<BaseDrift, Error> {
        let since = self.inner.drifting_since(fork, &base.record().key)?;
        let Some(since) = since else { return Ok(BaseDrift::default()) };
        let paths = changed_since(base.files(), since, MAX_TAKEN_OVER)?;
        let conflicts = match kind(fork) {
            _ if paths.is_empty() => Vec::new(),
            ForkKind::Overlay => conflicts(&self.changes(fork, base.files())?, &paths),
            ForkKind::Copy => paths.clone(),
        };
        Ok(BaseDrift { paths, conflicts })
    }

    /// Returns whether a fork has taken over what changed in its base.
    pub fn has_taken_over(&self, fork: &Record) -> Result<bool, Error> {
        Ok(kind(fork) == ForkKind::Overlay && self.inner.rebased_at(fork)?.is_some())
    }

    /// Lets a fork take over what changed in its base, unless the fork has changed the same. The fork is locked for removal
    /// and not mounted. Returns what
    /// changed; it was taken over if nothing of it is in conflict.
    pub fn rebase(&self, fork: &RemovalLock, base: &Workspace) -> Result<BaseDrift, Error> {
        let record = fork.record().ok_or_else(|| self.inner.not_found_key(&fork.key))?;
        if kind(record) == ForkKind::Copy {
            return Err(Error::CopyNotRebased { fork: fork.key.to_string() });
        }
        let layers = self.inner.layers(record)?;
        let failed = || Error::files("could not note what a fork has taken over");
        // Before the look: what changes during it counts as later.
        let now = now_of(layers.directory()).map_err(failed())?;
        // So does what changed in the same tick of the clock.
        let now = now - Duration::from_nanos(1);
        let drift = self.base_drift(record, base)?;
        if drift.conflicts.is_empty() && !drift.paths.is_empty() {
            let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let options = WriteOptions {
                durability: Durability::Atomic,
                new_mode: Some(0o600),
                ..WriteOptions::default()
            };
            let text = since.as_nanos().to_string();
            let written = layers.directory().write(Path::new(REBASED), text.as_bytes(), options);
            written.map_err(failed())?;
        }
        Ok(drift)
    }
}

impl RootInner {
    /// Returns the moment since which changes of a base are drift for a fork of it.
    pub(crate) fn drifting_since(
        &self,
        fork: &Record,
        base: &WorkspaceKey,
    ) -> Result<Option<SystemTime>, Error> {
        match kind(fork) {
            ForkKind::Overlay => {
                let frozen = self.frozen_since(base)?;
                Ok(frozen.max(self.rebased_at(fork)?.filter(|_| frozen.is_some())))
            }
            // Its record was written after the base was frozen, and has whole milliseconds.
            ForkKind::Copy => {
                let made = u64::try_from(fork.created_at.as_millis()).unwrap_or_default() + 1;
                Ok(Some(SystemTime::UNIX_EPOCH + Duration::from_millis(made)))
            }
        }
    }

    fn rebased_at(&self, fork: &Record) -> Result<Option<SystemTime>, Error> {
        let layers = self.layers(fork)?;
        let note = match layers.directory().read_strict(Path::new(REBASED), MAX_NOTE_BYTES) {
            Err(error) if error.is_not_found() => return Ok(None),
            read => read.map_err(Error::files("could not look what a fork has taken over"))?,
        };
        let nanos = std::str::from_utf8(&note).ok().and_then(|text| text.parse().ok());
        // An unreadable one says nothing, and the earlier moment holds.
        Ok(nanos.map(|nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)))
    }
}

/// Returns the present time of the file system's clock, which is that of the change times of its files.
fn now_of(directory: &Root) -> Result<SystemTime, carrel_fsroot::Error> {
    let clock = Path::new(CLOCK);
    let mut file = directory.open_or_create(clock, 0o600)?;
    file.write_all(b".").map_err(|error| carrel_fsroot::Error::of_io(clock, error))?;
    Ok(directory.link_metadata(clock)?.changed)
}

/// Returns the changes of a fork that concern what changed in its base.
fn conflicts(changes: &[Change], drifted: &[PathBuf]) -> Vec<PathBuf> {
    let drifted: BTreeSet<&Path> = drifted.iter().map(PathBuf::as_path).collect();
    let is_directory = |node: &Option<Node>| matches!(node, Some(Node::Directory { .. }));
    let concerns = |change: &&Change| {
        let replaces_directory = is_directory(&change.old) && !is_directory(&change.new);
        if replaces_directory {
            let mut from = drifted.range(change.path.as_path()..);
            return from.next().is_some_and(|path| path.starts_with(&change.path));
        }
        change.old.is_some() && drifted.contains(change.path.as_path())
    };
    changes.iter().filter(concerns).map(|change| change.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use carrel_fork::ChangeKind;
    use pretty_assertions::assert_eq;

    use super::*;

    const FILE: Option<Node> = Some(Node::File { mode: 0o644, size: 1 });

    const DIRECTORY: Option<Node> = Some(Node::Directory { mode: 0o755 });

    fn change(path: &str, kind: ChangeKind, old: Option<Node>, new: Option<Node>) -> Change {
        Change { path: path.into(), kind, old, new }
    }

    #[test]
    fn what_both_have_changed_is_in_conflict_and_what_lies_beside_it_is_not() {
        let changes = [
            change("a", ChangeKind::Modified, FILE, FILE),
            change("added", ChangeKind::Added, None, FILE),
            change("gone", ChangeKind::Deleted, DIRECTORY, None),
            change("gone/b", ChangeKind::Deleted, FILE, None),
            change("mode", ChangeKind::Mode, DIRECTORY, DIRECTORY),
            change("other", ChangeKind::Type, DIRECTORY, FILE),
        ];
        let of = |drifted: &[&str]| {
            let drifted: Vec<PathBuf> = drifted.iter().map(PathBuf::from).collect();
            let found = conflicts(&changes, &drifted).into_iter();
            found.map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[".", "b", "gonf", "other-too", "mode/c"]), [""; 0]);
        assert_eq!(of(&[".", "a"]), ["a"]);
        assert_eq!(of(&["gone", "gone/new"]), ["gone"]);
        assert_eq!(of(&["gone/b"]), ["gone", "gone/b"]);
        assert_eq!(of(&["other/c"]), ["other"]);
        assert_eq!(of(&["mode"]), ["mode"]);
    }
}
