//! Searching one file.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};

use carrel_fsroot::Metadata;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use crate::cancel::{Budget, Halt};
use crate::hits::{HitSink, Hits, Wish};
use crate::matcher::Pattern;
use crate::request::{GrepRequest, Mode};

/// Files up to this size are read at once, into a buffer that each worker keeps. A NUL byte in
/// this much of a file makes it binary; one further on is a character like any other, so that a
/// log with a hole in it is searched to its end.
const BUFFER_BYTES: usize = 256 * 1024;

/// The most that the lines held at one time take up while a larger file is searched, which bounds
/// the length of a line.
const MAX_STREAM_BYTES: usize = 16 * 1024 * 1024;

/// The largest file that a multiline search takes in: it has to be in memory as a whole.
const MAX_MULTILINE_BYTES: usize = 32 * 1024 * 1024;

/// What UTF-16 text begins with; its NUL bytes do not make it binary.
const UTF16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// What a file turned out to be.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Text, with what was found in it.
    Text(Hits),
    /// Text that could be searched only so far, and why.
    Partly(Hits, String),
    /// Something else, in whose beginning the pattern matches or not.
    Binary {
        /// Whether it matches.
        matches: bool,
    },
}

/// Why a file was not searched to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The whole search has to end.
    Halt(Halt),
    /// The file cannot be searched; the text says why.
    ReadFailure(String),
}

/// What a worker needs to search files.
#[derive(Debug)]
pub(crate) struct FileSearcher {
    pattern: Pattern,
    searcher: Searcher,
    buffer: Vec<u8>,
}

impl FileSearcher {
    pub(crate) fn new(request: &GrepRequest, pattern: Pattern) -> Self {
        let (before, after) = request.context();
        let searcher = SearcherBuilder::new()
            .line_terminator(pattern.line_end)
            .line_number(request.mode == Mode::Content)
            .multi_line(request.multiline)
            .before_context(before)
            .after_context(after)
            // Files that hold NUL bytes are told apart before they get here.
            .binary_detection(BinaryDetection::none())
            .heap_limit(Some(heap_limit(request.multiline)))
            .build();
        Self { pattern, searcher, buffer: vec![0; BUFFER_BYTES] }
    }

    /// Searches a file from its beginning.
    pub(crate) fn search(
        &mut self,
        mut file: File,
        metadata: &Metadata,
        wish: Wish,
        budget: &Budget,
    ) -> Result<Outcome, Failure> {
        let (filled, complete) = self.fill(&mut file, metadata.size).map_err(unreadable)?;
        let start = &self.buffer[..filled];
        let is_utf16 = UTF16_MARKS.iter().any(|mark| start.starts_with(mark));
        if !is_utf16 && memchr::memchr(0, start).is_some() {
            return self.search_binary(filled, wish);
        }
        if complete && !is_utf16 {
            return self.search_buffer(filled, wish).map_err(unreadable).map(Outcome::Text);
        }
        self.search_stream(&file, filled, wish, budget)
    }

    /// Reads the beginning of a file; tells how much there is and whether that is all.
    fn fill(&mut self, file: &mut File, size: u64) -> io::Result<(usize, bool)> {
        let mut filled = 0;
        while filled < self.buffer.len() {
            match file.read(&mut self.buffer[filled..]) {
                Ok(0) => return Ok((filled, true)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // Spares the read that would only say that this was all. Some files do not know
            // their size and say zero.
            if filled as u64 == size {
                return Ok((filled, true));
            }
        }
        Ok((filled, false))
    }

    fn search_buffer(&mut self, filled: usize, wish: Wish) -> io::Result<Hits> {
        let mut sink = HitSink::new(&self.pattern.matcher, wish);
        self.searcher.search_slice(&self.pattern.matcher, &self.buffer[..filled], &mut sink)?;
        Ok(sink.into_hits())
    }

    /// Only looks whether there is a match in what was read: nothing of it will be shown.
    fn search_binary(&mut self, filled: usize, wish: Wish) -> Result<Outcome, Failure> {
        let wish = Wish { mode: Mode::FilesWithMatches, ..wish };
        let hits = self.search_buffer(filled, wish).map_err(unreadable)?;
        Ok(Outcome::Binary { matches: hits.matching > 0 })
    }

    fn search_stream(
        &mut self,
        file: &File,
        filled: usize,
        wish: Wish,
        budget: &Budget,
    ) -> Result<Outcome, Failure> {
        let halt = Cell::new(None);
        let reader = Checked { reader: self.buffer[..filled].chain(file), budget, halt: &halt };
        let mut sink = HitSink::new(&self.pattern.matcher, wish);
        let result = self.searcher.search_reader(&self.pattern.matcher, reader, &mut sink);
        match (halt.get(), result) {
            (Some(halt), _) => Err(Failure::Halt(halt)),
            (None, Err(error)) => Ok(Outcome::Partly(sink.into_hits(), explain(&error))),
            (None, Ok(())) => Ok(Outcome::Text(sink.into_hits())),
        }
    }
}

fn heap_limit(multiline: bool) -> usize {
    if multiline { MAX_MULTILINE_BYTES } else { MAX_STREAM_BYTES }
}

/// Says why a file was not searched to its end.
fn explain(error: &io::Error) -> String {
    match error.kind() {
        // The searcher itself fails only when a line, or a file in a multiline search, is too
        // large to be held.
        io::ErrorKind::Other => format!("too large to be searched to its end: {error}"),
        _ => error.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the end of the error's way")]
fn unreadable(error: io::Error) -> Failure {
    Failure::ReadFailure(explain(&error))
}

/// A reader that ends when the search has to.
struct Checked<'a, R> {
    reader: R,
    budget: &'a Budget,
    halt: &'a Cell<Option<Halt>>,
}

impl<R: Read> Read for Checked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Err(halt) = self.budget.check() {
            self.halt.set(Some(halt));
            return Err(io::Error::other("the search has to end"));
        }
        self.reader.read(buffer)
    }
}
