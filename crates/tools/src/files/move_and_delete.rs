//! The tools `Move` and `Delete`.

use std::path::Path;

use carrel_domain::{Code, Failure};
use carrel_fsroot::{Collision, FileKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trash;
use super::workspace_files::{WorkspaceFiles, required_path, shown};
use crate::blocking::blocking;
use crate::code::{MovedImports, UpdatedFile, update_imports};
use crate::response::Reply;
use crate::snapshots;
use crate::text::line;
use crate::tool::{About, CallRules, QuotaRule, Tool, ToolResult};
use crate::tool_context::ToolContext;
use crate::verify::edit_feedback;

pub(super) struct Move;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MoveInput {
    /// The file, link or directory, relative to the workspace or absolute. A link itself is moved.
    #[schemars(extend("x-brief" = ""))]
    source: String,
    /// The new path, not the directory to move it into. Missing directories are created.
    #[schemars(extend("x-brief" = ""))]
    destination: String,
    /// Move an existing file at the destination to the trash.
    #[serde(default)]
    #[schemars(extend("x-brief" = false))]
    overwrite: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct MoveFacts {
    source: String,
    destination: String,
    /// The trash path of the replaced file.
    replaced: Option<String>,
    /// Files whose imports of the moved one were updated.
    updated: Vec<UpdatedImports>,
    /// Places that may import it and were left, as `path:line`.
    left: Vec<String>,
}

/// A file whose imports were updated.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UpdatedImports {
    path: String,
    /// After the change, for `expected_hash`.
    hash: String,
}

impl Tool for Move {
    type Input = MoveInput;
    type Facts = MoveFacts;

    const ABOUT: About = About {
        name: "Move",
        title: "Move a file",
        description: "Moves or renames a file or directory; imports of it follow where a language \
            server knows them.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: MoveInput) -> ToolResult<MoveFacts> {
        let files = WorkspaceFiles::of(context);
        let imports = imports_of(context, &files, &input).await?;
        let mut reply = blocking(move || relocate(&files, &input, imports.as_ref())).await?;
        let updated = reply.facts.updated.iter_mut();
        let changed = updated.map(|file| (file.path.as_str(), &mut file.hash)).collect();
        edit_feedback::add_for_files(context, changed, &mut reply.content).await;
        Ok(reply)
    }
}

/// Asks for the imports that a move changes, unless the move is going to be refused.
async fn imports_of(
    context: &ToolContext,
    files: &WorkspaceFiles,
    input: &MoveInput,
) -> Result<Option<MovedImports>, Failure> {
    let source = required_path(files, "source", &input.source)?;
    let destination = required_path(files, "destination", &input.destination)?;
    let is_taken = files.root().link_metadata(&destination).is_ok();
    if trash::is_inside(&source) || (is_taken && !input.overwrite) {
        return Ok(None);
    }
    MovedImports::of_move(context, &source, &destination).await
}

fn relocate(
    files: &WorkspaceFiles,
    input: &MoveInput,
    imports: Option<&MovedImports>,
) -> ToolResult<MoveFacts> {
    let source = required_path(files, "source", &input.source)?;
    let destination = required_path(files, "destination", &input.destination)?;
    let root = files.root();
    root.link_metadata(&source)?;
    let writing = files.writing()?;
    files.check_move(&source, &destination)?;
    let replaced = match root.link_metadata(&destination) {
        Ok(metadata) => {
            Some(clear_destination(files, input, &source, &destination, metadata.kind)?)
        }
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error.into()),
    };
    let old = files.key(&source).ok();
    let place = files.place(&source)?;
    files.create_parents(&destination)?;
    root.rename(&source, &destination, Collision::Refuse)?;
    files.note_moved(place, &destination);
    if let (Some(old), Ok(new)) = (old, files.key(&destination)) {
        files.session.state().tracker.rename(&old, new);
    }
    let mut text = format!("moved {} to {}\n", input.source, input.destination);
    if let Some(replaced) = &replaced {
        line(&mut text, &format!("the replaced file is now {replaced}"));
    }
    let (updated, left) = imports.map_or_else(Default::default, |imports| {
        follow(files, imports, (&source, &destination), &mut text)
    });
    drop(writing);
    if replaced.is_some() {
        trash::forget(files);
    }
    let (source, destination) = (shown(&source), shown(&destination));
    Ok(Reply::text(text, MoveFacts { source, destination, replaced, updated, left }))
}

