//! Trusted entries that vanished.
//!
//! A command could move a repository to an unwatched path, change a hook there, and move it back; or
//! remove a settings file in one command and write another in the next. Both would look like new
//! entries, which a new clone may legitimately bring. So the baseline of vanished entries is kept, as
//! databases keep tombstones, and put back when the path, or the same directory at another path,
//! appears again: the diff then compares it as a change.
//!
//! Memory is bounded. When the oldest tombstones have been evicted, it can no longer be told what is
//! really new, and from then on nothing that looks new may bring settings along.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::diff::{NewRepositoryPolicy, below};
use super::directory_link::rebased;
use super::renames::is_same;
use super::snapshot::{Snapshot, WatchedEntry};

/// The most entries that are kept; the oldest are evicted.
const MAX_ENTRIES: usize = 4096;

/// The most memory for their contents.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The baseline of vanished entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Tombstones {
    entries: Snapshot,
    numbers: HashMap<PathBuf, u64>,
    bytes: usize,
    last_number: u64,
    has_evicted: bool,
}

impl Tombstones {
    /// Keeps entries that have vanished, and evicts the oldest beyond the bounds.
    pub(super) fn record(&mut self, vanished: impl IntoIterator<Item = (PathBuf, WatchedEntry)>) {
        for (path, entry) in vanished {
            self.remove(&path);
            self.last_number += 1;
            self.bytes += content_bytes(&entry);
            self.numbers.insert(path.clone(), self.last_number);
            self.entries.insert(path, entry);
        }
        if self.is_full() {
            self.evict_oldest();
        }
    }

    fn is_full(&self) -> bool {
        self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES
    }

    fn evict_oldest(&mut self) {
        let mut paths: Vec<PathBuf> = self.numbers.keys().cloned().collect();
        paths.sort_by_key(|path| self.numbers[path]);
        for path in paths {
            if !self.is_full() {
                break;
            }
            self.remove(&path);
            self.has_evicted = true;
        }
    }

    /// Puts back into the baseline what has reappeared, by its path or as the same directory at another.
    ///
    /// An entry that is back at its path needs its tombstone no more. A directory that is back at another
    /// path gets a copy, and the tombstone stays: its old path is still vacant, and what appears there
    /// later has to be compared with what was trusted there.
    pub(super) fn revive(&mut self, trusted: &mut Snapshot, seen: &Snapshot) {
        if self.entries.is_empty() {
            return;
        }
        let is_back =
            |path: &&PathBuf| !trusted.contains_key(*path) && self.entries.contains_key(*path);
        let back: Vec<&PathBuf> = seen.keys().filter(is_back).collect();
        for path in back {
            for (path, entry) in self.take(path) {
                trusted.entry(path).or_insert(entry);
            }
        }
        let arrived: Vec<&PathBuf> = seen
            .iter()
            .filter(|(path, entry)| {
                entry.is_tracked_across_renames() && !trusted.contains_key(*path)
            })
            .map(|(path, _)| path)
            .collect();
        for path in arrived {
            let was = |from: &&PathBuf| is_same(&self.entries, from, seen, path);
            let movable =
                self.entries.iter().filter(|(_, entry)| entry.is_tracked_across_renames());
            if let Some(from) = movable.map(|(from, _)| from).find(was) {
                for (path, entry) in rebased(&self.entries, from, path) {
                    trusted.entry(path).or_insert(entry);
                }
            }
        }
    }

    /// Returns the policy for repositories without a tombstone: they are certainly new unless tombstones
    /// were evicted.
    pub(super) fn new_repository_policy(&self) -> NewRepositoryPolicy {
        if self.has_evicted {
            NewRepositoryPolicy::QuarantineSettings
        } else {
            NewRepositoryPolicy::AcceptSettings
        }
    }

    fn take(&mut self, path: &Path) -> Vec<(PathBuf, WatchedEntry)> {
        let found = self.entries.get_key_value(path).into_iter().chain(below(&self.entries, path));
        let paths: Vec<PathBuf> = found.map(|(path, _)| path.clone()).collect();
        paths.into_iter().filter_map(|path| self.remove(&path).map(|entry| (path, entry))).collect()
    }

    fn remove(&mut self, path: &Path) -> Option<WatchedEntry> {
        let entry = self.entries.remove(path)?;
        self.numbers.remove(path);
        self.bytes -= content_bytes(&entry);
        Some(entry)
    }
}

fn content_bytes(entry: &WatchedEntry) -> usize {
    entry.bytes().map_or(0, <[u8]>::len)
}
