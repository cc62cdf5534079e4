//! Snapshots of workspaces, and undo.

mod automatic;
mod call_changes;
mod create;
mod delete;
pub(crate) mod diff;
mod export;
mod facts;
mod list;
mod restore;
mod retention;
mod stores;
mod sweep;
mod undo;

use std::path::{Component, PathBuf};

use carrel_config::SnapshotPolicy;
use carrel_domain::{Code, Failure};
use carrel_snapshot::{Reference, Trust};

pub use automatic::AutomaticSnapshot;
pub(crate) use automatic::{before, before_command};
pub(crate) use call_changes::{CallChanges, Change};
pub(crate) use diff::{MAX_COMPARED, Shown, body, header};
pub use export::{
    ExportOmission, ExportRequest, ExportedBranch, ExportedCommit, ExportedSnapshots,
    export_snapshots,
};
pub use stores::SnapshotStores;
pub(crate) use stores::finish_interrupted;
pub use sweep::{SweepMode, SweptSnapshots, sweep_snapshots};
pub(crate) use undo::keep;

use crate::named_workspace::NamedWorkspace;
use crate::registry::Catalogue;
use crate::tool_context::ToolContext;

/// The changes that a reply lists, and the paths of each other kind.
const MAX_LISTED: usize = 200;

/// The paths of one kind that the text of a reply names.
const MAX_NAMED: usize = 8;

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

/// Returns the files whose change keys are believed: none while a command that may write runs in the workspace,
/// whichever session or interface started it. It may have files mapped and change them without changing their keys.
fn trust_in(workspace: &NamedWorkspace) -> Trust {
    if workspace.handle().running_commands() > 0 { Trust::Nothing } else { Trust::Keys }
}

fn trust(context: &ToolContext) -> Trust {
    trust_in(context.workspace())
}

/// Returns what is taken without being asked for, and kept of it.
fn policy(context: &ToolContext) -> SnapshotPolicy {
    context.toolbox.runner.policy().snapshots
}

/// Returns the first of some names as one text, with the number of the others.
fn some_of(names: &[String], total: u64) -> String {
    let shown = names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>();
    match total.saturating_sub(shown.len() as u64) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns as many paths as a reply lists, and the number of all.
fn listed<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> (Vec<String>, u64) {
    let (mut listed, mut total) = (Vec::new(), 0);
    for path in paths {
        total += 1;
        if listed.len() < MAX_LISTED {
            listed.push(path.display().to_string());
        }
    }
    (listed, total)
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
