//! Finding files by their names.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_fsroot::{Entry, FileKind};
use serde::Serialize;

use crate::cancel::{Budget, Cancel, Halt};
use crate::error::Error;
use crate::glob_pattern::PathGlob;
use crate::node::{Node, Wanted, vanished};
use crate::render::shown;
use crate::report::TruncationReason;
use crate::request::DEFAULT_TIME;
use crate::scope::Scope;
use crate::unreadable::{ReadFailure, ReadFailures};
use crate::visit::{Batch, Collector, Flow, Visitor};
use crate::walk::{End, walk};

/// How many files are returned unless the caller says otherwise.
pub const DEFAULT_GLOB_LIMIT: usize = 100;

/// The order of the files that are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last changed first; those of one time in the order of paths.
    #[default]
    Modified,
    /// By path.
    Path,
}

/// Which files to find, and how many to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobRequest {
    /// The glob: `**`, `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}` and `\` before a character that stands
    /// for itself. Without `/` it is about names at any depth. With `/` it is about paths relative
    /// to the scope's directory or to the workspace's root, whichever matches.
    pub pattern: String,
    /// The order of the files.
    pub order: Order,
    /// How many files to return.
    pub limit: usize,
    /// How long the search may go on.
    pub time: Duration,
}

impl GlobRequest {
    /// Returns the request for the last changed files that match a glob.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            order: Order::default(),
            limit: DEFAULT_GLOB_LIMIT,
            time: DEFAULT_TIME,
        }
    }
}

/// The files that match a glob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GlobReport {
    /// Their paths, relative to the workspace's root.
    pub files: Vec<GlobMatch>,
    /// How many match, as far as the search went.
    pub total: u64,
    /// Why some that match are not returned; absent when all are.
    pub truncation: Option<TruncationReason>,
    /// What could not be read.
    pub unreadable: ReadFailures,
}

impl GlobReport {
    /// Returns the paths as text, one on each line.
    pub fn text(&self) -> String {
        self.files.iter().flat_map(|file| [shown(&file.path), "\n".into()]).collect()
    }
}

/// A file that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GlobMatch {
    /// Where it is, relative to the workspace's root.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// When it was last changed.
    #[serde(serialize_with = "crate::json::time")]
    pub modified: SystemTime,
}

/// Finds the files whose name or path matches a glob. Links are found under their own name and not
/// followed; directories are not found.
pub fn glob(
    scope: &Scope<'_>,
    request: &GlobRequest,
    cancel: &Cancel,
) -> Result<GlobReport, Error> {
    let budget = &Budget::new(cancel, request.time);
    let place = scope.place();
    let finder = Finder { pattern: PathGlob::compile(&request.pattern, &place)?, budget };
    let directory = scope.open_directory()?;
    let mut unreadable = Vec::new();
    let first = Node::first(scope, place, directory, &finder, &mut unreadable)?;
    let mut best = Best::new(request);
    best.unreadable.extend(unreadable);
    let (best, end) = walk(scope, first, &finder, best, budget);
    match end {
        End::Cancelled => Err(Error::Cancelled),
        End::TimeUp | End::Exhausted | End::Enough => Ok(best.report(end)),
    }
}

/// Looks at the files of a walk.
struct Finder<'a> {
    pattern: PathGlob,
    budget: &'a Budget,
}

impl Wanted for Finder<'_> {
    fn wants(&self, path: &Path, kind: FileKind) -> bool {
        match kind {
            FileKind::Directory => true,
            FileKind::File | FileKind::Link => self.pattern.matches(path),
            FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Unknown => false,
        }
    }
}

/// The files of one batch that match.
struct Found {
    files: Vec<GlobMatch>,
    unreadable: Vec<ReadFailure>,
}

impl Batch for Found {}

impl Visitor for Finder<'_> {
    type Scratch = ();
    type Batch = Found;

    fn scratch(&self) {}

    fn visit(&self, (): &mut (), node: &Node, entries: &[Entry]) -> Result<(Found, usize), Halt> {
        self.budget.check()?;
        let mut found = Found { files: Vec::with_capacity(entries.len()), unreadable: Vec::new() };
        for entry in entries {
            let path = node.path_of(entry);
            match node.using(|directory| directory.link_metadata(Path::new(&entry.name))) {
                Ok(metadata) => found.files.push(GlobMatch { path, modified: metadata.modified }),
                Err(error) if vanished(error.problem()) => {}
                Err(error) => found.unreadable.push(ReadFailure::of(path, &error)),
            }
        }
        Ok((found, entries.len()))
    }
}

/// A file and its place in the order that was asked for; the smallest comes first.
#[derive(PartialEq, Eq)]
struct Ranked {
    order: Order,
    file: GlobMatch,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_path = || self.file.path.cmp(&other.file.path);
        match self.order {
            Order::Modified => {
                Reverse(self.file.modified).cmp(&Reverse(other.file.modified)).then_with(by_path)
            }
            Order::Path => by_path(),
        }
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The first files in the order that was asked for: as many as are returned, and never more.
struct Best<'a> {
    request: &'a GlobRequest,
    kept: BinaryHeap<Ranked>,
    total: u64,
    unreadable: ReadFailures,
}

impl<'a> Best<'a> {
    fn new(request: &'a GlobRequest) -> Self {
        let unreadable = ReadFailures::default();
        Self { request, kept: BinaryHeap::new(), total: 0, unreadable }
    }

    fn report(self, end: End) -> GlobReport {
        let files: Vec<_> = self.kept.into_sorted_vec().into_iter().map(|one| one.file).collect();
        let truncation = match end {
            End::TimeUp | End::Cancelled => Some(TruncationReason::Time),
            End::Exhausted | End::Enough => {
                (files.len() as u64 != self.total).then_some(TruncationReason::Limit)
            }
        };
        GlobReport { files, total: self.total, truncation, unreadable: self.unreadable }
    }
}

impl Collector<Finder<'_>> for Best<'_> {
    fn take(&mut self, found: Found, (): &mut ()) -> Result<Flow, Halt> {
        self.unreadable.extend(found.unreadable);
        for file in found.files {
            self.total += 1;
            self.kept.push(Ranked { order: self.request.order, file });
            if self.kept.len() > self.request.limit {
                self.kept.pop();
            }
        }
        Ok(Flow::More)
    }

    fn unreadable(&mut self, unreadable: Vec<ReadFailure>) {
        self.unreadable.extend(unreadable);
    }
}
