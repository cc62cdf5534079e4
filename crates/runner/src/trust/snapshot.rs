//! The state of the watched entries at one moment.
//!
//! A [`Snapshot`] maps paths, relative to the workspace, to [`WatchedEntry`]s: the rule that made the
//! entry watched, a [`Stamp`] by which a later scan sees without reading that the entry is the same,
//! and its [`EntryState`], with the contents of files so that they can be restored.
//!
//! Two snapshots are equivalent at a path when the operator's tools would do the same with both
//! entries, not when their bytes are equal: see [`WatchedEntry::is_equivalent`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::mem::discriminant;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carrel_fsroot::{FileKind, Identity, Metadata};

use super::git_config_diff::Config;
use super::watch_rules::{Role, WatchRule};

/// The age of a change from which on an equal time stamp proves that nothing changed.
///
/// The kernel counts time in ticks and some file systems in seconds: two changes within one unit carry
/// the same stamp. Until the unit has certainly passed, contents are read again.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The watched entries of a workspace, by their path relative to it.
pub(super) type Snapshot = BTreeMap<PathBuf, WatchedEntry>;

/// A watched file, directory or link as a scan found it.
#[derive(Clone, Debug)]
pub(super) struct WatchedEntry {
    pub(super) rule: WatchRule,
    pub(super) stamp: Stamp,
    /// The birth time of a directory, where the file system keeps one. With the inode number it names
    /// one directory for ever; the number alone is reused.
    pub(super) created_at: Option<SystemTime>,
    pub(super) state: EntryState,
}

/// The metadata that changes with every change of an entry.
///
/// `changed` is the ctime, which the kernel alone sets: no command can write a file and put the old
/// time back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) identity: Identity,
    kind: FileKind,
    pub(super) size: u64,
    pub(super) mode: u32,
    modified: SystemTime,
    changed: SystemTime,
    /// Set if the last change was older than [`SETTLED_AFTER`] when the stamp was taken.
    is_settled: bool,
}

/// The kind and contents of a watched entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryState {
    Directory {
        /// The watched names that exist in it.
        children: Vec<OsString>,
        /// True if these are all that the rule would watch; `false` beyond the bounds of a scan.
        complete: bool,
    },
    /// A directory that is watched as a whole and has more entries than are kept. It cannot be
    /// restored.
    TooManyEntries,
    File {
        mode: u32,
        bytes: Arc<[u8]>,
    },
    /// A file that is too large to keep. It cannot be restored.
    TooLarge,
    /// A link with its target, where a file is watched.
    Link(PathBuf),
    /// A link where a project directory is watched; see `directory_link`.
    DirectoryLink {
        /// The target as the link has it.
        target: PathBuf,
        destination: LinkDestination,
    },
    /// A pipe, socket or device, or a directory where a file belongs.
    SpecialFile,
    Unreadable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkDestination {
    /// A directory of the workspace, by its path without links.
    Inside(PathBuf),
    /// A directory of the system, which no command writes to.
    System,
    /// A file, or nothing yet.
    Dangling,
    /// A path outside the workspace, or one that cannot be resolved.
    Outside(PathBuf),
}

impl Stamp {
    pub(super) fn new(metadata: &Metadata, now: SystemTime) -> Self {
        let is_settled = metadata.changed.checked_add(SETTLED_AFTER).is_some_and(|then| then < now);
        Self {
            identity: metadata.identity,
            kind: metadata.kind,
            size: metadata.size,
            mode: metadata.mode,
            modified: metadata.modified,
            changed: metadata.changed,
            is_settled,
        }
    }

    /// Returns whether an earlier stamp proves that the entry was not changed since.
    pub(super) fn proves_unchanged_since(&self, earlier: &Self) -> bool {
        earlier.is_settled && earlier == self
    }

    /// Returns whether another stamp was taken of the same file, and not of a later file with a reused
    /// inode number.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.kind == FileKind::File
            && self.identity == other.identity
            && self.modified == other.modified
    }

    /// Returns whether all metadata is equal, for entries whose contents are not kept.
    fn has_equal_metadata(&self, other: &Self) -> bool {
        Self { is_settled: false, ..*self } == Self { is_settled: false, ..*other }
    }
}

impl WatchedEntry {
    /// Returns whether a later state means the same to the tools that run the entry.
    ///
    /// A hook is compared by its contents and whether it is executable, a git configuration by its
    /// sensitive entries, other files by their contents. Directories are always equivalent: their
    /// watched children are compared one by one. `depth` is that of the entry's directory below the
    /// workspace, for git configurations.
    pub(super) fn is_equivalent(&self, now: &Self, depth: usize) -> bool {
        match (&self.state, &now.state) {
            (EntryState::File { mode: old_mode, bytes: old }, EntryState::File { mode, bytes }) => {
                match self.rule.role() {
                    _ if old == bytes && old_mode == mode => true,
                    Role::Hook => old == bytes && is_program(*old_mode) == is_program(*mode),
                    Role::Config => same_entries(old, bytes, depth),
                    Role::Project
                    | Role::GitDirectory
                    | Role::CommonDirectory
                    | Role::Settings(_) => old == bytes,
                }
            }
            (old, new) if discriminant(old) != discriminant(new) => false,
            (EntryState::Link(_) | EntryState::DirectoryLink { .. }, _) => self.state == now.state,
            (EntryState::Unreadable, _) if self.stamp.kind == FileKind::Directory => {
                self.stamp.identity == now.stamp.identity
            }
            (EntryState::TooLarge | EntryState::Unreadable, _) => {
                self.stamp.has_equal_metadata(&now.stamp)
            }
            (
                EntryState::File { .. }
                | EntryState::Directory { .. }
                | EntryState::TooManyEntries
                | EntryState::SpecialFile,
                _,
            ) => true,
        }
    }

    /// Returns the watched names in a directory, none for anything else.
    pub(super) fn children(&self) -> &[OsString] {
        match &self.state {
            EntryState::Directory { children, .. } => children,
            _ => &[],
        }
    }

    /// Returns the contents, if the entry is a file that is kept.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match &self.state {
            EntryState::File { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Returns whether the baseline follows the entry when it is renamed: project and git directories.
    pub(super) fn is_tracked_across_renames(&self) -> bool {
        self.is_directory() && matches!(self.rule.role(), Role::Project | Role::GitDirectory)
    }

    /// Returns whether a directory has more to watch than the bounds of a scan allow.
    pub(super) fn is_incomplete(&self) -> bool {
        matches!(self.state, EntryState::Directory { complete: false, .. })
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.state, EntryState::Directory { .. })
    }
}

fn is_program(mode: u32) -> bool {
    mode & 0o111 != 0
}

/// Returns whether two git configurations agree in their sensitive entries. What git cannot parse must be equal byte for byte.
fn same_entries(old: &[u8], new: &[u8], depth: usize) -> bool {
    match (Config::read(old, depth), Config::read(new, depth)) {
        (Ok(trusted), Ok(config)) => config.changes(&trusted).is_empty(),
        _ => old == new,
    }
}
