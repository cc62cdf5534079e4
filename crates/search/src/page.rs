//! One page of a text search, filled in path order.
//!
//! The offset is the cursor: it counts the units before the page, so a page is computed by
//! searching from the start and skipping. That needs no state between calls and stays correct if a
//! server restarts; skipped lines are counted but not copied.
//!
//! Workers keep only as many lines as can fit on a page. If a page needs lines of a file that were
//! not kept, because the backlog was too large or the offset lies inside the file, the file is
//! searched again for them. A file that changed in between contributes the lines that are left.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use carrel_fsroot::Directory;

use crate::budget::Halt;
use crate::file_search::{FileSearchError, FileSearcher, SearchedFile};
use crate::grep::{GrepBatch, GrepVisitor, MatchedFile};
use crate::line::Line;
use crate::line_sink::SinkLimits;
use crate::read_failure::ReadFailures;
use crate::render::{file_cost, line_cost, shown};
use crate::report::{FileMatches, GrepReport, Totals, Truncation, TruncationReason};
use crate::request::Mode;
use crate::visitor::Collector;

#[derive(Debug)]
pub(crate) struct Page<'a> {
    visitor: &'a GrepVisitor<'a>,
    /// The workspace's root, to open files that are searched again.
    top: Directory,
    /// Number of units before the page and on it.
    seen: u64,
    taken: u64,
    bytes: usize,
    full: Option<TruncationReason>,
    files: Vec<FileMatches>,
    totals: Totals,
    matching_lines: u64,
    binary_matches: u64,
    unreadable: ReadFailures,
}

impl<'a> Page<'a> {
    pub(crate) fn new(visitor: &'a GrepVisitor<'a>, top: Directory) -> Self {
        Self {
            visitor,
            top,
            seen: 0,
            taken: 0,
            bytes: 0,
            full: None,
            files: Vec::new(),
            totals: Totals::default(),
            matching_lines: 0,
            binary_matches: 0,
            unreadable: ReadFailures::default(),
        }
    }

    fn add_file(&mut self, file: MatchedFile, searcher: &mut FileSearcher) -> Result<(), Halt> {
        self.totals.files_with_matches += 1;
        self.matching_lines += file.collected.matching;
        if self.full.is_some() {
            return Ok(());
        }
        match self.visitor.request.mode {
            Mode::Content => self.add_lines(file, searcher),
            Mode::FilesWithMatches => {
                self.add_unit(file.path, None);
                Ok(())
            }
            Mode::Count => {
                self.add_unit(file.path, Some(file.collected.matching));
                Ok(())
            }
        }
    }

    fn add_unit(&mut self, path: PathBuf, count: Option<u64>) {
        self.seen += 1;
        if self.seen > self.visitor.request.offset && self.reserve(file_cost(&shown(&path), count))
        {
            self.files.push(FileMatches { path, lines: Vec::new(), count });
        }
    }

    /// Adds the lines of a file and searches it again for lines that were not kept.
    fn add_lines(&mut self, file: MatchedFile, searcher: &mut FileSearcher) -> Result<(), Halt> {
        let MatchedFile { path, collected } = file;
        let skip = self.visitor.request.offset.saturating_sub(self.seen).min(collected.shown);
        self.seen += skip;
        let mut taken = Vec::new();
        let kept = usize::try_from(skip).unwrap_or(usize::MAX);
        let kept = collected.lines.into_iter().skip(kept);
        let mut next = self.add_fitting(&path, kept, skip, &mut taken);
        let mut end = Ok(());
        while next < collected.shown && self.full.is_none() {
            match self.search_again(&path, next, searcher) {
                // The file changed since the first search and has no such lines any more.
                Ok(more) if more.is_empty() => break,
                Ok(more) => next = self.add_fitting(&path, more.into_iter(), next, &mut taken),
                Err(halt) => {
                    end = Err(halt);
                    break;
                }
            }
        }
        if !taken.is_empty() {
            self.files.push(FileMatches { path, lines: taken, count: None });
        }
        end
    }

