//! The tool `Delete`.

use carrel_domain::{Code, Failure};
use carrel_fsroot::FileKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trash;
use super::workspace_files::{WorkspaceFiles, required_path, shown};
use crate::blocking::blocking;
use crate::response::Reply;
use crate::tool::{About, CallRules, Class, Effect, QuotaRule, Tool, WorkspaceChoice};
use crate::tool_context::ToolContext;

pub(super) struct Delete;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file, link or directory, relative to the workspace or absolute. A link itself is deleted.
    path: String,
    /// Also delete a directory that is not empty.
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    path: String,
    /// Its path in the trash; Move restores it.
    trash: String,
}

impl Tool for Delete {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "Delete",
        title: "Delete a file",
        class: Class::Write,
        effect: Effect::REPLACES,
        workspaces: WorkspaceChoice::One,
        rules: CallRules { quota: QuotaRule::FreesSpace, ..CallRules::WRITE },
        description: "Moves a file, a link or, with recursive, a directory into the workspace's \
            trash. The reply has its path there; Move restores it. The last 200 deletions are kept, \
            up to 1 GiB or a quarter of the quota.",
    };

    async fn call(&self, context: &ToolContext, input: Input) -> Result<Reply<Facts>, Failure> {
        let files = WorkspaceFiles::of(context);
        blocking(move || delete(&files, &input)).await
    }
}

fn delete(files: &WorkspaceFiles, input: &Input) -> Result<Reply<Facts>, Failure> {
    let path = required_path(files, "path", &input.path)?;
    let root = files.root();
    let metadata = root.link_metadata(&path)?;
    let located = root.locate(path.parent().unwrap_or(&path)).unwrap_or_default();
    if located.as_os_str().is_empty() && path.file_name().is_none() {
        let message = format!("refusing to delete {}: it is the workspace itself", input.path);
        return Err(Failure::new(Code::InvalidPath, message).with("path", input.path.as_str()));
    }
    if trash::is_inside(&path) {
        let message = format!("{} is in the trash already; remove it with a command", input.path);
        return Err(Failure::new(Code::InvalidPath, message).with("path", input.path.as_str()));
    }
    if metadata.kind == FileKind::Directory && !input.recursive && !root.list(&path)?.is_empty() {
        let message =
            format!("{} is a directory with entries; set recursive to delete it", input.path);
        return Err(
            Failure::new(Code::DirectoryNotEmpty, message).with("path", input.path.as_str())
        );
    }
    let writing = files.writing()?;
    let key = files.key(&path).ok();
    let target = trash::discard(files, &path)?;
    if let Some(key) = key {
        files.session.state().tracker.forget_file(&key);
    }
    drop(writing);
    trash::forget(files);
    let facts = Facts { path: shown(&path), trash: shown(&target) };
    let text = format!("deleted {}; it is now {}\n", input.path, facts.trash);
    Ok(Reply::text(text, facts))
}
