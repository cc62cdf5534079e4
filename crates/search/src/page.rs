//! Making one page out of what is found, in the order of paths.

use std::path::{Path, PathBuf};

use carrel_fsroot::Directory;

use crate::cancel::Halt;
use crate::file::{Failure, FileSearcher, Outcome};
use crate::grep::{FileHits, GrepBatch, Grepper};
use crate::hits::Wish;
use crate::line::Line;
use crate::render::{file_cost, line_cost, shown};
use crate::report::{FileMatches, GrepReport, Totals, Truncation, TruncationReason};
use crate::request::Mode;
use crate::unreadable::{ReadFailure, ReadFailures};
use crate::visit::{Collector, Flow};
use crate::walk::End;

/// A page that is being filled.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    grepper: &'a Grepper<'a>,
    /// The workspace's root, to search a file again whose lines were not all kept.
    top: Directory,
    /// The units passed or taken.
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
    pub(crate) fn new(grepper: &'a Grepper<'a>, top: Directory) -> Self {
        Self {
            grepper,
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

    /// Takes what was found in one file.
    fn add_file(&mut self, file: FileHits, searcher: &mut FileSearcher) -> Result<(), Halt> {
        self.totals.files_with_matches += 1;
        self.matching_lines += file.hits.matching;
        if self.full.is_some() {
            return Ok(());
        }
        match self.grepper.request.mode {
            Mode::Content => self.add_lines(file, searcher),
            Mode::FilesWithMatches => {
                self.add_unit(file.path, None);
                Ok(())
            }
            Mode::Count => {
                self.add_unit(file.path, Some(file.hits.matching));
                Ok(())
            }
        }
    }

    /// Takes a file that is itself one unit.
    fn add_unit(&mut self, path: PathBuf, count: Option<u64>) {
        self.seen += 1;
        if self.seen > self.grepper.request.offset
            && self.makes_room(file_cost(&shown(&path), count))
        {
            self.files.push(FileMatches { path, lines: Vec::new(), count });
        }
    }

    /// Takes the lines of a file, and searches it again for those that were not kept.
    fn add_lines(&mut self, file: FileHits, searcher: &mut FileSearcher) -> Result<(), Halt> {
        let FileHits { path, hits } = file;
        let skip = self.grepper.request.offset.saturating_sub(self.seen).min(hits.shown);
        self.seen += skip;
        let mut taken = Vec::new();
        let kept = usize::try_from(skip).unwrap_or(usize::MAX);
        let kept = hits.lines.into_iter().skip(kept);
        let mut next = self.add_some(&path, kept, skip, &mut taken);
        let mut end = Ok(());
        while next < hits.shown && self.full.is_none() {
            match self.search_again(&path, next, searcher) {
                // The file has changed since it was searched first.
                Ok(more) if more.is_empty() => break,
                Ok(more) => next = self.add_some(&path, more.into_iter(), next, &mut taken),
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

    /// Takes lines while there is room, and returns the number of the next one.
    fn add_some(
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
        let context = self.grepper.request.context() != (0, 0);
        let room = self.makes_room(line_cost(&shown(path), &line, previous, context));
        if room {
            taken.push(line);
        }
        room
    }

    /// Makes room for one more unit, or notes why there is none.
    fn makes_room(&mut self, bytes: usize) -> bool {
        let request = self.grepper.request;
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
        let wish = self.grepper.wish(skip);
        // How many lines follow is known already.
        let wish = Wish { stop_after: skip.saturating_add(wish.lines), ..wish };
        match searcher.search(file, &metadata, wish, self.grepper.budget) {
            Ok(Outcome::Text(hits) | Outcome::Partly(hits, _)) => Ok(hits.lines),
            Ok(Outcome::Binary { .. }) | Err(Failure::ReadFailure(_)) => Ok(Vec::new()),
            Err(Failure::Halt(halt)) => Err(halt),
        }
    }

    /// Returns the finished page.
    pub(crate) fn report(self, end: End) -> GrepReport {
        let request = self.grepper.request;
        let reason = match end {
            End::Exhausted | End::Enough => self.full,
            End::TimeUp | End::Cancelled => self.full.or(Some(TruncationReason::Time)),
        };
        let next_offset = request.offset.saturating_add(self.taken);
        let complete = end == End::Exhausted && (self.full.is_none() || request.totals);
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

impl<'a> Collector<Grepper<'a>> for Page<'a> {
    fn take(&mut self, batch: GrepBatch, searcher: &mut FileSearcher) -> Result<Flow, Halt> {
        self.totals.files_searched += batch.searched;
        self.binary_matches += batch.binary_matches;
        self.unreadable.extend(batch.unreadable);
        for file in batch.files {
            self.add_file(file, searcher)?;
        }
        let enough = self.full.is_some() && !self.grepper.request.totals;
        Ok(if enough { Flow::Enough } else { Flow::More })
    }

    fn unreadable(&mut self, unreadable: Vec<ReadFailure>) {
        self.unreadable.extend(unreadable);
    }
}
