//! Collection of the matching lines of one file, within limits.
//!
//! ripgrep's searcher calls the sink for every matching line and every context line. The sink
//! counts all of them, and keeps the text only of lines that can be on the page. It stops the
//! searcher once no further line can matter, so the first page of a large file does not cost a scan
//! of all of it.

use std::io;
use std::ops::Range;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use crate::line::{Line, LineKind, MAX_SPANS};
use crate::render::MIN_UNIT_BYTES;
use crate::request::Mode;

/// Bounds the spans that are located in one multiline match.
const MAX_SPANS_TOGETHER: usize = 64 * MAX_SPANS;

/// Bounds on the lines that are kept of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinkLimits {
    pub(crate) mode: Mode,
    /// Number of lines to count but not keep.
    pub(crate) skip: u64,
    pub(crate) lines: u64,
    pub(crate) bytes: usize,
    /// Number of lines after which the searcher stops.
    pub(crate) stop_after: u64,
    pub(crate) line_bytes: usize,
}

/// The lines of one file that were counted and kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CollectedLines {
    /// Number of lines, context included, until the searcher stopped.
    pub(crate) shown: u64,
    /// Number of matching lines until the searcher stopped.
    pub(crate) matching: u64,
    pub(crate) lines: Vec<Line>,
    /// Lower bound of the bytes of `lines` as text.
    pub(crate) bytes: usize,
    pub(crate) weight: usize,
}

pub(crate) struct LineSink<'a> {
    matcher: &'a RegexMatcher,
    limits: SinkLimits,
    collected: CollectedLines,
    /// Buffer for the spans of one match, reused for all of them.
    spans: Vec<Range<usize>>,
}

impl<'a> LineSink<'a> {
    pub(crate) fn new(matcher: &'a RegexMatcher, limits: SinkLimits) -> Self {
        Self { matcher, limits, collected: CollectedLines::default(), spans: Vec::new() }
    }

    pub(crate) fn into_lines(self) -> CollectedLines {
        self.collected
    }

    fn keeps_next(&self) -> bool {
        self.collected.shown >= self.limits.skip
            && (self.collected.lines.len() as u64) < self.limits.lines
            && self.collected.bytes < self.limits.bytes
    }

    fn keep(&mut self, number: Option<u64>, kind: LineKind, bytes: &[u8], spans: &[Range<usize>]) {
        let limit = self.limits.line_bytes;
        let line = Line::new(number.unwrap_or(0), kind, bytes, spans, limit);
        self.collected.bytes += line.text.len() + MIN_UNIT_BYTES;
        self.collected.weight += line.weight();
        self.collected.lines.push(line);
    }

    fn goes_on(&self) -> bool {
        self.collected.shown < self.limits.stop_after
    }

    /// Adds the lines of a match: several only in a multiline search.
    fn take_lines(&mut self, found: &SinkMatch<'_>) -> io::Result<()> {
        let mut spans = std::mem::take(&mut self.spans);
        spans.clear();
        let mut start = 0;
        for (number, line) in (found.line_number().unwrap_or(1)..).zip(found.lines()) {
            self.collected.matching += 1;
            if self.keeps_next() {
                if spans.is_empty() {
                    self.find_spans(found, &mut spans)?;
                }
                let in_line = within(&spans, start..start + line.len());
                self.keep(Some(number), LineKind::Match, line, &in_line);
            }
            self.collected.shown += 1;
            start += line.len();
        }
        self.spans = spans;
        Ok(())
    }

    /// Locates the spans in the lines of a match, relative to the first line.
    fn find_spans(&self, found: &SinkMatch<'_>, spans: &mut Vec<Range<usize>>) -> io::Result<()> {
        let range = found.bytes_range_in_buffer();
        // Look-behind such as `\b` needs the text before the lines; text after them cannot matter.
        let buffer = &found.buffer()[..range.end];
        self.matcher
            .find_iter_at(buffer, range.start, |one| {
                spans.push(one.start() - range.start..one.end() - range.start);
                spans.len() < MAX_SPANS_TOGETHER
            })
            .map_err(io::Error::other)
    }
}

/// Returns the parts of the spans that are inside a line, relative to it.
fn within(spans: &[Range<usize>], line: Range<usize>) -> Vec<Range<usize>> {
    let touches = |span: &&Range<usize>| span.start < line.end && span.end > line.start;
    let cut = |span: &Range<usize>| {
        span.start.max(line.start) - line.start..span.end.min(line.end) - line.start
    };
    spans.iter().filter(touches).take(MAX_SPANS).map(cut).collect()
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.limits.mode {
            Mode::FilesWithMatches => {
                self.collected.matching = 1;
                Ok(false)
            }
            Mode::Count => {
                self.collected.matching += found.lines().count() as u64;
                Ok(true)
            }
            Mode::Content => {
                self.take_lines(found)?;
                Ok(self.goes_on())
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.keeps_next() {
            self.keep(context.line_number(), LineKind::Context, context.bytes(), &[]);
        }
        self.collected.shown += 1;
        Ok(self.goes_on())
    }
}
