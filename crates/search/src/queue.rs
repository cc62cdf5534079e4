//! What is left to do on a walk, and what is done, in the order of paths.
//!
//! Work is handed out smallest path first. The *frontier* is the smallest path that is waiting or
//! being worked on: everything finished before it is final, because nothing can come in between
//! any more. That makes the answer independent of threads, and lets a walk stop as soon as the
//! final part is enough.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Entry, FileKind};

use crate::node::{Expanded, Node};

/// How many files a worker takes at once: enough to make the queue cheap, few enough to share
/// out a directory among all workers.
const BATCH: usize = 16;

/// The most that results hold while they wait for those before them; beyond it they are kept
/// without their text, which is searched again if it is needed.
const MAX_BACKLOG_BYTES: usize = 16 * 1024 * 1024;

/// The rest of a directory, waiting for its turn.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The path of the next entry.
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

    /// Splits off the next piece of work: one directory, or some files before the next one.
    fn split(self) -> (Work, Option<Self>) {
        let entries = &self.entries[self.range.clone()];
        let is_file = |entry: &&Entry| entry.kind != FileKind::Directory;
        let files = entries.iter().take(BATCH).take_while(is_file).count();
        let middle = self.range.start + files.max(1);
        let rest = Self::new(&self.node, &self.entries, middle..self.range.end);
        let range = self.range.start..middle;
        (Work { key: self.key, node: self.node, entries: self.entries, range }, rest)
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

/// A piece of work: a directory to enter, or some files to visit.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) key: PathBuf,
    pub(crate) node: Arc<Node>,
    entries: Arc<[Entry]>,
    range: Range<usize>,
}

impl Work {
    /// Returns the entries, never none: one directory, or files only.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[self.range.clone()]
    }

    /// Returns what is left when only some of the files were visited.
    pub(crate) fn rest_after(&self, visited: usize) -> More {
        let range = self.range.start + visited..self.range.end;
        Listing::new(&self.node, &self.entries, range).map_or(More::None, More::Rest)
    }

    /// Returns the directory to enter, if it is one.
    pub(crate) fn directory(&self) -> Option<&Entry> {
        self.entries().first().filter(|entry| entry.kind == FileKind::Directory)
    }
}

/// What is to be done after a piece of work.
#[derive(Debug)]
pub(crate) enum More {
    /// Nothing.
    None,
    /// What is in the directory that was entered.
    Below(Expanded),
    /// What the worker left for others.
    Rest(Listing),
}

/// What a worker gets when it asks for work.
#[derive(Debug)]
pub(crate) enum Next {
    /// Something to do.
    Work(Work),
    /// Nothing at the moment, but others may find more.
    Wait,
    /// Nothing any more.
    Over,
}

/// A result that takes up memory while it waits for those before it.
pub(crate) trait Weighed {
    /// Returns about how many bytes it takes up.
    fn weight(&self) -> usize;

    /// Gives up what can be had again.
    fn shed(&mut self);
}

/// What is left to do and what is done.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    waiting: BinaryHeap<Reverse<Listing>>,
    /// What each worker is at; `None` when it is at nothing.
    running: Vec<Option<PathBuf>>,
    finished: BTreeMap<PathBuf, Vec<T>>,
    /// The weight of all that is finished.
    weight: usize,
    stopped: bool,
}

impl<T: Weighed> Queue<T> {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            running: vec![None; workers],
            finished: BTreeMap::new(),
            weight: 0,
            stopped: false,
        }
    }

    /// Adds what is to be done.
    pub(crate) fn add(&mut self, more: More) {
        let listing = match more {
            More::None => None,
            More::Below(Expanded { node, entries }) => {
                let range = 0..entries.len();
                Listing::new(&node, &entries.into(), range)
            }
            More::Rest(listing) => Some(listing),
        };
        self.waiting.extend(listing.map(Reverse));
    }

    /// Hands out the work with the smallest path.
    pub(crate) fn next(&mut self, worker: usize) -> Next {
        if self.stopped {
            return Next::Over;
        }
        let Some(Reverse(listing)) = self.waiting.pop() else {
            let idle = self.running.iter().all(Option::is_none);
            return if idle { Next::Over } else { Next::Wait };
        };
        let (work, rest) = listing.split();
        self.waiting.extend(rest.map(Reverse));
        self.running[worker] = Some(work.key.clone());
        Next::Work(work)
    }

    /// Notes what a piece of work gave and what it leaves to be done.
    pub(crate) fn finish(&mut self, worker: usize, given: Option<T>, more: More) {
        self.add(more);
        let (Some(key), Some(mut given)) = (self.running[worker].take(), given) else { return };
        // One slow file must not make everything behind it pile up.
        if self.weight + given.weight() > MAX_BACKLOG_BYTES {
            given.shed();
        }
        self.weight += given.weight();
        self.finished.entry(key).or_default().push(given);
    }

    /// Ends the walk. What is being worked on stays the frontier, so that only what lies before
    /// it counts.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Takes the next final result.
    pub(crate) fn take_final(&mut self) -> Option<Vec<T>> {
        let (first, _) = self.finished.first_key_value()?;
        let is_final = self.frontier().is_none_or(|frontier| first.as_path() < frontier);
        let (_, given) = is_final.then(|| self.finished.pop_first()).flatten()?;
        self.weight -= given.iter().map(Weighed::weight).sum::<usize>();
        Some(given)
    }

    fn frontier(&self) -> Option<&Path> {
        let waiting = self.waiting.peek().map(|Reverse(listing)| listing.key.as_path());
        self.running.iter().flatten().map(PathBuf::as_path).chain(waiting).min()
    }
}