    /// Adds lines while they fit and returns the index of the next one.
    fn add_fitting(
        &mut self,
        path: &Path,
        lines: impl Iterator<Item = Line>,
        first: u64,
        taken: &mut Vec<Line>,
    ) -> u64 {
        let mut next = first;
        for line in lines {
            if !self.add_line(path, line, taken) {
                break;
            }
            next += 1;
        }
        next
    }

    fn add_line(&mut self, path: &Path, line: Line, taken: &mut Vec<Line>) -> bool {
        self.seen += 1;
        let previous = taken.last().map(|line: &Line| line.number);
        let context = self.visitor.request.context() != (0, 0);
        let fits = self.reserve(line_cost(&shown(path), &line, previous, context));
        if fits {
            taken.push(line);
        }
        fits
    }

    /// Reserves the bytes of one unit, or records the reason for the end of the page.
    fn reserve(&mut self, bytes: usize) -> bool {
        let request = self.visitor.request;
        if request.limit.is_some_and(|limit| self.taken >= limit) {
            self.full = Some(TruncationReason::Limit);
        } else if self.taken > 0 && self.bytes + bytes > request.output_bytes {
            self.full = Some(TruncationReason::Bytes);
        } else {
            self.taken += 1;
            self.bytes += bytes;
        }
        self.full.is_none()
    }

    fn search_again(
        &self,
        path: &Path,
        skip: u64,
        searcher: &mut FileSearcher,
    ) -> Result<Vec<Line>, Halt> {
        let Ok((file, metadata)) = self.top.open_file(path) else { return Ok(Vec::new()) };
        let limits = self.visitor.limits(skip);
        // The total is known from the first search.
        let limits = SinkLimits { stop_after: skip.saturating_add(limits.lines), ..limits };
        match searcher.search(file, &metadata, limits, self.visitor.budget) {
            Ok(SearchedFile::Text(collected) | SearchedFile::Partial(collected, _)) => {
                Ok(collected.lines)
            }
            Ok(SearchedFile::Binary { .. }) | Err(FileSearchError::Unreadable(_)) => Ok(Vec::new()),
            Err(FileSearchError::Halt(halt)) => Err(halt),
        }
    }

    /// Returns the page; `end` is the reason for an early end of the search.
    pub(crate) fn report(self, end: Option<Halt>) -> GrepReport {
        let request = self.visitor.request;
        let reason = match end {
            None | Some(Halt::Enough) => self.full,
            Some(Halt::TimeUp | Halt::Cancelled) => self.full.or(Some(TruncationReason::Time)),
        };
        let next_offset = request.offset.saturating_add(self.taken);
        let complete = end.is_none() && (self.full.is_none() || request.totals);
        let matching_lines = match request.mode {
            Mode::Content | Mode::Count => Some(self.matching_lines),
            Mode::FilesWithMatches => None,
        };
        GrepReport {
            mode: request.mode,
            context: request.context() != (0, 0),
            files: self.files,
            totals: complete.then_some(Totals { matching_lines, ..self.totals }),
            truncation: reason.map(|reason| Truncation { reason, next_offset }),
            binary_matches: self.binary_matches,
            unreadable: self.unreadable,
        }
    }
}

impl<'a> Collector<GrepVisitor<'a>> for Page<'a> {
    fn take(
        &mut self,
        batch: GrepBatch,
        searcher: &mut FileSearcher,
    ) -> Result<ControlFlow<()>, Halt> {
        self.totals.files_searched += batch.searched;
        self.binary_matches += batch.binary_matches;
        self.unreadable.merge(batch.unreadable);
        for file in batch.files {
            self.add_file(file, searcher)?;
        }
        let enough = self.full.is_some() && !self.visitor.request.totals;
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn unreadable(&mut self) -> &mut ReadFailures {
        &mut self.unreadable
    }
}
