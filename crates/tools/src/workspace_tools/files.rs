//! The tools `workspace_read_file`, `workspace_write_file`, `workspace_list_dir` and `workspace_grep`, and the
//! tool behind the task step `create_directory`.

use std::ffi::OsString;

use carrel_domain::{Code, Failure, ToolGroup};
use carrel_fsroot::{Entry, FileKind, MAX_READ_BYTES, Problem, WriteOptions};
use carrel_search::{GrepRequest, Scope as SearchScope, Sensitive, TruncationReason};
use carrel_wire::{DirectoryListing, EntryType, MatchingLine, SearchMatches, WrittenFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::file_type;
use crate::blocking::blocking;
use crate::files::{WorkspaceFiles, check_given, required_path, run_search, shown};
use crate::response::Reply;
use crate::text::{line, or_words};
use crate::tool::{About, Effect, Tool, ToolResult};
use crate::tool_context::ToolContext;

const MAX_ENTRIES: usize = 500;

/// The mode of new directories, before the umask.
const DIRECTORY_MODE: u32 = 0o777;

const DEFAULT_MATCHES: u64 = 50;

const MAX_MATCHES: u64 = 200;

/// The tool `workspace_read_file`.
#[derive(Debug)]
pub struct ReadFile;

/// The input of [`ReadFile`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReadFileInput {
    /// The file, relative to the workspace.
    pub path: String,
}

/// The facts about a file that was read or written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileFacts {
    /// The file, relative to the workspace.
    pub path: String,
    /// Its size in bytes.
    pub size: usize,
}

impl Tool for ReadFile {
    type Input = ReadFileInput;
    type Facts = FileFacts;

    const ABOUT: About = About {
        name: "workspace_read_file",
        title: "Read a file",
        group: ToolGroup::Workspace,
        in_default_set: false,
        description: "Returns the text of a file of the workspace, as it is; at most 2 MiB.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: ReadFileInput) -> ToolResult<FileFacts> {
        let files = WorkspaceFiles::of(context);
        let interface = context.options.interface;
        blocking(move || {
            let path = required_path(&files, "path", &input.path)?;
            let bytes = files.root().browse().read(&path, MAX_READ_BYTES)?;
            let facts = FileFacts { path: shown(&path), size: bytes.len() };
            if let Ok(text) = String::from_utf8(bytes) {
                let value = interface
                    .wants_data()
                    .then(|| json!(file_type::file(&path, &facts.path, &text)));
                let text = if text.is_empty() { "[the file is empty]\n".into() } else { text };
                Ok(Reply { data: value, ..Reply::text(text, facts) })
            } else {
                let message = format!("{} is no text", input.path);
                Err(Failure::new(Code::BinaryFile, message).with("path", input.path))
            }
        })
        .await
    }
}

/// The tool `workspace_write_file`.
#[derive(Debug)]
pub struct WriteFile;

/// The input of [`WriteFile`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WriteFileInput {
    /// The file, relative to the workspace. Missing directories are created.
    pub path: String,
    /// The whole text.
    pub content: String,
}

impl Tool for WriteFile {
    type Input = WriteFileInput;
    type Facts = FileFacts;

    const ABOUT: About = About {
        name: "workspace_write_file",
        title: "Write a file",
        group: ToolGroup::Workspace,
        in_default_set: false,
        effect: Effect { destructive: true, idempotent: true, open_world: false },
        description: "Creates a file of the workspace, or replaces its whole text. Missing directories are created.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: WriteFileInput) -> ToolResult<FileFacts> {
        let files = WorkspaceFiles::of(context);
        let interface = context.options.interface;
        blocking(move || {
            let path = required_path(&files, "path", &input.path)?;
            files.check_masks(&input.content, &input.path)?;
            let root = files.root().browse();
            let _writing = files.writing()?;
            let replaced = match root.metadata(&path) {
                Ok(metadata) => Some(metadata),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error.into()),
            };
            files.check_runs_later(&path, input.content.as_bytes())?;
            files.check_room(input.content.len(), replaced.as_ref())?;
            files.create_visible_parents(&path)?;
            root.write(&path, input.content.as_bytes(), WriteOptions::default())?;
            let facts = FileFacts { path: shown(&path), size: input.content.len() };
            let text = format!("wrote {} bytes to {}\n", facts.size, input.path);
            let data = |facts: &FileFacts| {
                json!(WrittenFile {
                    written: true,
                    path: facts.path.clone(),
                    size_bytes: facts.size as u64
                })
            };
            Ok(Reply::text(text, facts).with_data(interface, data))
        })
        .await
    }
}

