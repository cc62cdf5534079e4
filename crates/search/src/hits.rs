//! Taking in what the searcher finds in one file.

use std::io;
use std::ops::Range;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use crate::line::{Line, LineKind, MAX_SPANS};
use crate::render::MIN_UNIT_BYTES;
use crate::request::Mode;

/// The most matches whose places are looked for in lines that belong together.
const MAX_SPANS_TOGETHER: usize = 64 * MAX_SPANS;

/// How much of a file's matches is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) mode: Mode,
    /// How many lines to leave out.
    pub(crate) skip: u64,
    /// How many lines to keep.
    pub(crate) lines: u64,
    /// How many bytes of text to keep, about.
    pub(crate) bytes: usize,
    /// After how many lines nothing more can matter.
    pub(crate) stop_after: u64,
    /// How many bytes of a line to keep.
    pub(crate) line_bytes: usize,
}

/// What was found in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    /// How many lines there are to show, context included, until the search stopped.
    pub(crate) shown: u64,
    /// How many lines match, until the search stopped.
    pub(crate) matching: u64,
    /// The lines that were kept.
    pub(crate) lines: Vec<Line>,
    /// How many bytes those have as text, at least.
    pub(crate) bytes: usize,
    /// About how many bytes those take up in memory.
    pub(crate) weight: usize,
}

/// Takes in what the searcher finds.
pub(crate) struct HitSink<'a> {
    matcher: &'a RegexMatcher,
    wish: Wish,
    hits: Hits,
    /// The places of matches, kept to spare allocations.
    spans: Vec<Range<usize>>,
}

impl<'a> HitSink<'a> {
    pub(crate) fn new(matcher: &'a RegexMatcher, wish: Wish) -> Self {
        Self { matcher, wish, hits: Hits::default(), spans: Vec::new() }
    }

    pub(crate) fn into_hits(self) -> Hits {
        self.hits
    }

    /// Tells whether the next line is one to keep.
    fn keeps_next(&self) -> bool {
        self.hits.shown >= self.wish.skip
            && (self.hits.lines.len() as u64) < self.wish.lines
            && self.hits.bytes < self.wish.bytes
    }

    fn keep(&mut self, number: Option<u64>, kind: LineKind, bytes: &[u8], spans: &[Range<usize>]) {
        let limit = self.wish.line_bytes;
        let line = Line::new(number.unwrap_or(0), kind, bytes, spans, limit);
        self.hits.bytes += line.text.len() + MIN_UNIT_BYTES;
        self.hits.weight += line.weight();
        self.hits.lines.push(line);
    }

    fn goes_on(&self) -> bool {
        self.hits.shown < self.wish.stop_after
    }

    /// Takes in the lines of a match, which are several only in a multiline search.
    fn take_lines(&mut self, found: &SinkMatch<'_>) -> io::Result<()> {
        let mut spans = std::mem::take(&mut self.spans);
        spans.clear();
        let mut start = 0;
        for (number, line) in (found.line_number().unwrap_or(1)..).zip(found.lines()) {
            self.hits.matching += 1;
            if self.keeps_next() {
                if spans.is_empty() {
                    self.find_spans(found, &mut spans)?;
                }
                let in_line = within(&spans, start..start + line.len());
                self.keep(Some(number), LineKind::Match, line, &in_line);
            }
            self.hits.shown += 1;
            start += line.len();
        }
        self.spans = spans;
        Ok(())
    }

    /// Finds the matches in the lines of a match, relative to their beginning.
    fn find_spans(&self, found: &SinkMatch<'_>, spans: &mut Vec<Range<usize>>) -> io::Result<()> {
        let range = found.bytes_range_in_buffer();
        // What stands before the lines counts for `\b` and the like; what follows cannot matter.
        let buffer = &found.buffer()[..range.end];
        self.matcher
            .find_iter_at(buffer, range.start, |one| {
                spans.push(one.start() - range.start..one.end() - range.start);
                spans.len() < MAX_SPANS_TOGETHER
            })
            .map_err(io::Error::other)
    }
}

/// Returns the parts of the spans that lie in a line, relative to it.
fn within(spans: &[Range<usize>], line: Range<usize>) -> Vec<Range<usize>> {
    let touches = |span: &&Range<usize>| span.start < line.end && span.end > line.start;
    let cut = |span: &Range<usize>| {
        span.start.max(line.start) - line.start..span.end.min(line.end) - line.start
    };
    spans.iter().filter(touches).take(MAX_SPANS).map(cut).collect()
}

impl Sink for HitSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.wish.mode {
            Mode::FilesWithMatches => {
                self.hits.matching = 1;
                Ok(false)
            }
            Mode::Count => {
                self.hits.matching += found.lines().count() as u64;
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
        self.hits.shown += 1;
        Ok(self.goes_on())
    }
}
