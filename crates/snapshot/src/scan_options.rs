//! The options of scans, and what they find.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::tree::Omission;

/// Bounds the memory of a scan.
pub(crate) const MAX_ENTRIES: u64 = 4 << 20;

/// The part of a tree that ignore rules exclude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// It is recorded as present, and left alone by a restore.
    #[default]
    LeftAlone,
    /// It is taken like the rest.
    Taken,
}

/// The sizes up to which files are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// The limit for one file, at most 1 GiB. A file is read into memory.
    pub file_bytes: u64,
    /// The limit for all files together.
    pub total_bytes: u64,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, total_bytes: 4 << 30 }
    }
}

/// The files whose change keys are believed.
///
/// A process that has a file mapped for writing changes its content without changing its key. If such a process
/// may live, its files have to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The keys of all files.
    #[default]
    Keys,
    /// The keys of all files but those at or below these paths.
    Except(BTreeSet<PathBuf>),
    /// No keys: every file is read.
    Nothing,
}

impl Trust {
    /// Returns whether the key of a file is believed.
    pub(crate) fn includes(&self, path: impl FnOnce() -> PathBuf) -> bool {
        match self {
            Self::Keys => true,
            Self::Nothing => false,
            Self::Except(paths) => !path().ancestors().any(|above| paths.contains(above)),
        }
    }
}

/// The options of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// The part that ignore rules exclude.
    pub ignored: Ignored,
    /// The sizes up to which files are taken.
    pub limits: ScanLimits,
    /// The files whose change keys are believed.
    pub trust: Trust,
}

/// Why a tree could not be scanned.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The workspace itself cannot be read.
    #[error("could not read the workspace for a snapshot")]
    Workspace(#[from] carrel_fsroot::Error),
    /// The tree has too many entries.
    #[error(
        "the workspace has more than {MAX_ENTRIES} entries; name generated trees in an ignore file"
    )]
    TooManyEntries,
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The size of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// The regular files that were taken.
    pub files: u64,
    /// The directories.
    pub directories: u64,
    /// The symbolic links.
    pub links: u64,
    /// The bytes of the files that were taken.
    pub bytes: u64,
    /// The entries that ignore rules exclude, each tree counted once.
    pub ignored: u64,
    /// The entries that were left out for other reasons.
    pub left_out: u64,
}

/// What a scan found.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// The list of the top directory.
    pub(crate) top: ObjectId,
    pub(crate) totals: Totals,
    pub(crate) left_out: Vec<(PathBuf, Omission)>,
    /// The files that were read.
    pub(crate) files_read: u64,
    /// The directories that were listed and the files that changed: what a scan with the cache from before does again.
    pub(crate) cache_changes: u64,
}
