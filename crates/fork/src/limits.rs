//! The bounds of a comparison, and why there is none.

use std::path::{Path, PathBuf};

use carrel_fsroot::Error;

/// Bounds the depth of a tree, below that of any path that a program can open.
pub(crate) const MAX_DEPTH: usize = 2048;

/// Bounds of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most entries that are looked at, in base and fork together. It bounds memory and the journal.
    pub entries: usize,
    /// The most bytes of files of the same length that are compared. Beyond it such a file counts as modified.
    pub compared_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 1 << 20, compared_bytes: 16 << 30 }
    }
}

/// Why a fork could not be compared with its base.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// An entry could not be read.
    #[error("could not compare the fork with its base")]
    Files(#[from] Error),
    /// There are too many entries.
    #[error("the fork and what it replaces have more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// The tree is too deep.
    #[error("the tree is deeper than {MAX_DEPTH} directories: {}…", short(path))]
    TooDeep {
        /// The directory.
        path: PathBuf,
    },
    /// The upper layer was written by an overlay with features that forks do not use, so it is not a fork's.
    #[error("the upper layer has {attribute} on {}, which no fork writes", path.display())]
    Unsupported {
        /// The entry.
        path: PathBuf,
        /// The attribute.
        attribute: &'static str,
    },
}

impl ChangesError {
    /// Completes the path of an entry that was looked at in an open directory.
    pub(crate) fn below(self, directory: &Path) -> Self {
        match self {
            Self::Files(error) => Self::Files(error.below(directory)),
            error @ (Self::TooManyEntries { .. }
            | Self::TooDeep { .. }
            | Self::Unsupported { .. }) => error,
        }
    }
}

fn short(path: &Path) -> String {
    path.to_string_lossy().chars().take(100).collect()
}
