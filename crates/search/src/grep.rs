//! Finding text.

use std::fs::File;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Entry, FileKind, Metadata};

use crate::cancel::{Budget, Cancel, Halt};
use crate::error::Error;
use crate::file::{Failure, FileSearcher, Outcome};
use crate::filter::Filter;
use crate::hits::{Hits, Wish};
use crate::matcher::Pattern;
use crate::node::{Node, Wanted, vanished};
use crate::page::Page;
use crate::render::MIN_UNIT_BYTES;
use crate::report::GrepReport;
use crate::request::GrepRequest;
use crate::scope::{Opened, Scope};
use crate::unreadable::ReadFailure;
use crate::visit::{Batch, Collector, Visitor};
use crate::walk::{End, walk};

/// The most bytes that a worker searches in one go, unless it is a single file. More would let it
/// sit on large files that others could take, and hold back the results before them.
const MAX_BATCH_BYTES: u64 = 1024 * 1024;

/// Finds the lines that match a pattern, in the order of paths and lines.
///
/// A file that is named is searched whatever its name, type and ignore rules; in a directory,
/// globs, types and rules decide.
pub fn grep(
    scope: &Scope<'_>,
    request: &GrepRequest,
    cancel: &Cancel,
) -> Result<GrepReport, Error> {
    let budget = &Budget::new(cancel, request.time);
    let pattern = Pattern::compile(request)?;
    let place = scope.place();
    let filter = Filter::new(request, &place)?;
    let opened = scope.open()?;
    let grepper = Grepper { request, pattern, filter, budget };
    let mut page = Page::new(&grepper, scope.root.directory(Path::new(""))?);
    let (page, end) = match opened {
        Opened::File(file, metadata) => {
            let end = grepper.search_one(place, file, &metadata, &mut page);
            (page, end)
        }
        Opened::Directory(directory) => {
            let mut unreadable = Vec::new();
            let first = Node::first(scope, place, directory, &grepper, &mut unreadable)?;
            page.unreadable(unreadable);
            walk(scope, first, &grepper, page, budget)
        }
    };
    match end {
        End::Cancelled => Err(Error::Cancelled),
        End::TimeUp | End::Exhausted | End::Enough => Ok(page.report(end)),
    }
}

/// What was found in one file.
#[derive(Debug)]
pub(crate) struct FileHits {
    pub(crate) path: PathBuf,
    pub(crate) hits: Hits,
}

/// What was found in some files of a directory.
#[derive(Debug, Default)]
pub(crate) struct GrepBatch {
    pub(crate) searched: u64,
    pub(crate) binary_matches: u64,
    pub(crate) files: Vec<FileHits>,
    pub(crate) unreadable: Vec<ReadFailure>,
}

impl Batch for GrepBatch {
    fn weight(&self) -> usize {
        self.files.iter().map(|file| file.hits.weight).sum()
    }

    fn shed(&mut self) {
        for file in &mut self.files {
            file.hits.lines = Vec::new();
            (file.hits.bytes, file.hits.weight) = (0, 0);
        }
    }
}

impl GrepBatch {
    /// Leaves out of a wish what the batch holds already: together they are one page at most.
    /// What was not kept and is needed after all is searched again.
    fn narrow(&self, wish: Wish) -> Wish {
        let kept: u64 = self.files.iter().map(|file| file.hits.lines.len() as u64).sum();
        let bytes: usize = self.files.iter().map(|file| file.hits.bytes).sum();
        let lines = wish.lines.saturating_sub(kept);
        Wish { lines, bytes: wish.bytes.saturating_sub(bytes), ..wish }
    }

    fn add(&mut self, path: impl Fn() -> PathBuf, outcome: Outcome) {
        self.searched += 1;
        match outcome {
            Outcome::Text(hits) => self.add_hits(path, hits),
            Outcome::Partly(hits, reason) => {
                self.unreadable.push(ReadFailure::new(path(), reason));
                self.add_hits(path, hits);
            }
            Outcome::Binary { matches } => self.binary_matches += u64::from(matches),
        }
    }

    fn add_hits(&mut self, path: impl Fn() -> PathBuf, hits: Hits) {
        if hits.matching > 0 {
            self.files.push(FileHits { path: path(), hits });
        }
    }
}

/// Searches the files of a walk.
#[derive(Debug)]
pub(crate) struct Grepper<'a> {
    pub(crate) request: &'a GrepRequest,
    pattern: Pattern,
    filter: Filter,
    pub(crate) budget: &'a Budget,
}

impl Grepper<'_> {
    /// Returns how much of one file can matter when `skip` of its lines are known.
    pub(crate) fn wish(&self, skip: u64) -> Wish {
        let request = self.request;
        // One more than the page can hold tells that there is more.
        let fitting = (request.output_bytes / MIN_UNIT_BYTES) as u64 + 2;
        let lines = request.limit.map_or(fitting, |limit| fitting.min(limit.saturating_add(1)));
        let stop_after =
            if request.totals { u64::MAX } else { request.offset.max(skip).saturating_add(lines) };
        Wish {
            mode: request.mode,
            skip,
            lines,
            // One unit is returned however small the page is.
            bytes: request.output_bytes.max(1),
            stop_after,
            line_bytes: request.line_bytes.min(request.output_bytes),
        }
    }

    /// Searches the one file of a scope.
    fn search_one<'a>(
        &'a self,
        path: PathBuf,
        file: File,
        metadata: &Metadata,
        page: &mut Page<'a>,
    ) -> End {
        let mut searcher = self.scratch();
        let mut batch = GrepBatch::default();
        match searcher.search(file, metadata, self.wish(0), self.budget) {
            Ok(outcome) => batch.add(|| path.clone(), outcome),
            Err(Failure::ReadFailure(reason)) => {
                page.unreadable(vec![ReadFailure::new(path, reason)]);
            }
            Err(Failure::Halt(halt)) => return halt.into(),
        }
        page.take(batch, &mut searcher).map_or_else(End::from, |_| End::Exhausted)
    }
}

impl Wanted for Grepper<'_> {
    fn wants(&self, path: &Path, kind: FileKind) -> bool {
        self.filter.wants(path, kind)
    }
}

impl Visitor for Grepper<'_> {
    type Scratch = FileSearcher;
    type Batch = GrepBatch;

    fn scratch(&self) -> FileSearcher {
        FileSearcher::new(self.request, self.pattern.clone())
    }

    fn visit(
        &self,
        searcher: &mut FileSearcher,
        node: &Node,
        entries: &[Entry],
    ) -> Result<(GrepBatch, usize), Halt> {
        let mut batch = GrepBatch::default();
        let mut bytes = 0;
        for (visited, entry) in entries.iter().enumerate() {
            self.budget.check()?;
            let path = || node.path_of(entry);
            let (file, metadata) = match node.open_file(&entry.name) {
                Ok(opened) => opened,
                Err(error) if vanished(error.problem()) => continue,
                Err(error) => {
                    batch.unreadable.push(ReadFailure::of(path(), &error));
                    continue;
                }
            };
            bytes += metadata.size;
            if visited > 0 && bytes > MAX_BATCH_BYTES {
                return Ok((batch, visited));
            }
            match searcher.search(file, &metadata, batch.narrow(self.wish(0)), self.budget) {
                Ok(outcome) => batch.add(path, outcome),
                Err(Failure::ReadFailure(reason)) => {
                    batch.unreadable.push(ReadFailure::new(path(), reason));
                }
                Err(Failure::Halt(halt)) => return Err(halt),
            }
        }
        Ok((batch, entries.len()))
    }
}