/// The tool `workspace_list_dir`.
#[derive(Debug)]
pub struct ListDirectory;

/// The input of [`ListDirectory`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListDirectoryInput {
    /// The directory, relative to the workspace.
    #[serde(default = "top")]
    pub path: String,
}

fn top() -> String {
    ".".to_owned()
}

/// The facts about a listed directory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListFacts {
    /// The directory, relative to the workspace.
    pub path: String,
    /// Number of entries in the directory.
    pub total: usize,
    /// Not all entries are in the reply.
    pub truncated: bool,
}

impl Tool for ListDirectory {
    type Input = ListDirectoryInput;
    type Facts = ListFacts;

    const ABOUT: About = About {
        name: "workspace_list_dir",
        title: "List a directory",
        group: ToolGroup::Workspace,
        in_default_set: false,
        description: "Lists a directory of the workspace: a line for each entry with its type \
            (`directory`, `file`, `symlink` or `other`), its size in bytes and its name, 500 at most.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: ListDirectoryInput) -> ToolResult<ListFacts> {
        let files = WorkspaceFiles::of(context);
        let interface = context.options.interface;
        blocking(move || {
            let path = required_path(&files, "path", &input.path)?;
            let mut entries = files.root().browse().list(&path)?;
            entries.sort_by_cached_key(in_order);
            let mut text = String::new();
            let mut values = Vec::new();
            for entry in entries.iter().take(MAX_ENTRIES) {
                let inside = path.join(&entry.name);
                let found = files.root().link_metadata(&inside).ok();
                let name = entry.name.to_string_lossy();
                let kind = entry_type(entry.kind);
                let size = found.as_ref().map_or(0, |metadata| metadata.size);
                line(&mut text, &format!("{}\t{size}\t{name}", kind.as_str()));
                if interface.wants_data() {
                    values.push(file_type::entry(&name, shown(&inside), kind, found.as_ref()));
                }
            }
            let total = entries.len();
            let truncated = entries.len() > MAX_ENTRIES;
            if truncated {
                line(&mut text, &format!("[showing {MAX_ENTRIES} of {total}]"));
            }
            let data = |facts: &ListFacts| {
                let listed = if facts.path.is_empty() { "." } else { &facts.path };
                json!(DirectoryListing {
                    path: listed.to_owned(),
                    entries: values,
                    total: total as u64,
                    truncated,
                })
            };
            let facts = ListFacts { path: shown(&path), total, truncated };
            let text = or_words(text, "no entries");
            Ok(Reply::text(text, facts).with_data(interface, data))
        })
        .await
    }
}

/// Sort key: directories first, then names without regard to case.
fn in_order(entry: &Entry) -> (bool, String, OsString) {
    let name = entry.name.to_string_lossy().to_lowercase();
    (entry.kind != FileKind::Directory, name, entry.name.clone())
}

fn entry_type(kind: FileKind) -> EntryType {
    match kind {
        FileKind::Directory => EntryType::Directory,
        FileKind::File => EntryType::File,
        FileKind::Link => EntryType::Symlink,
        _ => EntryType::Other,
    }
}

pub(super) struct GrepFiles;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GrepInput {
    /// The regular expression.
    pattern: String,
    /// The file or directory to search, relative to the workspace.
    path: Option<String>,
    /// Only files that match this glob, such as `*.py`.
    include: Option<String>,
    /// Maximum number of matching lines; 50 by default, at most 200.
    max_results: Option<u64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct GrepFacts {
    /// Number of matching lines in the reply.
    matches: usize,
    truncated: bool,
}

impl Tool for GrepFiles {
    type Input = GrepInput;
    type Facts = GrepFacts;

