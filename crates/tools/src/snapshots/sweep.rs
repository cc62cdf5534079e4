//! Applies the retention to the snapshots of all workspaces of a root, whether or not anybody uses them.
//!
//! Number and bytes are held when a snapshot is taken. Age passes also where nothing is taken any more.

use std::path::Path;

use carrel_config::SnapshotPolicy;
use carrel_domain::{Failure, WorkspaceKey};
use carrel_fsroot::{FileKind, Root};
use carrel_snapshot::Store;
use carrel_workspace::Workspaces;

use super::retention;

/// The stores, relative to the root.
const STORES: &str = ".carrel/snapshots";

/// The snapshots that a sweep deleted, or would delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweptSnapshots {
    /// The workspaces, each with the number of its snapshots.
    pub deleted: Vec<(WorkspaceKey, usize)>,
    /// Messages about stores that could not be used.
    pub failed: Vec<String>,
}

/// The effect of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepMode {
    /// Snapshots beyond the retention are deleted, and garbage is dropped.
    Delete,
    /// Nothing is changed.
    DryRun,
}

/// Applies an operator's policy to the snapshots of all workspaces of a root. It blocks.
pub fn sweep_snapshots(
    workspaces: &Workspaces,
    policy: SnapshotPolicy,
    mode: SweepMode,
) -> Result<SweptSnapshots, Failure> {
    let root = Root::open(workspaces.path())?;
    let stores = match root.open_root_strict(Path::new(STORES)) {
        Err(error) if error.is_not_found() => return Ok(SweptSnapshots::default()),
        opened => opened?,
    };
    let mut swept = SweptSnapshots::default();
    for entry in stores.list(Path::new("."))? {
        let key = entry.name.to_str().and_then(WorkspaceKey::from_name);
        let Some(key) = key.filter(|_| entry.kind == FileKind::Directory) else { continue };
        match sweep(&root, &stores, &key, policy, mode) {
            Ok(0) => {}
            Ok(deleted) => swept.deleted.push((key, deleted)),
            Err(failure) => swept.failed.push(failure.during(key.as_str()).message),
        }
    }
    Ok(swept)
}

/// Returns the number of snapshots that go.
fn sweep(
    root: &Root,
    stores: &Root,
    key: &WorkspaceKey,
    policy: SnapshotPolicy,
    mode: SweepMode,
) -> Result<usize, Failure> {
    let name = Path::new(key.as_str());
    let workspace = match root.open_root_strict(name) {
        // The clean-up of leftovers deletes the store as well.
        Err(error) if error.is_not_found() => return Ok(0),
        opened => opened?,
    };
    let directory = stores.open_root_strict(name)?;
    // Finishing it takes the workspace's lock and the tree of a fork, as the next call there does.
    if Store::is_interrupted(&directory) {
        return Ok(0);
    }
    let store = Store::open(directory, workspace)?;
    let surplus = match mode {
        SweepMode::Delete => retention::enforce(&store, policy)?,
        SweepMode::DryRun => store.surplus(&retention::retention(policy))?,
    };
    Ok(surplus.len())
}
