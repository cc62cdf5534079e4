//! The changes that one call makes to files: what it takes to undo the call.
//!
//! Everything that writes files for a tool notes what was there before, in the order of the changes. A change that
//! was taken back within the call is noted too; it is found out when the notes are compared with the files.

use std::path::PathBuf;
use std::sync::Mutex;

use carrel_domain::sync;

/// The changes of a call so far.
#[derive(Debug, Default)]
pub(crate) struct CallChanges(Mutex<Vec<Change>>);

/// One change, with paths below the workspace that pass no link.
#[derive(Debug)]
pub(crate) enum Change {
    /// A file has new content, or another mode. These are the old ones.
    Replaced { path: PathBuf, bytes: Vec<u8>, mode: u32 },
    /// A file or directory was made.
    Made { path: PathBuf },
    /// A file, link or directory has another path, which may be in the trash.
    Moved { from: PathBuf, to: PathBuf },
    /// A file, link or directory was deleted, and the trash had no room for it.
    Deleted { path: PathBuf },
}

impl CallChanges {
    pub(crate) fn note(&self, change: Change) {
        sync::lock(&self.0).push(change);
    }

    /// Returns the changes, and notes from here on for another checkpoint.
    pub(crate) fn take(&self) -> Vec<Change> {
        std::mem::take(&mut sync::lock(&self.0))
    }
}