    const ABOUT: About = About {
        name: "workspace_grep",
        title: "Search in files",
        group: ToolGroup::Workspace,
        in_default_set: false,
        description: "Searches the files of the workspace with a regular expression and returns \
            `path:line:text`, hidden and ignored files included.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: GrepInput) -> ToolResult<GrepFacts> {
        check_given("pattern", &input.pattern)?;
        let pattern = input.pattern.clone();
        let nothing = format!("no matches for {pattern}");
        let limit = input.max_results.filter(|limit| *limit > 0).unwrap_or(DEFAULT_MATCHES);
        let request = GrepRequest {
            globs: input.include.into_iter().filter(|glob| !glob.is_empty()).collect(),
            limit: Some(limit.min(MAX_MATCHES)),
            ..GrepRequest::new(input.pattern)
        };
        let report = run_search(context, move |workspace, cancel| {
            let path = input.path.map(|path| workspace.relative(&path)).unwrap_or_default();
            let scope = SearchScope {
                hidden: true,
                ignored: true,
                sensitive: Sensitive::Hidden,
                ..SearchScope::at(workspace.files(), path)
            };
            carrel_search::grep(&scope, &request, cancel)
        });
        let report = report.await?;
        let truncated = report.truncation.is_some();
        let data = |facts: &GrepFacts| {
            let lines = report.files.iter().flat_map(|file| {
                let path = shown(&file.path);
                file.lines.iter().map(move |line| MatchingLine {
                    file: path.clone(),
                    line: line.number,
                    content: line.text.clone(),
                })
            });
            json!(SearchMatches {
                matches: lines.collect(),
                total: report.totals.and_then(|totals| totals.matching_lines),
                truncated: facts.truncated,
                pattern,
            })
        };
        let matches = report.files.iter().map(|file| file.lines.len()).sum();
        let mut text = or_words(report.text(), &nothing);
        match report.truncation.map(|cut| cut.reason) {
            Some(TruncationReason::Limit | TruncationReason::Bytes) => {
                line(&mut text, &format!("[only the first {matches} are shown]"));
            }
            Some(TruncationReason::Time) => {
                line(&mut text, "[the search timed out; use a smaller path]");
            }
            None => {}
        }
        Ok(Reply::text(text, GrepFacts { matches, truncated })
            .with_data(context.options.interface, data))
    }
}

/// The tool behind the task step `create_directory`. It is in no catalogue.
#[derive(Debug)]
pub struct CreateDirectory;

/// The input of [`CreateDirectory`].
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreateDirectoryInput {
    /// The directory, relative to the workspace. Missing parents are created.
    pub path: String,
}

/// The facts about a created directory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DirectoryFacts {
    /// The directory, relative to the workspace.
    pub path: String,
}

impl Tool for CreateDirectory {
    type Input = CreateDirectoryInput;
    type Facts = DirectoryFacts;

    const ABOUT: About = About {
        name: "create_directory",
        title: "Create a directory",
        group: ToolGroup::Workspace,
        in_default_set: false,
        effect: Effect { destructive: false, idempotent: true, open_world: false },
        description: "Creates a directory of the workspace with its missing parents.",
        ..About::WRITE
    };

    async fn call(
        context: &ToolContext,
        input: CreateDirectoryInput,
    ) -> ToolResult<DirectoryFacts> {
        let files = WorkspaceFiles::of(context);
        let interface = context.options.interface;
        blocking(move || {
            let path = files.workspace.relative(&input.path);
            // Names of credential files are refused for directories as they are for files.
            if let Err(error) = files.root().browse().metadata(&path)
                && error.problem() == Problem::Sensitive
            {
                return Err(error.into());
            }
            files.root().create_directories(&path, DIRECTORY_MODE)?;
            let text = format!("created {}\n", input.path);
            let data = |_: &DirectoryFacts| json!({ "created": true, "path": input.path });
            Ok(Reply::text(text, DirectoryFacts { path: shown(&path) }).with_data(interface, data))
        })
        .await
    }
}
