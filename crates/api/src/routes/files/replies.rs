//! What is said about files. The tools make these values; the types describe them.

use schemars::JsonSchema;
use serde::Serialize;

/// A directory.
#[derive(Serialize, JsonSchema)]
pub(super) struct Directory {
    /// Where it is, relative to the workspace.
    path: String,
    entries: Vec<DirectoryEntry>,
    /// How many entries it has.
    total: u64,
    /// Not all are here.
    truncated: bool,
}

/// An entry of a directory.
#[derive(Serialize, JsonSchema)]
struct DirectoryEntry {
    name: String,
    /// Where it is, relative to the workspace.
    path: String,
    r#type: EntryType,
    /// How large it is; 0 for a directory.
    size: u64,
    /// When it last changed, in seconds since 1970; nothing if it is gone by now.
    modified_at: Option<f64>,
}

/// What an entry is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the tools make these values")]
enum EntryType {
    Directory,
    File,
    Symlink,
    Other,
}

/// A file with its text.
#[derive(Serialize, JsonSchema)]
pub(super) struct FileContent {
    /// `true`.
    success: bool,
    /// Where it is, relative to the workspace.
    path: String,
    name: String,
    /// All of its text.
    content: String,
    /// How many bytes it has.
    size: u64,
    /// What it is written in, such as `python` or `plaintext`.
    language: String,
    mime_type: String,
}

/// Lines that match.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Matches")]
pub(super) struct Found {
    matches: Vec<MatchingLine>,
    /// How many there are, if all were counted.
    total: Option<u64>,
    /// There are more.
    truncated: bool,
    /// The regular expression.
    pattern: String,
}

/// A line that matches.
#[derive(Serialize, JsonSchema)]
struct MatchingLine {
    /// Where the file is, relative to the workspace.
    file: String,
    /// The number of the line, counted from 1.
    line: u64,
    /// Its text.
    content: String,
}

/// A file that was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Written")]
pub(super) struct Saved {
    /// `true`.
    written: bool,
    /// Where it is, relative to the workspace.
    path: String,
    /// How many bytes it has.
    size_bytes: u64,
}
