//! Search of one file with ripgrep's searcher, in bounded memory.
//!
//! The first 256 KiB are read into a buffer that each worker keeps. Most files end there and are
//! searched in place, without further reads or allocations. Larger files are streamed; a line
//! longer than 16 MiB, or a file larger than 32 MiB in a multiline search, ends the search of that
//! file with a note in the report.
//!
//! A NUL byte in the buffer makes a file binary, except in UTF-16 text with a byte order mark,
//! which the searcher transcodes. Of a binary file only the buffer is searched, to count it: its
//! lines are never shown.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};

use carrel_fsroot::Metadata;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use crate::budget::{Budget, Halt};
use crate::line_sink::{CollectedLines, LineSink, SinkLimits};
use crate::matcher::Pattern;
use crate::request::{GrepRequest, Mode};

/// Size of the buffer of each worker. A NUL byte beyond it does not make a file binary, so that a
/// log with a hole in it is searched to its end.
const BUFFER_BYTES: usize = 256 * 1024;

/// Bounds the lines held in memory while a file is streamed, and with them the length of a line.
const MAX_STREAM_BYTES: usize = 16 * 1024 * 1024;

/// Bounds the files of a multiline search, which have to be in memory as a whole.
const MAX_MULTILINE_BYTES: usize = 32 * 1024 * 1024;

const UTF16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

#[derive(Debug)]
pub(crate) enum SearchedFile {
    Text(CollectedLines),
    /// Text that was searched up to an error, with its explanation.
    Partial(CollectedLines, String),
    /// A binary file, and whether the pattern matches in its buffer.
    Binary {
        matches: bool,
    },
}

#[derive(Debug)]
pub(crate) enum FileSearchError {
    Halt(Halt),
    /// The file could not be read, with the explanation.
    Unreadable(String),
}

/// The searcher, pattern and buffer of one worker.
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
            // Binary files are detected in the buffer before the searcher sees them.
            .binary_detection(BinaryDetection::none())
            .heap_limit(Some(heap_limit(request.multiline)))
            .build();
        Self { pattern, searcher, buffer: vec![0; BUFFER_BYTES] }
    }

    pub(crate) fn search(
        &mut self,
        mut file: File,
        metadata: &Metadata,
        limits: SinkLimits,
        budget: &Budget,
    ) -> Result<SearchedFile, FileSearchError> {
        let (filled, complete) = self.fill(&mut file, metadata.size).map_err(unreadable)?;
        let start = &self.buffer[..filled];
        let is_utf16 = UTF16_MARKS.iter().any(|mark| start.starts_with(mark));
        if !is_utf16 && memchr::memchr(0, start).is_some() {
            return self.search_binary(filled, limits);
        }
        if complete && !is_utf16 {
            return self.search_buffer(filled, limits).map_err(unreadable).map(SearchedFile::Text);
        }
        self.search_stream(&file, filled, limits, budget)
    }

    /// Fills the buffer; returns its length and whether the file ended.
    fn fill(&mut self, file: &mut File, size: u64) -> io::Result<(usize, bool)> {
        let mut filled = 0;
        while filled < self.buffer.len() {
            match file.read(&mut self.buffer[filled..]) {
                Ok(0) => return Ok((filled, true)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // Saves the read that would return 0, one system call per file. Files in /proc have
            // size 0 and are read to their end.
            if filled as u64 == size {
                return Ok((filled, true));
            }
        }
        Ok((filled, false))
    }

    fn search_buffer(&mut self, filled: usize, limits: SinkLimits) -> io::Result<CollectedLines> {
        let mut sink = LineSink::new(&self.pattern.matcher, limits);
        self.searcher.search_slice(&self.pattern.matcher, &self.buffer[..filled], &mut sink)?;
        Ok(sink.into_lines())
    }

    /// Searches the buffer of a binary file up to the first match.
    fn search_binary(
        &mut self,
        filled: usize,
        limits: SinkLimits,
    ) -> Result<SearchedFile, FileSearchError> {
        let limits = SinkLimits { mode: Mode::FilesWithMatches, ..limits };
        let collected = self.search_buffer(filled, limits).map_err(unreadable)?;
        Ok(SearchedFile::Binary { matches: collected.matching > 0 })
    }

    fn search_stream(
        &mut self,
        file: &File,
        filled: usize,
        limits: SinkLimits,
        budget: &Budget,
    ) -> Result<SearchedFile, FileSearchError> {
        let halt = Cell::new(None);
        let reader = Checked { reader: self.buffer[..filled].chain(file), budget, halt: &halt };
        let mut sink = LineSink::new(&self.pattern.matcher, limits);
        let result = self.searcher.search_reader(&self.pattern.matcher, reader, &mut sink);
        match (halt.get(), result) {
            (Some(halt), _) => Err(FileSearchError::Halt(halt)),
            (None, Err(error)) => Ok(SearchedFile::Partial(sink.into_lines(), explain(&error))),
            (None, Ok(())) => Ok(SearchedFile::Text(sink.into_lines())),
        }
    }
}

fn heap_limit(multiline: bool) -> usize {
    if multiline { MAX_MULTILINE_BYTES } else { MAX_STREAM_BYTES }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        // The searcher itself fails only if a line, or a file in a multiline search, exceeds its
        // heap limit.
        io::ErrorKind::Other => format!("too large to be searched to its end: {error}"),
        _ => error.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the end of the error's way")]
fn unreadable(error: io::Error) -> FileSearchError {
    FileSearchError::Unreadable(explain(&error))
}

/// A reader that fails when the budget of the search ends.
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
