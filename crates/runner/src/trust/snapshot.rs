//! What one watched entry was when it was last looked at.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carrel_fsroot::{FileKind, Identity, Metadata};

use super::git_config_diff::Config;
use super::watch_rules::{Role, Watch};

/// How old a change must be before an equal time stamp proves that nothing changed.
///
/// The kernel counts time in ticks and some file systems in seconds: two changes within
/// one unit carry the same stamp. Until the unit has certainly passed, contents are read.
const FIRM_AFTER: Duration = Duration::from_secs(2);

/// Everything that was looked at, by its path from the workspace.
pub(super) type Tree = BTreeMap<PathBuf, Node>;

/// One entry as it was.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) watch: Watch,
    pub(super) stamp: Stamp,
    /// When a directory was made, if that is known.
    pub(super) born: Option<SystemTime>,
    pub(super) state: State,
}

/// What shows without reading whether an entry is the same. The kernel alone sets
/// the time of the last change, so no command can go back to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) identity: Identity,
    kind: FileKind,
    size: u64,
    mode: u32,
    modified: SystemTime,
    changed: SystemTime,
    firm: bool,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A directory, with the names in it that are watched.
    Directory {
        /// The watched names that exist.
        children: Vec<OsString>,
        /// Whether all that should be watched is.
        complete: bool,
    },
    /// A directory with more in it than is looked at.
    Crowded,
    /// A file and all of its contents.
    File {
        /// The permission bits.
        mode: u32,
        /// The contents.
        bytes: Arc<[u8]>,
    },
    /// A file that is too large to keep.
    Large,
    /// A link and where it points.
    Link(PathBuf),
    /// A link where a directory would be a place.
    Door {
        /// Where it points, as it says.
        target: PathBuf,
        /// What it leads to.
        leads: Leads,
    },
    /// A pipe, socket or device, or a directory where a file belongs.
    Other,
    /// Something that cannot be looked at.
    Unreadable,
}

/// What a link in a place leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// A directory of the workspace, by the one path without links.
    Inside(PathBuf),
    /// A directory of the system, which no command writes to.
    System,
    /// A file, or nothing yet.
    Nowhere,
    /// Out of the workspace, by this path, or nobody can tell where.
    Outside(PathBuf),
}

impl Stamp {
    pub(super) fn new(metadata: &Metadata, now: SystemTime) -> Self {
        let firm = metadata.changed.checked_add(FIRM_AFTER).is_some_and(|then| then < now);
        Self {
            identity: metadata.identity,
            kind: metadata.kind,
            size: metadata.size,
            mode: metadata.mode,
            modified: metadata.modified,
            changed: metadata.changed,
            firm,
        }
    }

    /// Tells whether an earlier stamp proves that the entry is the same.
    pub(super) fn proves(&self, earlier: &Self) -> bool {
        earlier.firm && earlier == self
    }

    /// Tells whether this is the file that another stamp was taken of, and not a later
    /// one that was given the number of a file that is gone.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.kind == FileKind::File
            && self.identity == other.identity
            && self.modified == other.modified
    }

    /// Tells whether nothing that is known without reading differs.
    fn looks_like(&self, other: &Self) -> bool {
        Self { firm: false, ..*self } == Self { firm: false, ..*other }
    }
}

impl Node {
    /// Tells whether later looks mean the same to whoever runs the entry.
    pub(super) fn means_the_same(&self, now: &Self, depth: usize) -> bool {
        match (&self.state, &now.state) {
            (State::File { mode: old_mode, bytes: old }, State::File { mode, bytes }) => {
                match self.watch.role() {
                    _ if old == bytes && old_mode == mode => true,
                    Role::Hook => old == bytes && is_program(*old_mode) == is_program(*mode),
                    Role::Config => same_entries(old, bytes, depth),
                    Role::Place
                    | Role::GitDirectory
                    | Role::CommonDirectory
                    | Role::Settings(_) => old == bytes,
                }
            }
            (State::Link(_), State::Link(_)) | (State::Door { .. }, State::Door { .. }) => {
                self.state == now.state
            }
            (State::Unreadable, State::Unreadable) if self.stamp.kind == FileKind::Directory => {
                self.stamp.identity == now.stamp.identity
            }
            (State::Large, State::Large) | (State::Unreadable, State::Unreadable) => {
                self.stamp.looks_like(&now.stamp)
            }
            (State::Directory { .. }, State::Directory { .. })
            | (State::Crowded, State::Crowded)
            | (State::Other, State::Other) => true,
            (
                State::Directory { .. }
                | State::Crowded
                | State::File { .. }
                | State::Large
                | State::Link(_)
                | State::Door { .. }
                | State::Other
                | State::Unreadable,
                _,
            ) => false,
        }
    }

    /// Tells whether this is certainly the directory that another node was, wherever it is now.
    pub(super) fn is_same_directory(&self, other: &Self) -> bool {
        self.stamp.identity == other.stamp.identity
            && self.born.is_some()
            && self.born == other.born
    }

    /// Tells whether trust goes along with it when it moves.
    pub(super) fn can_move(&self) -> bool {
        self.is_directory() && matches!(self.watch.role(), Role::Place | Role::GitDirectory)
    }

    /// Tells whether there is more in a directory than is looked through.
    pub(super) fn is_overfull(&self) -> bool {
        matches!(self.state, State::Directory { complete: false, .. })
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.state, State::Directory { .. })
    }
}

fn is_program(mode: u32) -> bool {
    mode & 0o111 != 0
}

/// Tells whether two configurations agree in what counts; what git cannot read must be equal.
fn same_entries(old: &[u8], new: &[u8], depth: usize) -> bool {
    match (Config::read(old, depth), Config::read(new, depth)) {
        (Ok(trusted), Ok(config)) => config.changes(&trusted).is_empty(),
        _ => old == new,
    }
}
