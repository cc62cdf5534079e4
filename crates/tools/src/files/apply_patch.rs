//! The tool `ApplyPatch`.
//!
//! A patch of several files is applied in memory first; then its new versions replace the old ones all or
//! nothing ([`ChangeSet`]).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use carrel_domain::{Code, Failure};
use carrel_edit::Document;
use carrel_edit::patch::{self, FileChange, FilePatch, Hunk, HunkLine, Operation, Patch, Sign};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change_set::{After, Before, ChangeSet, NewFile};
use super::trash;
use super::workspace_files::{
    ChangeFacts, WorkspaceFiles, diff_text, is_missing, show_hash, shown,
};
use crate::blocking::blocking;
use crate::read_tracker::RequiredExtent;
use crate::response::Reply;
use crate::snapshots;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;
use crate::verify::edit_feedback;

/// The file type bits of a mode, and those of a regular file.
const FILE_TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

const PERMISSIONS: u32 = 0o777;

pub(super) struct ApplyPatch;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// A unified diff of one or more files (as `git diff` writes it), or the
    /// `*** Begin Patch` form. Line numbers may be wrong; the lines themselves must be there.
    #[schemars(extend("x-brief" = ""))]
    patch: String,
    /// For each path, the `hash` of an earlier reply, instead of reading the file again.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    expected_hashes: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// Files that were created, changed or moved.
    changed: Vec<ChangeFacts>,
    /// Files that were deleted; they are in the trash.
    deleted: Vec<String>,
    /// Number of hunks that were found at other lines than the patch says.
    moved_hunks: usize,
}

impl Tool for ApplyPatch {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "ApplyPatch",
        title: "Apply a patch",
        description: "Patches several files, all or none: a unified diff or `*** Begin Patch`. \
            Context must match, line numbers need not; no Read needed.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        if patch::parse(&input.patch).is_ok_and(|patch| patch.files.len() > 1) {
            snapshots::before(context, "before a patch of several files").await;
        }
        let files = WorkspaceFiles::of(context);
        let mut reply = blocking(move || apply(&files, &input)).await?;
        let files = reply.facts.changed.iter_mut();
        let changed = files.map(|file| (file.path.as_str(), &mut file.hash)).collect();
        edit_feedback::add_for_files(context, changed, &mut reply.content).await;
        for changed in &reply.facts.changed {
            show_hash(
                context,
                &mut reply.content,
                &format!("{} of {}", changed.hash, changed.path),
            );
        }
        Ok(reply)
    }
}

fn apply(files: &WorkspaceFiles, input: &Input) -> ToolResult<Facts> {
    let text = &input.patch;
    let parsed = patch::parse(text)
        .map_err(|error| Failure::new(Code::PatchInvalid, format!("invalid patch: {error}")))?;
    files.check_masks(text, "a file")?;
    check_modes(&parsed)?;
    let writing = files.writing()?;
    let before = load_all(files, &parsed)?;
    let changes = in_memory(&parsed, &before)?;
    check_known(files, &parsed, (&before, &changes), &input.expected_hashes)?;
    let after = after(files, &changes);
    let changes_of_files = ChangeSet { doing: "patch", before, after };
    changes_of_files.commit(files)?;
    let reply = report(files, &changes_of_files, &changes);
    drop(writing);
    trash::forget(files);
    Ok(reply)
}

/// Refuses links and submodules, which text cannot represent.
fn check_modes(parsed: &Patch) -> Result<(), Failure> {
    let odd = |file: &&patch::FilePatch| {
        file.mode.is_some_and(|mode| mode & FILE_TYPE != 0 && mode & FILE_TYPE != REGULAR)
    };
    match parsed.files.iter().find(odd) {
        None => Ok(()),
        Some(file) => {
            let path = file.operation.path();
            let message = format!(
                "{path} is no regular file in the patch; links and submodules cannot be patched"
            );
            Err(Failure::new(Code::PatchInvalid, message).with("path", path))
        }
    }
}

fn load_all(files: &WorkspaceFiles, parsed: &Patch) -> Result<Before, Failure> {
    let mut before = Before::new();
    for file in &parsed.files {
        for name in file.operation.source().into_iter().chain(file.operation.target()) {
            if before.contains_key(name) {
                continue;
            }
            let path = files.workspace.relative(name);
            let loaded =
                if is_missing(files.root(), &path)? { None } else { Some(files.load(&path)?) };
            before.insert(name.to_owned(), loaded);
        }
    }
    Ok(before)
}

