//! Disk usage of a tree.

use std::collections::HashSet;
use std::path::Path;

use crate::error::{Error, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::root::{Identity, Root};
use crate::walk::WalkControl;

/// The disk usage of a tree: allocated blocks and inodes, each inode counted once.
///
/// Links are counted themselves and never followed; a sparse file counts its allocated blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The allocated bytes.
    pub bytes: u64,
    /// The number of files, directories, links and other entries below the top.
    pub inodes: u64,
    /// The number of directories that could not be read. If it is not zero, the other figures are too low.
    pub unreadable: u64,
}

/// A bound at which counting stops, for callers that only need to know whether it is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageLimit {
    /// Counting stops when more bytes were found.
    pub bytes: u64,
    /// Counting stops when more inodes were found.
    pub inodes: u64,
}

impl UsageLimit {
    /// No bound.
    pub const NONE: Self = Self { bytes: u64::MAX, inodes: u64::MAX };
}

impl Root {
    /// Returns the usage of the directory at `path` with everything below it. If the limit is exceeded, the
    /// count stops there, and the result exceeds the limit but is not the full usage.
    pub fn usage(&self, path: &Path, limit: UsageLimit) -> Result<Usage, Error> {
        // The top is not an entry of the tree, but a directory with many entries is large itself.
        let mut count = Count::default();
        count.usage.bytes = self.metadata(path)?.allocated;
        let mut unreadable = 0;
        let mut closed = 0;
        self.walk(
            path,
            |visit| {
                match visit.metadata() {
                    Ok(Some(metadata)) => count.add(&metadata),
                    Ok(None) => {}
                    // The entries of a directory that can be listed but not entered have no metadata.
                    Err(error) if error.problem() == Problem::PermissionDenied => closed += 1,
                    Err(error) => return Err(error),
                }
                Ok(if count.exceeds(limit) { WalkControl::Stop } else { WalkControl::Continue })
            },
            |_| {
                unreadable += 1;
                Ok(())
            },
        )?;
        Ok(Usage { unreadable: unreadable + closed, ..count.usage })
    }
}

#[derive(Default)]
struct Count {
    usage: Usage,
    /// Files with several hard links that were counted.
    seen: HashSet<Identity>,
}

impl Count {
    fn add(&mut self, metadata: &Metadata) {
        let several_names = metadata.links > 1 && metadata.kind != FileKind::Directory;
        if several_names && !self.seen.insert(metadata.identity) {
            return;
        }
        self.usage.bytes += metadata.allocated;
        self.usage.inodes += 1;
    }

    fn exceeds(&self, limit: UsageLimit) -> bool {
        self.usage.bytes > limit.bytes || self.usage.inodes > limit.inodes
    }
}
