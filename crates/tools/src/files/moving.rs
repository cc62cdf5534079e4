//! `Move`

use carrel_domain::Code;
use carrel_fsroot::{Collision, FileKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{WorkspaceFiles, path_of, shown};
use super::trash;
use crate::blocking::blocking;
use crate::failure::Failure;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, CallRules, Class, Effect, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

/// Moves or renames something.
pub(super) struct Move;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to move, relative to the workspace, or absolute inside it. A link is moved itself.
    source: String,
    /// Its new path, not the directory to put it in. Directories are made as needed.
    destination: String,
    /// Replace what is there, which goes to the trash.
    #[serde(default)]
    overwrite: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// Where it was.
    source: String,
    /// Where it is.
    destination: String,
    /// Where what was there before is now.
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
        description: "Moves or renames a file, a link or a directory inside the workspace. What \
            stands at the destination is left alone unless overwrite is set; then it goes to the \
            trash. In a git repository prefer `git mv` only if the index must know at once.",
    };

    async fn call(&self, context: &ToolContext, input: Input) -> Result<Reply<Facts>, Failure> {
        let files = WorkspaceFiles::of(context);
        blocking(move || relocate(&files, &input)).await
    }
}

fn relocate(files: &WorkspaceFiles, input: &Input) -> Result<Reply<Facts>, Failure> {
    let source = path_of(files, "source", &input.source)?;
    let destination = path_of(files, "destination", &input.destination)?;
    let root = files.root();
    root.link_metadata(&source)?;
    let writing = files.writing()?;
    files.check_move(&source, &destination)?;
    let replaced = match root.link_metadata(&destination) {
        Ok(metadata) => Some(make_way(files, input, &source, &destination, metadata.kind)?),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error.into()),
    };
    let old = files.key(&source).ok();
    files.make_room(&destination)?;
    root.rename(&source, &destination, Collision::Refuse)?;
    if let (Some(old), Ok(new)) = (old, files.key(&destination)) {
        files.session.state().tracker.moved(&old, new);
    }
    drop(writing);
    if replaced.is_some() {
        trash::forget(files);
    }
    let facts = Facts { source: shown(&source), destination: shown(&destination), replaced };
    let mut text = format!("moved {} to {}\n", input.source, input.destination);
    if let Some(replaced) = &facts.replaced {
        line(&mut text, &format!("what was there is now {replaced}"));
    }
    Ok(Reply::text(text, facts))
}

/// Puts what stands in the way into the trash, if that is wanted.
fn make_way(
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
    let (from, to) = (files.key(source)?, files.key(destination)?);
    if from.path.starts_with(&to.path) || to.path.starts_with(&from.path) {
        return refuse("and one of the two holds the other");
    }
    Ok(shown(&trash::discard(files, destination)?))
}