/// Updates imports after a move, and says which were left.
fn follow(
    files: &WorkspaceFiles,
    imports: &MovedImports,
    moved: (&Path, &Path),
    text: &mut String,
) -> (Vec<UpdatedImports>, Vec<String>) {
    match imports {
        MovedImports::Known { edits, .. } if edits.is_empty() => Default::default(),
        MovedImports::Known { server, edits } => match update_imports(files, edits, moved) {
            Ok(updated) => {
                let names: Vec<_> = updated.iter().map(|file| file.path.as_str()).collect();
                line(text, &format!("[imports updated by {server}: {}]", names.join(", ")));
                let updated = updated.into_iter();
                let fact = |UpdatedFile { path, hash }| UpdatedImports { path, hash };
                (updated.map(fact).collect(), Vec::new())
            }
            Err(failure) => {
                let left: Vec<_> = edits.iter().map(|one| shown(&one.path)).collect();
                let (names, reason) = (left.join(", "), failure.message);
                line(text, &format!("[imports were left in {names}: {reason}]"));
                (Vec::new(), left)
            }
        },
        MovedImports::Left { places, reason } => {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            line(text, &format!("[imports may be left at {}{reason}]", places.join(", ")));
            (Vec::new(), places.clone())
        }
    }
}

/// Moves an existing destination to the trash, if the call allows it.
fn clear_destination(
    files: &WorkspaceFiles,
    input: &MoveInput,
    source: &Path,
    destination: &Path,
    kind: FileKind,
) -> Result<String, Failure> {
    let refuse = |reason: &str| {
        let message = format!("{} exists already; {reason}", input.destination);
        Err(Failure::new(Code::AlreadyExists, message).with("path", input.destination.as_str()))
    };
    if !input.overwrite {
        return refuse(match kind {
            FileKind::Directory => "give the whole new path, with the name inside that directory",
            _ => "set overwrite to replace it",
        });
    }
    let from = files.key(source)?;
    let to = files.key(destination)?;
    if from.path.starts_with(&to.path) || to.path.starts_with(&from.path) {
        return refuse("and one of the two holds the other");
    }
    Ok(shown(&trash::discard(files, destination)?))
}

pub(super) struct Delete;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DeleteInput {
    /// The file, link or directory, relative to the workspace or absolute. A link itself is deleted.
    #[schemars(extend("x-brief" = ""))]
    path: String,
    /// Also delete a directory that is not empty.
    #[serde(default)]
    #[schemars(extend("x-brief" = ""))]
    recursive: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DeleteFacts {
    path: String,
    /// Its path in the trash, from which Move restores it; null if it is deleted for good.
    trash: Option<String>,
}

impl Tool for Delete {
    type Input = DeleteInput;
    type Facts = DeleteFacts;

    const ABOUT: About = About {
        name: "Delete",
        title: "Delete a file",
        rules: CallRules { quota: QuotaRule::FreesSpace, ..CallRules::WRITE },
        description: "Moves a file or directory to the trash; Move restores it.",
        ..About::WRITE
    };

    async fn call(context: &ToolContext, input: DeleteInput) -> ToolResult<DeleteFacts> {
        if input.recursive {
            snapshots::before(context, "before a directory is deleted").await;
        }
        let files = WorkspaceFiles::of(context);
        blocking(move || delete(&files, &input)).await
    }
}

fn delete(files: &WorkspaceFiles, input: &DeleteInput) -> ToolResult<DeleteFacts> {
    let path = required_path(files, "path", &input.path)?;
    let root = files.root();
    let metadata = root.link_metadata(&path)?;
    let located = root.locate(path.parent().unwrap_or(&path)).unwrap_or_default();
    let given = input.path.as_str();
    let refuse = |code, message| Err(Failure::new(code, message).with("path", given));
    if located.as_os_str().is_empty() && path.file_name().is_none() {
        let message = format!("refusing to delete {given}: it is the workspace itself");
        return refuse(Code::InvalidPath, message);
    }
    if trash::is_inside(&path) {
        let message = format!("{given} is in the trash already; remove it with a command");
        return refuse(Code::InvalidPath, message);
    }
    if metadata.kind == FileKind::Directory && !input.recursive && !root.list(&path)?.is_empty() {
        let message = format!("{given} is a directory with entries; set recursive to delete it");
        return refuse(Code::DirectoryNotEmpty, message);
    }
    let writing = files.writing()?;
    let key = files.key(&path).ok();
    let target = trash::delete(files, &path)?;
    if let Some(key) = key {
        files.session.state().tracker.forget_file(&key);
    }
    drop(writing);
    trash::forget(files);
    let facts = DeleteFacts { path: shown(&path), trash: target.as_deref().map(shown) };
    let text = match &facts.trash {
        Some(trash) => format!("deleted {}; it is now {trash}\n", input.path),
        None => format!("deleted {} for good: the trash has no room for it\n", input.path),
    };
    Ok(Reply::text(text, facts))
}