/// Refuses to change a file that the caller does not know.
fn check_known(
    files: &WorkspaceFiles,
    parsed: &Patch,
    (before, changes): (&Before, &[FileChange]),
    expected: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    for (file, change) in parsed.files.iter().zip(changes) {
        let source = file.operation.source();
        let Some((name, loaded)) = source.and_then(|name| Some((name, before[name].as_ref()?)))
        else {
            continue;
        };
        let expected = expected.get(name).map(String::as_str);
        if expected.is_some() || !proves_knowledge(file, change) {
            let about = ("patch", file.operation.path());
            files.check(loaded, expected, RequiredExtent::Part, about)?;
        }
    }
    Ok(())
}

/// Tells whether a section names lines of the file in every hunk, and the file has all of them.
fn proves_knowledge(file: &FilePatch, change: &FileChange) -> bool {
    let names_lines = |hunk: &Hunk| {
        let is_old = |line: &HunkLine| line.sign != Sign::Add && !line.text.trim().is_empty();
        hunk.lines.iter().any(is_old)
    };
    !file.hunks.is_empty()
        && file.hunks.iter().all(names_lines)
        && change.hunks.iter().all(|placed| placed.fuzz == 0)
}

fn in_memory(parsed: &Patch, before: &Before) -> Result<Vec<FileChange>, Failure> {
    let not_text: RefCell<Option<Failure>> = RefCell::default();
    let read = |name: &str| -> Option<Document> {
        let loaded = before.get(name)?.as_ref()?;
        loaded.document(name).map_err(|failure| not_text.borrow_mut().replace(failure)).ok()
    };
    let applied = patch::apply_all(parsed, read);
    if let Some(failure) = not_text.into_inner() {
        return Err(failure);
    }
    applied.map_err(|error| {
        let failure = Failure::new(Code::PatchFailed, error.to_string()).with("path", error.path);
        error.hunk.map_or(failure.clone(), |hunk| failure.with("hunk", hunk))
    })
}

/// Returns the final version of each file; a patch may change one several times.
fn after(files: &WorkspaceFiles, changes: &[FileChange]) -> After {
    let mut after = After::new();
    for change in changes {
        match &change.operation {
            Operation::Delete { path } | Operation::Rename { from: path, .. } => {
                after.insert(files.workspace.relative(path), None);
            }
            Operation::Create { .. } | Operation::Modify { .. } | Operation::Copy { .. } => {}
        }
        if let (Some(target), Some(document)) = (change.operation.target(), &change.after) {
            let text = document.text().to_owned();
            let bytes = document.encode().into_owned();
            let mode = change.mode.map(|mode| mode & PERMISSIONS);
            after.insert(files.workspace.relative(target), Some(NewFile { text, bytes, mode }));
        }
    }
    after
}

fn report(files: &WorkspaceFiles, set: &ChangeSet, changes: &[FileChange]) -> Reply<Facts> {
    let mut text = String::new();
    let mut written = Vec::new();
    let mut deleted = Vec::new();
    for (path, new) in &set.after {
        let old = set.old(files, path);
        match (new, old) {
            (None, _) => {
                set.forget(files, path);
                deleted.push(shown(path));
            }
            (Some(new), old) => {
                let name = shown(path);
                let old_text = old.and_then(|old| old.document(&name).ok());
                let (diff, shown) =
                    diff_text(old_text.as_ref().map(Document::text), &new.text, &name);
                text.push_str(&shown);
                let hash = set.record(files, path, (new, &diff));
                let created = old.is_none();
                written.push(ChangeFacts::new(name, created, new.bytes.len(), hash, &diff));
            }
        }
    }
    let mut heading = format!("patched {} file(s)", written.len());
    if !deleted.is_empty() {
        write!(heading, ", deleted {}", deleted.join(", ")).expect("a string takes all");
    }
    let placed = changes.iter().flat_map(|change| &change.hunks);
    let moved_hunks = placed
        .filter(|hunk| hunk.offset.is_some_and(|offset| offset != 0) || hunk.fuzz > 0)
        .count();
    if moved_hunks > 0 {
        write!(heading, "; {moved_hunks} hunk(s) were at other lines than the patch says")
            .expect("a string takes all");
    }
    Reply::text(format!("{heading}\n\n{text}"), Facts { changed: written, deleted, moved_hunks })
}
