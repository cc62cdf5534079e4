//! The result of a text search, one page of it.

use std::path::PathBuf;

use crate::{Line, Mode, ReadFailures};

/// The matches of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMatches {
    /// Path relative to the workspace's root.
    pub path: PathBuf,
    /// Lines of this page, in [`Mode::Content`] only.
    pub lines: Vec<Line>,
    /// Number of matching lines, in [`Mode::Count`] only.
    pub count: Option<u64>,
}

/// Counts over all pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of matching lines; `None` in [`Mode::FilesWithMatches`], which stops at the first
    /// one.
    pub matching_lines: Option<u64>,
    /// Number of files with a matching line.
    pub files_with_matches: u64,
    /// Number of searched files.
    pub files_searched: u64,
}

/// The reason for the end of a page: the requested number of units, the bytes, or the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the variants")]
pub enum TruncationReason {
    Limit,
    Bytes,
    Time,
}

/// The end of a page that is not the last one, and the offset at which the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines both fields")]
pub struct Truncation {
    pub reason: TruncationReason,
    pub next_offset: u64,
}

/// One page of matches. It is the same in every run over the same files, unless the time limit was
/// reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepReport {
    /// Mode of the request.
    pub mode: Mode,
    /// True if context lines were requested, so that groups of lines are separated.
    pub context: bool,
    /// Files of this page, in path order.
    pub files: Vec<FileMatches>,
    /// Counts over all pages; `None` if the search ended before every file was searched.
    pub totals: Option<Totals>,
    /// The reason for the end of the page; `None` if it is the last one.
    pub truncation: Option<Truncation>,
    /// Number of binary files with a match, which are not listed.
    pub binary_matches: u64,
    /// Directories and files that could not be read.
    pub unreadable: ReadFailures,
}
