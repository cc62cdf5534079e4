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

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Entry, FileKind};

use crate::node::{ExpandedDirectory, Node};
use crate::read_failure::ReadFailures;
use crate::visitor::Batch;

/// Files of one batch: enough to make the lock of the queue cheap, few enough to divide a directory
/// among all workers.
const BATCH: usize = 16;

/// Bounds the text of finished results that wait for earlier ones.
const MAX_BACKLOG_BYTES: usize = 16 * 1024 * 1024;

/// Consecutive entries of a directory.
///
/// A queued listing holds the remaining entries; one that is handed to a worker is a single
/// directory to enter, or a batch of files to visit.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) node: Arc<Node>,
    entries: Arc<[Entry]>,
    range: Range<usize>,
}

impl Listing {
    /// Returns the path of the first entry, by which listings are ordered. No other listing has it.
    fn key(&self) -> Option<PathBuf> {
        self.entries().first().map(|entry| self.node.path_of(entry))
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[self.range.clone()]
    }

    pub(crate) fn directory(&self) -> Option<&Entry> {
        self.entries().first().filter(|entry| entry.kind == FileKind::Directory)
    }

    /// Returns the entries after the first `count`.
    pub(crate) fn rest_after(&self, count: usize) -> Self {
        let range = self.range.start + count..self.range.end;
        Self { node: Arc::clone(&self.node), entries: Arc::clone(&self.entries), range }
    }

    /// Splits off the next item: one directory, or a batch of files before the next directory.
    fn split(mut self) -> (Self, Self) {
        let is_file = |entry: &&Entry| entry.kind != FileKind::Directory;
        let files = self.entries().iter().take(BATCH).take_while(is_file).count();
        let rest = self.rest_after(files.max(1));
        self.range.end = rest.range.start;
        (self, rest)
    }
}

impl From<ExpandedDirectory> for Listing {
    fn from(directory: ExpandedDirectory) -> Self {
        let range = 0..directory.entries.len();
        Self { node: directory.node, entries: directory.entries.into(), range }
    }
}

/// The result of one item.
#[derive(Debug)]
pub(crate) struct WorkResult<B> {
    pub(crate) batch: Option<B>,
    pub(crate) unreadable: ReadFailures,
}

impl<B: Batch> WorkResult<B> {
    fn weight(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::weight)
    }
}

#[derive(Debug)]
pub(crate) enum NextItem {
    Item(Listing),
    /// Nothing is pending, but a running item may add work.
    Wait,
    Done,
}

#[derive(Debug)]
pub(crate) struct Queue<B> {
    pending: BTreeMap<PathBuf, Listing>,
    running: Vec<Option<PathBuf>>,
    finished: BTreeMap<PathBuf, WorkResult<B>>,
    weight: usize,
    stopped: bool,
}

impl<B: Batch> Queue<B> {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            pending: BTreeMap::new(),
            running: vec![None; workers],
            finished: BTreeMap::new(),
            weight: 0,
            stopped: false,
        }
    }

    /// Adds the entries of a listing; an empty one is dropped.
    pub(crate) fn add(&mut self, listing: Listing) {
        self.pending.extend(listing.key().map(|key| (key, listing)));
    }

    /// Hands out the item with the smallest path.
    pub(crate) fn next(&mut self, worker: usize) -> NextItem {
        if self.stopped {
            return NextItem::Done;
        }
        let Some((key, listing)) = self.pending.pop_first() else {
            let idle = self.running.iter().all(Option::is_none);
            return if idle { NextItem::Done } else { NextItem::Wait };
        };
        let (work, rest) = listing.split();
        self.add(rest);
        self.running[worker] = Some(key);
        NextItem::Item(work)
    }

    /// Records the result of an item and the work that follows from it.
    pub(crate) fn finish(
        &mut self,
        worker: usize,
        result: Option<WorkResult<B>>,
        more: Option<Listing>,
    ) {
        if let Some(more) = more {
            self.add(more);
        }
        let (Some(key), Some(mut result)) = (self.running[worker].take(), result) else { return };
        // One slow file must not make the results after it accumulate.
        if self.weight + result.weight() > MAX_BACKLOG_BYTES {
            result.batch.iter_mut().for_each(Batch::shed);
        }
        self.weight += result.weight();
        self.finished.insert(key, result);
    }

    /// Ends the walk. Items in progress stay part of the frontier, so that only results before them
    /// become final.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Removes and returns the next final result.
    pub(crate) fn take_final(&mut self) -> Option<WorkResult<B>> {
        let (first, _) = self.finished.first_key_value()?;
        let is_final = self.frontier().is_none_or(|frontier| first.as_path() < frontier);
        let (_, result) = is_final.then(|| self.finished.pop_first()).flatten()?;
        self.weight -= result.weight();
        Some(result)
    }

    fn frontier(&self) -> Option<&Path> {
        let pending = self.pending.first_key_value().map(|(key, _)| key);
        self.running.iter().flatten().chain(pending).min().map(PathBuf::as_path)
    }
}
