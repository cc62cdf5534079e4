//! How much of the disk a tree takes up.

use std::collections::HashSet;
use std::path::Path;

use crate::error::{Error, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::root::{Identity, Root};
use crate::walk::WalkControl;

/// What a tree takes up: allocated blocks, and inodes, each inode once.
///
/// Links are counted themselves and never followed; a sparse file counts what it
/// really uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The allocated bytes.
    pub bytes: u64,
    /// The number of files, directories, links and others below the top.
    pub inodes: u64,
    /// How many directories could not be counted, so that the rest is only a part.
    pub unreadable: u64,
}

/// When counting may end early because the answer is clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageLimit {
    /// Ends when more bytes than this were found.
    pub bytes: u64,
    /// Ends when more inodes than this were found.
    pub inodes: u64,
}

impl UsageLimit {
    /// Counts everything.
    pub const NONE: Self = Self { bytes: u64::MAX, inodes: u64::MAX };
}

impl Root {
    /// Counts what the directory at `path` and everything below it takes up.
    pub fn usage(&self, path: &Path, limit: UsageLimit) -> Result<Usage, Error> {
        // The top itself is no entry of the tree, but a directory with many names is large.
        let mut count = Count { bytes: self.metadata(path)?.allocated, ..Count::default() };
        let mut unreadable = 0;
        let mut closed = 0;
        self.walk(
            path,
            |visit| {
                match visit.metadata() {
                    Ok(Some(metadata)) => count.add(&metadata),
                    Ok(None) => {}
                    // A directory that can be listed and not entered hides what its entries take up.
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
        Ok(Usage { bytes: count.bytes, inodes: count.inodes, unreadable: unreadable + closed })
    }
}

#[derive(Default)]
struct Count {
    bytes: u64,
    inodes: u64,
    /// Only files with several names need to be remembered.
    seen: HashSet<Identity>,
}

impl Count {
    fn add(&mut self, metadata: &Metadata) {
        let several_names = metadata.links > 1 && metadata.kind != FileKind::Directory;
        if several_names && !self.seen.insert(metadata.identity) {
            return;
        }
        self.bytes += metadata.allocated;
        self.inodes += 1;
    }

    fn exceeds(&self, limit: UsageLimit) -> bool {
        self.bytes > limit.bytes || self.inodes > limit.inodes
    }
}
