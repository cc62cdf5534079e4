//! Search for files by name.
//!
//! The walk visits every file that matches and keeps the first `limit` of the requested order in a
//! heap, so memory is bounded by the limit while `total` counts all. Sorting by time needs every
//! match before the first can be returned, which is why there are no pages: a caller narrows the
//! pattern instead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::budget::{Budget, Halt};
use crate::glob_pattern::PathGlob;
use crate::node::{Node, PathFilter};
use crate::render::shown;
use crate::visitor::{Batch, Collector, Visitor};
use crate::walk::walk;
use crate::{Cancel, DEFAULT_TIME, Error, ReadFailures, Scope, TruncationReason};
use carrel_fsroot::{Entry, FileKind};

/// Files returned by a request that sets no limit.
pub const DEFAULT_GLOB_LIMIT: usize = 100;

/// The order of the files that are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Most recently modified first; equal times by path.
    #[default]
    Modified,
    /// By path, component by component.
    Path,
}

/// A search for files by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobRequest {
    /// The glob: `**`, `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, and `\` to escape a character. Without
    /// `/` it matches names at any depth. With `/` it matches paths relative to the scope's
    /// directory or to the workspace's root.
    pub pattern: String,
    /// Order of the returned files.
    pub order: Order,
    /// Maximum number of returned files.
    pub limit: usize,
    /// Time limit; the report then contains the matches found so far.
    pub time: Duration,
}

impl GlobRequest {
    /// Creates a request for the most recently modified files that match a glob.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            order: Order::default(),
            limit: DEFAULT_GLOB_LIMIT,
            time: DEFAULT_TIME,
        }
    }
}

/// The result of a search for files: the first matches and the number of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobReport {
    /// The first matches in the requested order.
    pub files: Vec<GlobMatch>,
    /// Number of matching files that were visited.
    pub total: u64,
    /// The reason why `files` is incomplete; `None` if it contains all matches.
    pub truncation: Option<TruncationReason>,
    /// Directories and files that could not be read.
    pub unreadable: ReadFailures,
}

impl GlobReport {
    /// Formats the paths as text, one on each line.
    pub fn text(&self) -> String {
        self.files.iter().flat_map(|file| [shown(&file.path), "\n".into()]).collect()
    }
}

/// A file that matches a glob, with its path relative to the workspace's root.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are a path and its modification time")]
pub struct GlobMatch {
    pub path: PathBuf,
    pub modified: SystemTime,
}

/// Finds the files whose name or path matches a glob. Links match under their own name and are not
/// followed; directories never match.
pub fn glob(
    scope: &Scope<'_>,
    request: &GlobRequest,
    cancel: &Cancel,
) -> Result<GlobReport, Error> {
    let budget = &Budget::new(cancel, request.time);
    let path = scope.resolved_path();
    let visitor = GlobVisitor { pattern: PathGlob::compile(&request.pattern, &path)?, budget };
    let directory = scope.open_directory()?;
    let mut top = TopMatches {
        request,
        kept: BinaryHeap::new(),
        total: 0,
        unreadable: ReadFailures::default(),
    };
    let first = Node::root(scope, path, directory, &visitor, &mut top.unreadable)?;
    let (top, end) = walk(scope, first, &visitor, top, budget);
    match end {
        Some(Halt::Cancelled) => Err(Error::Cancelled),
        Some(Halt::TimeUp | Halt::Enough) | None => Ok(top.report(end)),
    }
}

struct GlobVisitor<'a> {
    pattern: PathGlob,
    budget: &'a Budget,
}

impl PathFilter for GlobVisitor<'_> {
    fn accepts(&self, path: &Path, kind: FileKind) -> bool {
        match kind {
            FileKind::Directory => true,
            FileKind::File | FileKind::Link => self.pattern.matches(path),
            FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Unknown => false,
        }
    }
}

#[derive(Default)]
struct GlobBatch {
    files: Vec<GlobMatch>,
    unreadable: ReadFailures,
}

impl Batch for GlobBatch {}

impl Visitor for GlobVisitor<'_> {
    type Scratch = ();
    type Batch = GlobBatch;

    fn scratch(&self) {}

    fn visit(
        &self,
        (): &mut (),
        node: &Node,
        entries: &[Entry],
    ) -> Result<(GlobBatch, usize), Halt> {
        self.budget.check()?;
        let mut found = GlobBatch::default();
        for entry in entries {
            let path = node.path_of(entry);
            match node.with_directory(|directory| directory.link_metadata(Path::new(&entry.name))) {
                Ok(metadata) => found.files.push(GlobMatch { path, modified: metadata.modified }),
                Err(error) => found.unreadable.add_error(path, &error),
            }
        }
        Ok((found, entries.len()))
    }
}

/// The rank of a match, the first of which is the smallest: its time, if the order asks for it, and
/// its path. The time is repeated for the report.
type Rank = (Option<Reverse<SystemTime>>, PathBuf, SystemTime);

/// The first `limit` matches in the requested order. The heap's top is the worst of them.
struct TopMatches<'a> {
    request: &'a GlobRequest,
    kept: BinaryHeap<Rank>,
    total: u64,
    unreadable: ReadFailures,
}

impl TopMatches<'_> {
    fn report(self, end: Option<Halt>) -> GlobReport {
        let ranked = self.kept.into_sorted_vec().into_iter();
        let files: Vec<_> =
            ranked.map(|(_, path, modified)| GlobMatch { path, modified }).collect();
        let truncation = match end {
            Some(Halt::TimeUp | Halt::Cancelled) => Some(TruncationReason::Time),
            None | Some(Halt::Enough) => {
                (files.len() as u64 != self.total).then_some(TruncationReason::Limit)
            }
        };
        GlobReport { files, total: self.total, truncation, unreadable: self.unreadable }
    }
}

impl Collector<GlobVisitor<'_>> for TopMatches<'_> {
    fn take(&mut self, found: GlobBatch, (): &mut ()) -> Result<ControlFlow<()>, Halt> {
        self.unreadable.merge(found.unreadable);
        for GlobMatch { path, modified } in found.files {
            self.total += 1;
            let time = (self.request.order == Order::Modified).then_some(Reverse(modified));
            self.kept.push((time, path, modified));
            if self.kept.len() > self.request.limit {
                self.kept.pop();
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn unreadable(&mut self) -> &mut ReadFailures {
        &mut self.unreadable
    }
}
