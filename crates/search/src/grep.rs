//! Search for text: the visitor that searches the files of a walk.
//!
//! Each worker searches batches of files with its own [`FileSearcher`] and returns the matching
//! lines that can still be on the page. How many that are is known beforehand ([`SinkLimits`]): at
//! most the limit of the request plus one, and at most as many as fit into its bytes. Results reach
//! the [`Page`] in path order.

use std::fs::File;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Entry, FileKind, Metadata};

use crate::budget::{Budget, Halt};
use crate::file_filter::FileFilter;
use crate::file_search::{FileSearchError, FileSearcher, SearchedFile};
use crate::line_sink::{CollectedLines, SinkLimits};
use crate::matcher::Pattern;
use crate::node::{Node, PathFilter};
use crate::page::Page;
use crate::render::MIN_UNIT_BYTES;
use crate::scope::ScopeTarget;
use crate::visitor::{Batch, Collector, Visitor};
use crate::walk::walk;
use crate::{Cancel, Error, GrepReport, GrepRequest, ReadFailures, Scope};

/// Bounds the bytes of one batch, unless it is a single file. Larger batches would keep files from
/// idle workers and delay the results that follow in path order.
const MAX_BATCH_BYTES: u64 = 1024 * 1024;

/// Finds the lines that match a pattern, in path and line order.
///
/// A scope that is a single file is searched regardless of globs, types and ignore rules; in a
/// directory they select the files. Blocks the calling thread, which takes part in the search.
pub fn grep(
    scope: &Scope<'_>,
    request: &GrepRequest,
    cancel: &Cancel,
) -> Result<GrepReport, Error> {
    let budget = &Budget::new(cancel, request.time);
    let pattern = Pattern::compile(request)?;
    let path = scope.resolved_path();
    let filter = FileFilter::new(request, &path)?;
    let opened = scope.open()?;
    let visitor = GrepVisitor { request, pattern, filter, budget };
    let mut page = Page::new(&visitor, scope.root.directory(Path::new(""))?);
    let (page, end) = match opened {
        ScopeTarget::File(file, metadata) => {
            let end = visitor.search_one(path, file, &metadata, &mut page);
            (page, end)
        }
        ScopeTarget::Directory(directory) => {
            let first = Node::root(scope, path, directory, &visitor, page.unreadable())?;
            walk(scope, first, &visitor, page, budget)
        }
    };
    match end {
        Some(Halt::Cancelled) => Err(Error::Cancelled),
        Some(Halt::TimeUp | Halt::Enough) | None => Ok(page.report(end)),
    }
}

/// A file with at least one matching line.
#[derive(Debug)]
pub(crate) struct MatchedFile {
    pub(crate) path: PathBuf,
    pub(crate) collected: CollectedLines,
}

/// The results for a batch of files of one directory.
#[derive(Debug, Default)]
pub(crate) struct GrepBatch {
    pub(crate) searched: u64,
    pub(crate) binary_matches: u64,
    pub(crate) files: Vec<MatchedFile>,
    pub(crate) unreadable: ReadFailures,
}

impl Batch for GrepBatch {
    fn weight(&self) -> usize {
        self.files.iter().map(|file| file.collected.weight).sum()
    }

    fn shed(&mut self) {
        for file in &mut self.files {
            file.collected.lines = Vec::new();
            (file.collected.bytes, file.collected.weight) = (0, 0);
        }
    }
}

impl GrepBatch {
    /// Reduces the limits by what the batch already collected, so that a batch never holds more
    /// than one page. Lines that are needed after all, because earlier files had fewer, are
    /// searched again.
    fn narrow(&self, limits: SinkLimits) -> SinkLimits {
        let kept: u64 = self.files.iter().map(|file| file.collected.lines.len() as u64).sum();
        let bytes: usize = self.files.iter().map(|file| file.collected.bytes).sum();
        let lines = limits.lines.saturating_sub(kept);
        SinkLimits { lines, bytes: limits.bytes.saturating_sub(bytes), ..limits }
    }

    fn add(&mut self, path: impl Fn() -> PathBuf, outcome: SearchedFile) {
        self.searched += 1;
        match outcome {
            SearchedFile::Text(collected) => self.add_hits(path, collected),
            SearchedFile::Partial(collected, reason) => {
                self.unreadable.add(path(), reason);
                self.add_hits(path, collected);
            }
            SearchedFile::Binary { matches } => self.binary_matches += u64::from(matches),
        }
    }

    fn add_hits(&mut self, path: impl Fn() -> PathBuf, collected: CollectedLines) {
        if collected.matching > 0 {
            self.files.push(MatchedFile { path: path(), collected });
        }
    }
}

#[derive(Debug)]
pub(crate) struct GrepVisitor<'a> {
    pub(crate) request: &'a GrepRequest,
    pattern: Pattern,
    filter: FileFilter,
    pub(crate) budget: &'a Budget,
}

impl GrepVisitor<'_> {
    /// Returns the limits for one file of which `skip` lines are on the page already.
    pub(crate) fn limits(&self, skip: u64) -> SinkLimits {
        let request = self.request;
        // One line more than fits on the page shows that there are more.
        let fitting = (request.output_bytes / MIN_UNIT_BYTES) as u64 + 2;
        let lines = request.limit.map_or(fitting, |limit| fitting.min(limit.saturating_add(1)));
        let stop_after =
            if request.totals { u64::MAX } else { request.offset.max(skip).saturating_add(lines) };
        SinkLimits {
            mode: request.mode,
            skip,
            lines,
            // One unit is returned even if it exceeds the page.
            bytes: request.output_bytes.max(1),
            stop_after,
            line_bytes: request.line_bytes.min(request.output_bytes),
        }
    }

    fn search_one<'a>(
        &'a self,
        path: PathBuf,
        file: File,
        metadata: &Metadata,
        page: &mut Page<'a>,
    ) -> Option<Halt> {
        let mut searcher = self.scratch();
        let mut batch = GrepBatch::default();
        match searcher.search(file, metadata, self.limits(0), self.budget) {
            Ok(outcome) => batch.add(|| path.clone(), outcome),
            Err(FileSearchError::Unreadable(reason)) => page.unreadable().add(path, reason),
            Err(FileSearchError::Halt(halt)) => return Some(halt),
        }
        page.take(batch, &mut searcher).err()
    }
}

impl PathFilter for GrepVisitor<'_> {
    fn accepts(&self, path: &Path, kind: FileKind) -> bool {
        self.filter.accepts(path, kind)
    }
}

impl Visitor for GrepVisitor<'_> {
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
                Err(error) => {
                    batch.unreadable.add_error(path(), &error);
                    continue;
                }
            };
            bytes += metadata.size;
            if visited > 0 && bytes > MAX_BATCH_BYTES {
                return Ok((batch, visited));
            }
            match searcher.search(file, &metadata, batch.narrow(self.limits(0)), self.budget) {
                Ok(outcome) => batch.add(path, outcome),
                Err(FileSearchError::Unreadable(reason)) => batch.unreadable.add(path(), reason),
                Err(FileSearchError::Halt(halt)) => return Err(halt),
            }
        }
        Ok((batch, entries.len()))
    }
}
