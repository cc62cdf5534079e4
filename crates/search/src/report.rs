//! What a search found.

use std::path::PathBuf;

use serde::Serialize;

use crate::line::Line;
use crate::request::Mode;
use crate::unreadable::ReadFailures;

/// What was found in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileMatches {
    /// The file, relative to the workspace's root.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// The lines of this page, in [`Mode::Content`] only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// How many lines of the file match, in [`Mode::Count`] only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What was found altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// How many lines match; unknown in [`Mode::FilesWithMatches`], which stops at the first.
    pub matching_lines: Option<u64>,
    /// How many files have a matching line.
    pub files_with_matches: u64,
    /// How many files were searched.
    pub files_searched: u64,
}

/// Why a page ends before everything was returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncationReason {
    /// It has as many units as were asked for.
    Limit,
    /// It has as many bytes as allowed.
    Bytes,
    /// The time was over.
    Time,
}

/// Where a page ends and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Truncation {
    /// Why it ends there.
    pub reason: TruncationReason,
    /// The offset with which the next page begins.
    pub next_offset: u64,
}

/// What a search found. It is the same in every run over the same files, unless time was short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepReport {
    /// What was asked for.
    pub mode: Mode,
    /// Whether lines of context were asked for, so that groups of lines are kept apart.
    pub context: bool,
    /// The files of this page, in the order of paths.
    pub files: Vec<FileMatches>,
    /// What there is altogether; absent when the search ended before everything was searched.
    pub totals: Option<Totals>,
    /// Where the page was cut; absent when it holds everything from the offset on.
    pub truncation: Option<Truncation>,
    /// How many files hold a match but also a NUL byte near their beginning, and so are not shown.
    pub binary_matches: u64,
    /// What could not be read.
    pub unreadable: ReadFailures,
}
