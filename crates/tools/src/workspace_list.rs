//! The list of workspaces on the command line: `name=directory,directory:ro,…`.

use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded, WorkspaceAccess};
use serde_json::{Value, json};

/// The value of `workspace` for every workspace in turn; no workspace can have this name.
pub(crate) const ALL: &str = "all";

/// Bounds the length of messages.
const MAX_NAME_BYTES: usize = 64;

const READ_ONLY_SUFFIX: &str = ":ro";

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceEntry {
    /// The name that calls use.
    pub name: String,
    /// The directory. A workspace is opened with an absolute path, under which calls may name its files.
    pub path: PathBuf,
    /// Read-only if marked.
    pub access: WorkspaceAccess,
}

/// An invalid list of workspaces. `index` counts entries from 0, and names the later one where two conflict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages show what the fields are")]
pub enum WorkspaceListError {
    /// No entry at all.
    #[error("workspaces: no entries parsed from {spec:?}")]
    Empty { spec: String },
    /// An entry without a directory.
    #[error("workspaces: empty path in entry {entry:?}")]
    EmptyPath { entry: String },
    /// No name follows from the directory.
    #[error(
        "workspace[{index}]: cannot derive a non-empty name from root {root:?}; pass an explicit name"
    )]
    NoName { index: usize, root: String },
    /// An invalid name.
    #[error(
        "workspace[{index}]: {name:?} is no name; use up to 64 letters, digits, `.`, `_` and `-`, \
         and not `all`"
    )]
    BadName { index: usize, name: String },
    /// Two entries with one name.
    #[error("workspace[{index}]: duplicate name {name:?}")]
    DuplicateName { index: usize, name: String },
    /// Two names for one directory, or one directory inside another.
    #[error(
        "workspace[{index}] ({name}): {path} {relation} workspace {other:?}; one file would be in two workspaces"
    )]
    Overlap { index: usize, name: String, path: String, relation: &'static str, other: String },
}

impl Coded for WorkspaceListError {
    fn code(&self) -> Code {
        Code::WorkspacesInvalid
    }

    fn detail(&self) -> Value {
        match self {
            Self::Empty { spec } => json!({ "spec": spec }),
            Self::EmptyPath { entry } => json!({ "entry": entry }),
            Self::NoName { index, root } => json!({ "index": index, "root": root }),
            Self::BadName { index, name } | Self::DuplicateName { index, name } => {
                json!({ "index": index, "name": name })
            }
            Self::Overlap { index, name, other, .. } => {
                json!({ "index": index, "name": name, "other": other })
            }
        }
    }
}

/// Parses the list. A comma in a directory is written `\,`; `:ro` behind a directory makes the workspace
/// read-only. An entry without a name is named after its directory.
pub fn parse_workspaces(spec: &str) -> Result<Vec<WorkspaceEntry>, WorkspaceListError> {
    let mut entries = Vec::new();
    for text in split(spec) {
        let entry = entry(text.trim(), entries.len())?;
        if entries.iter().any(|other: &WorkspaceEntry| other.name == entry.name) {
            let index = entries.len();
            let name = entry.name;
            return Err(WorkspaceListError::DuplicateName { index, name });
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(WorkspaceListError::Empty { spec: spec.to_owned() });
    }
    Ok(entries)
}

/// Splits at commas without a backslash before them, and drops empty parts.
fn split(spec: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = spec.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&',') => {
                characters.next();
                last(&mut parts).push(',');
            }
            ',' => parts.push(String::new()),
            other => last(&mut parts).push(other),
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn last(parts: &mut [String]) -> &mut String {
    parts.last_mut().expect("there is always a last part")
}

fn entry(text: &str, index: usize) -> Result<WorkspaceEntry, WorkspaceListError> {
    // A name has no slash, so `/data/a=b` is a directory.
    let named = text.split_once('=').filter(|(name, _)| !name.contains('/'));
    let (name, path) = match named {
        Some((name, path)) => (Some(name.trim()), path.trim()),
        None => (None, text),
    };
    let (path, access) = match path.strip_suffix(READ_ONLY_SUFFIX) {
        Some(path) => (path, WorkspaceAccess::ReadOnly),
        None => (path, WorkspaceAccess::ReadWrite),
    };
    if path.is_empty() {
        return Err(WorkspaceListError::EmptyPath { entry: text.to_owned() });
    }
    let path = PathBuf::from(path);
    let name = match name {
        Some(name) => name.to_owned(),
        None => name_of(&path).ok_or_else(|| WorkspaceListError::NoName {
            index,
            root: path.display().to_string(),
        })?,
    };
    if !is_name(&name) {
        return Err(WorkspaceListError::BadName { index, name });
    }
    Ok(WorkspaceEntry { name, path, access })
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Tells whether a text is a valid name: 1 to 64 bytes from `[A-Za-z0-9._-]`, and not `all`.
pub fn is_name(name: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name != ALL && name.len() <= MAX_NAME_BYTES && name.bytes().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn read(spec: &str) -> Vec<(String, String, bool)> {
        let entries = parse_workspaces(spec).expect("it is valid");
        let row = |entry: WorkspaceEntry| {
            let read_only = entry.access == WorkspaceAccess::ReadOnly;
            (entry.name, entry.path.display().to_string(), read_only)
        };
        entries.into_iter().map(row).collect()
    }

    fn error(spec: &str) -> String {
        parse_workspaces(spec).expect_err("it is not valid").to_string()
    }

    #[test]
    fn entries_are_split_trimmed_and_named_after_their_directory() {
        let row = |name: &str, path: &str, read_only| (name.into(), path.into(), read_only);
        assert_eq!(
            read("  primary = A , B , "),
            [row("primary", "A", false), row("B", "B", false)]
        );
        assert_eq!(read("n=/w/a=b"), [row("n", "/w/a=b", false)]);
        assert_eq!(read("/w/x=y/z"), [row("z", "/w/x=y/z", false)], "an equals sign in a path");
        assert_eq!(read(r"n=/w/a\,b,m=/c:ro"), [row("n", "/w/a,b", false), row("m", "/c", true)]);
    }

    #[test]
    fn missing_and_duplicate_parts_are_named() {
        assert_eq!(error(""), "workspaces: no entries parsed from \"\"");
        assert_eq!(error(" , ,"), "workspaces: no entries parsed from \" , ,\"");
        assert_eq!(error("name="), "workspaces: empty path in entry \"name=\"");
        assert_eq!(error("a=/x,a=/y"), "workspace[1]: duplicate name \"a\"");
        assert!(error("/").starts_with("workspace[0]: cannot derive a non-empty name from root"));
        assert!(error("all=/x").contains("\"all\" is no name"));
        assert!(error("a b=/x").contains("\"a b\" is no name"));
    }
}
