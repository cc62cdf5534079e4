//! Snapshots of workspaces, and undo.

mod automatic;
mod call_changes;
mod create;
mod delete;
mod diff;
mod facts;
mod list;
mod restore;
mod retention;
mod stores;
mod undo;

use std::path::{Component, PathBuf};

use carrel_domain::{Code, Failure};
use carrel_exec::{Job, JobStatus};
use carrel_snapshot::{Reference, Trust};

pub(crate) use automatic::before;
pub(crate) use call_changes::{CallChanges, Change};
pub use stores::SnapshotStores;
pub(crate) use undo::keep;

use crate::named_workspace::NamedWorkspace;
use crate::registry::Catalogue;
use crate::tool_context::ToolContext;

/// The changes that a reply lists.
const MAX_LISTED: usize = 200;

/// Characters of a tree's hash in the reply of `snapshot_create`, as many as a commit of git has.
const CREATED_ID: usize = 40;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<create::SnapshotCreate>();
    catalogue.add::<list::List>();
    catalogue.add::<diff::SnapshotDiff>();
    catalogue.add::<restore::SnapshotRestore>();
    catalogue.add::<delete::SnapshotDelete>();
    catalogue.add::<undo::Undo>();
    catalogue.add::<undo::UndoList>();
    catalogue.add::<undo::UndoRestore>();
}

/// Returns the files whose change keys are believed: none while a background command runs, which may have files
/// mapped and change them without changing their keys.
fn trust(context: &ToolContext) -> Trust {
    let is_running = |job: &Job| job.status() == JobStatus::Running;
    if context.toolbox.jobs.list().iter().any(is_running) { Trust::Nothing } else { Trust::Keys }
}

/// Returns a path relative to the workspace. It is compared with recorded paths and never opened, so that only its
/// text can lead out.
fn inside(workspace: &NamedWorkspace, path: &str) -> Result<PathBuf, Failure> {
    let relative = workspace.relative(path);
    let mut depth = 0_usize;
    let leaves = |component: Component<'_>| match component {
        Component::Normal(_) => {
            depth += 1;
            false
        }
        Component::CurDir => false,
        Component::ParentDir => depth.checked_sub(1).is_none_or(|up| {
            depth = up;
            false
        }),
        Component::RootDir | Component::Prefix(_) => true,
    };
    if relative.components().any(leaves) {
        let message = format!("path leaves the workspace: {path}");
        return Err(Failure::new(Code::SandboxViolation, message).with("path", path));
    }
    Ok(relative)
}

/// Reads the name or number of a snapshot.
fn reference(name: &str) -> Result<Reference, Failure> {
    Reference::parse(name).map_err(|error| Failure::argument("name", error.to_string()))
}
