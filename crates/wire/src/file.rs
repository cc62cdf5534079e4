//! `/files` of a workspace. Every path is relative to the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pattern::RELATIVE_PATH;

/// The query of a directory listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryQuery {
    /// The directory, relative to the workspace; the workspace itself if absent.
    #[schemars(regex(pattern = RELATIVE_PATH))]
    pub path: Option<String>,
}

/// The query of a file.
///
/// `path` is required. It is optional here so that a request without it gets the API's error envelope and not
/// the parser's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileQuery {
    /// The file, relative to the workspace.
    #[schemars(required, length(min = 1), regex(pattern = RELATIVE_PATH))]
    pub path: Option<String>,
}

/// The query of a search. `pattern` is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// The regular expression.
    #[schemars(required, length(min = 1))]
    pub pattern: Option<String>,
    /// The file or directory to search, relative to the workspace; all of it if absent.
    #[schemars(regex(pattern = RELATIVE_PATH))]
    pub path: Option<String>,
    /// A glob that file names must match, such as `*.py`.
    pub include: Option<String>,
    /// The most matching lines to return: 50 if absent; more than 200 count as 200.
    #[schemars(range(min = 1, max = u64::MAX))]
    pub max_results: Option<u64>,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFileRequest {
    /// The file, relative to the workspace.
    #[schemars(length(min = 1), regex(pattern = RELATIVE_PATH))]
    pub path: String,
    /// The new text of the whole file.
    pub content: String,
}

/// A directory and its entries: directories first, then by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectoryListing {
    /// The directory, relative to the workspace.
    pub path: String,
    /// The entries, at most 500.
    pub entries: Vec<DirectoryEntry>,
    /// Entries of the directory, also entries that are not listed.
    pub total: u64,
    /// `true` if entries are missing from the list.
    pub truncated: bool,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectoryEntry {
    /// The file name. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The path, relative to the workspace.
    pub path: String,
    /// The type of the entry; symbolic links are not followed.
    pub r#type: EntryType,
    /// The size in bytes; 0 for a directory.
    pub size: u64,
    /// The time of the last change in seconds since 1970; `null` if the entry vanished meanwhile.
    pub modified_at: Option<f64>,
}

/// The type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryType {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A socket, a pipe or a device.
    Other,
}

impl EntryType {
    /// Returns the name of the type in JSON and in listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Symlink => "symlink",
            Self::Other => "other",
        }
    }
}

/// A text file and its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// The file, relative to the workspace.
    pub path: String,
    /// The file name.
    pub name: String,
    /// The text of the whole file.
    pub content: String,
    /// The size in bytes.
    pub size: u64,
    /// The language for syntax highlighting, such as `python` or `plaintext`.
    pub language: String,
    /// The media type that belongs to the language.
    pub mime_type: String,
}

/// The reply to a request for a text file.
///
/// The tool `workspace_read_file` and the step `read_file` return [`FileContent`] alone; their replies say in
/// other ways that they succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadFileReply {
    /// The file.
    #[serde(flatten)]
    pub file: FileContent,
    /// `true`.
    pub success: bool,
}

/// Lines that match a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchMatches {
    /// The matching lines, by file and line number.
    pub matches: Vec<MatchingLine>,
    /// Matching lines in all files; `null` if the search ended before all were counted.
    pub total: Option<u64>,
    /// `true` if there are more matches than are listed.
    pub truncated: bool,
    /// The regular expression.
    pub pattern: String,
}

/// A line that matches a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchingLine {
    /// The file, relative to the workspace.
    pub file: String,
    /// The line number, counted from 1.
    pub line: u64,
    /// The text of the line.
    pub content: String,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenFile {
    /// `true`.
    pub written: bool,
    /// The file, relative to the workspace.
    pub path: String,
    /// The size in bytes.
    pub size_bytes: u64,
}
