//! The tool `Move`.

use carrel_domain::{Code, Failure};
use carrel_fsroot::{Collision, FileKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trash;
use super::workspace_files::{WorkspaceFiles, required_path, shown};
use crate::blocking::blocking;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

pub(super) struct Move;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, link or directory, relative to the workspace or absolute. A link itself is moved.
    source: String,
    /// The new path, not the directory to move it into. Missing directories are created.
    destination: String,
    /// Move an existing file at the destination to the trash.
    #[serde(default)]
    overwrite: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    source: String,
    destination: String,
    /// The trash path of the replaced file.
    replaced: Option<String>,
}

impl Tool for Move {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "Move",
        title: "Move a file",
        class: Class::Write,
        effect: Effect::REPLACES,
        workspaces: WorkspaceChoice::One,
        rules: CallRules::WRITE,
        description: "Moves or renames a file, a link or a directory in the workspace. An existing \
            destination is refused unless overwrite is set; then it is moved to the trash.",
    };

    async fn call(&self, context: &ToolContext, input: Input) -> Result<Reply<Facts>, Failure> {
        let files = WorkspaceFiles::of(context);
        blocking(move || relocate(&files, &input)).await
    }
}

fn relocate(files: &WorkspaceFiles, input: &Input) -> Result<Reply<Facts>, Failure> {
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
    files.create_parents(&destination)?;
    root.rename(&source, &destination, Collision::Refuse)?;
    if let (Some(old), Ok(new)) = (old, files.key(&destination)) {
        files.session.state().tracker.rename(&old, new);
    }
    drop(writing);
    if replaced.is_some() {
        trash::forget(files);
    }
    let facts = Facts { source: shown(&source), destination: shown(&destination), replaced };
    let mut text = format!("moved {} to {}\n", input.source, input.destination);
    if let Some(replaced) = &facts.replaced {
        line(&mut text, &format!("the replaced file is now {replaced}"));
    }
    Ok(Reply::text(text, facts))
}

/// Moves an existing destination to the trash, if the call allows it.
fn clear_destination(
    files: &WorkspaceFiles,
    input: &Input,
    source: &std::path::Path,
    destination: &std::path::Path,
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
