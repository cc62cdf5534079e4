//! The changes that one call makes to files: what it takes to undo the call.
//!
//! Everything that writes files for a tool notes what was there before, in the order of the changes. A change that
//! was taken back within the call is noted too; it is found out when the notes are compared with the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use carrel_domain::sync;
use carrel_fsroot::Root;
use carrel_snapshot::LeftImage;

/// The changes of a call so far.
#[derive(Debug, Default)]
pub(crate) struct CallChanges(Mutex<NotedChanges>);

/// The changes in their order, and what was there after the last one of each path. Both are noted while the write lock
/// is held: later something else may have written there.
#[derive(Debug, Default)]
pub(crate) struct NotedChanges {
    pub(crate) changes: Vec<Change>,
    pub(crate) left: BTreeMap<PathBuf, LeftImage>,
}

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
    pub(crate) fn note(&self, workspace: &Root, change: Change) {
        for path in change.paths() {
            self.look(workspace, path);
        }
        sync::lock(&self.0).changes.push(change);
    }

    /// Notes what is under a path now.
    pub(crate) fn look(&self, workspace: &Root, path: &Path) {
        let left = LeftImage::of(workspace, path);
        sync::lock(&self.0).left.insert(path.to_owned(), left);
    }

    /// Returns whether a path is as the last change of the call left it.
    pub(crate) fn is_as_left(&self, workspace: &Root, path: &Path) -> bool {
        let left = sync::lock(&self.0).left.get(path).cloned();
        left.is_some_and(|left| left == LeftImage::of(workspace, path))
    }

    /// Returns the changes, and notes from here on for another checkpoint.
    pub(crate) fn take(&self) -> NotedChanges {
        std::mem::take(&mut sync::lock(&self.0))
    }
}

impl Change {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (path, other) = match self {
            Self::Replaced { path, .. } | Self::Made { path } | Self::Deleted { path } => {
                (path, None)
            }
            Self::Moved { from, to } => (from, Some(to)),
        };
        std::iter::once(path).chain(other).map(PathBuf::as_path)
    }
}
