//! `Delete`

use carrel_domain::Code;
use carrel_fsroot::FileKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Desk, path_of, shown};
use super::trash;
use crate::answer::Reply;
use crate::blocking::blocking;
use crate::call::Call;
use crate::failure::Failure;
use crate::tool::{About, Class, Effect, Scope, Tool};

/// Deletes a file or a directory.
pub(super) struct Delete;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to delete, relative to the workspace, or absolute inside it. A link is deleted itself.
    path: String,
    /// Also delete a directory with everything in it.
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    /// What was deleted.
    path: String,
    /// Where it is now; Move brings it back.
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
        scope: Scope::One,
        description: "Moves a file, a link or, with recursive, a directory into the workspace's \
            trash. The answer says where it is; Move brings it back. The last 200 deletions are kept, \
            up to 1 GiB or a quarter of the quota.",
    };

    async fn call(&self, call: &Call, input: Input) -> Result<Reply<Facts>, Failure> {
        let desk = Desk::of(call);
        blocking(move || delete(&desk, &input)).await
    }
}

fn delete(desk: &Desk, input: &Input) -> Result<Reply<Facts>, Failure> {
    let path = path_of(desk, "path", &input.path)?;
    let files = desk.files();
    let metadata = files.link_metadata(&path)?;
    let located = files.locate(path.parent().unwrap_or(&path)).unwrap_or_default();
    if located.as_os_str().is_empty() && path.file_name().is_none() {
        let message = format!("refusing to delete {}: it is the workspace itself", input.path);
        return Err(Failure::new(Code::InvalidPath, message).with("path", input.path.as_str()));
    }
    if trash::is_inside(&path) {
        let message = format!("{} is in the trash already; remove it with a command", input.path);
        return Err(Failure::new(Code::InvalidPath, message).with("path", input.path.as_str()));
    }
    if metadata.kind == FileKind::Directory && !input.recursive && !files.list(&path)?.is_empty() {
        let message =
            format!("{} is a directory with entries; set recursive to delete it", input.path);
        return Err(
            Failure::new(Code::DirectoryNotEmpty, message).with("path", input.path.as_str())
        );
    }
    let writing = desk.writing()?;
    let key = desk.key(&path).ok();
    let target = trash::discard(desk, &path)?;
    if let Some(key) = key {
        desk.session.state().tracker.gone(&key);
    }
    drop(writing);
    trash::forget(desk);
    let facts = Facts { path: shown(&path), trash: shown(&target) };
    let text = format!("deleted {}; it is now {}\n", input.path, facts.trash);
    Ok(Reply::text(text, facts))
}
