//! The work queue of a walk: pending work and finished results, both ordered by path.
//!
//! Work is handed out smallest path first. The *frontier* is the smallest path that is pending or
//! being processed. Every finished result before it is final, because no path can be inserted
//! before it any more: new work comes only from directories and files at or after the frontier.
//! Final results are handed to the collector in path order, which makes the output independent of
//! threads and lets a walk stop as soon as the final part is enough.
//!
//! A result that waits for a slow file before it stays in memory. The pending results are bounded
//! by 16 MiB; beyond it new ones drop their text, which the page searches again if it needs it.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Entry, FileKind};

use crate::node::{ExpandedDirectory, Node};

/// Files of one batch: enough to make the lock of the queue cheap, few enough to divide a directory
/// among all workers.
const BATCH: usize = 16;

/// Bounds the text of finished results that wait for earlier ones.
const MAX_BACKLOG_BYTES: usize = 16 * 1024 * 1024;

/// The remaining entries of a directory.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Path of the next entry, by which listings are ordered.
    key: PathBuf,
    node: Arc<Node>,
    entries: Arc<[Entry]>,
    range: Range<usize>,
}

impl Listing {
    fn new(node: &Arc<Node>, entries: &Arc<[Entry]>, range: Range<usize>) -> Option<Self> {
        let key = node.path_of(entries.get(range.clone())?.first()?);
        Some(Self { key, node: Arc::clone(node), entries: Arc::clone(entries), range })
    }

    /// Splits off the next item: one directory, or a batch of files before the next directory.
    fn split(self) -> (WorkItem, Option<Self>) {
        let entries = &self.entries[self.range.clone()];
        let is_file = |entry: &&Entry| entry.kind != FileKind::Directory;
        let files = entries.iter().take(BATCH).take_while(is_file).count();
        let middle = self.range.start + files.max(1);
        let rest = Self::new(&self.node, &self.entries, middle..self.range.end);
        let range = self.range.start..middle;
        (WorkItem { key: self.key, node: self.node, entries: self.entries, range }, rest)
    }
}

impl PartialEq for Listing {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Listing {}

impl PartialOrd for Listing {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Listing {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// A directory to enter, or a batch of files to visit.
#[derive(Debug)]
pub(crate) struct WorkItem {
    pub(crate) key: PathBuf,
    pub(crate) node: Arc<Node>,
    entries: Arc<[Entry]>,
    range: Range<usize>,
}

impl WorkItem {
    /// Returns the entries: exactly one directory, or at least one file.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[self.range.clone()]
    }

    /// Returns the files after the first `visited`, as work for any worker.
    pub(crate) fn rest_after(&self, visited: usize) -> FollowUp {
        let range = self.range.start + visited..self.range.end;
        Listing::new(&self.node, &self.entries, range).map_or(FollowUp::None, FollowUp::Rest)
    }

    pub(crate) fn directory(&self) -> Option<&Entry> {
        self.entries().first().filter(|entry| entry.kind == FileKind::Directory)
    }
}

/// The work that follows from an item.
#[derive(Debug)]
pub(crate) enum FollowUp {
    None,
    /// The entries of the directory that was entered.
    Directory(ExpandedDirectory),
    /// The files that the worker left to others.
    Rest(Listing),
}

#[derive(Debug)]
pub(crate) enum NextItem {
    Item(WorkItem),
    /// Nothing is pending, but a running item may add work.
    Wait,
    Done,
}

/// A result that is held in memory until the results before it are final.
pub(crate) trait Buffered {
    fn weight(&self) -> usize;

    fn shed(&mut self);
}

#[derive(Debug)]
pub(crate) struct Queue<T> {
    pending: BinaryHeap<Reverse<Listing>>,
    running: Vec<Option<PathBuf>>,
    finished: BTreeMap<PathBuf, Vec<T>>,
    weight: usize,
    stopped: bool,
}

impl<T: Buffered> Queue<T> {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            pending: BinaryHeap::new(),
            running: vec![None; workers],
            finished: BTreeMap::new(),
            weight: 0,
            stopped: false,
        }
    }

    pub(crate) fn add(&mut self, more: FollowUp) {
        let listing = match more {
            FollowUp::None => None,
            FollowUp::Directory(ExpandedDirectory { node, entries }) => {
                let range = 0..entries.len();
                Listing::new(&node, &entries.into(), range)
            }
            FollowUp::Rest(listing) => Some(listing),
        };
        self.pending.extend(listing.map(Reverse));
    }

    /// Hands out the item with the smallest path.
    pub(crate) fn next(&mut self, worker: usize) -> NextItem {
        if self.stopped {
            return NextItem::Done;
        }
        let Some(Reverse(listing)) = self.pending.pop() else {
            let idle = self.running.iter().all(Option::is_none);
            return if idle { NextItem::Done } else { NextItem::Wait };
        };
        let (work, rest) = listing.split();
        self.pending.extend(rest.map(Reverse));
        self.running[worker] = Some(work.key.clone());
        NextItem::Item(work)
    }

    /// Records the result of an item and the work that follows from it.
    pub(crate) fn finish(&mut self, worker: usize, result: Option<T>, more: FollowUp) {
        self.add(more);
        let (Some(key), Some(mut result)) = (self.running[worker].take(), result) else { return };
        // One slow file must not make the results after it accumulate.
        if self.weight + result.weight() > MAX_BACKLOG_BYTES {
            result.shed();
        }
        self.weight += result.weight();
        self.finished.entry(key).or_default().push(result);
    }

    /// Ends the walk. Items in progress stay part of the frontier, so that only results before them
    /// become final.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Removes and returns the next final results.
    pub(crate) fn take_final(&mut self) -> Option<Vec<T>> {
        let (first, _) = self.finished.first_key_value()?;
        let is_final = self.frontier().is_none_or(|frontier| first.as_path() < frontier);
        let (_, result) = is_final.then(|| self.finished.pop_first()).flatten()?;
        self.weight -= result.iter().map(Buffered::weight).sum::<usize>();
        Some(result)
    }

    fn frontier(&self) -> Option<&Path> {
        let pending = self.pending.peek().map(|Reverse(listing)| listing.key.as_path());
        self.running.iter().flatten().map(PathBuf::as_path).chain(pending).min()
    }
}
