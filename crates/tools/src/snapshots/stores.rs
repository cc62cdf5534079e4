//! The snapshot stores of a server: one for each workspace, opened on first use and shared by all sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use carrel_domain::{Code, Failure, sync};
use carrel_fsroot::Identity;
use carrel_snapshot::Store;
use tracing::warn;

use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::tool_context::ToolContext;

/// The stores that are kept open. Each has the names and change keys of its workspace in memory.
const MAX_OPEN: usize = 32;

/// Bounds the paths of workspaces that were looked at. Looking costs two system calls.
const MAX_CHECKED: usize = 1024;

/// The snapshot stores of a server, by the paths of their workspaces.
#[derive(Debug, Default)]
pub struct SnapshotStores {
    slots: Mutex<BTreeMap<PathBuf, Arc<Slot>>>,
    /// The workspaces in which a restore that was cut short was looked for.
    checked: Mutex<BTreeSet<PathBuf>>,
}

/// The place of a store, whose opening may take long. Other workspaces do not wait for it.
#[derive(Debug)]
struct Slot {
    open: Mutex<Option<OpenStore>>,
    used: Mutex<Instant>,
}

#[derive(Debug)]
struct OpenStore {
    store: Arc<Store>,
    /// The directory of the workspace, which may be another one of the same path later.
    workspace: Identity,
}

impl SnapshotStores {
    /// Returns the store of a workspace. It blocks, for an interrupted restore is finished first, under the write lock,
    /// which the caller must not hold.
    pub(crate) fn of(&self, workspace: &NamedWorkspace) -> Result<Arc<Store>, Failure> {
        let identity = workspace.files().identity()?;
        let slot = self.slot(workspace.path());
        let mut place = sync::lock(&slot.open);
        let handle = workspace.handle();
        let is_interrupted = handle.has_interrupted_restore();
        let writing = if is_interrupted { Some(handle.lock_for_writing()?) } else { None };
        if let Some(open) = &*place
            && open.workspace == identity
        {
            if writing.is_some() {
                open.store.finish_interrupted()?;
            }
            return Ok(Arc::clone(&open.store));
        }
        let store = Arc::new(open(workspace)?);
        *place = Some(OpenStore { store: Arc::clone(&store), workspace: identity });
        Ok(store)
    }

    /// Closes the store of a workspace that is about to go.
    pub fn forget(&self, path: &Path) {
        sync::lock(&self.slots).remove(path);
    }

    fn slot(&self, path: &Path) -> Arc<Slot> {
        let mut slots = sync::lock(&self.slots);
        let now = Instant::now();
        let new = || Arc::new(Slot { open: Mutex::default(), used: Mutex::new(now) });
        let slot = Arc::clone(slots.entry(path.to_owned()).or_insert_with(new));
        *sync::lock(&slot.used) = now;
        if slots.len() > MAX_OPEN {
            let oldest = slots.iter().min_by_key(|(_, slot)| *sync::lock(&slot.used));
            let oldest = oldest.map(|(path, _)| path.clone());
            oldest.map(|oldest| slots.remove(&oldest));
        }
        slot
    }
}

/// Finishes a restore or undo that was cut short, before the first call in a workspace sees what it left.
pub(crate) async fn finish_interrupted(context: &ToolContext) {
    let Some(workspace) = &context.workspace else { return };
    let stores = &context.toolbox.snapshots;
    if sync::lock(&stores.checked).contains(workspace.path()) {
        return;
    }
    if workspace.handle().has_interrupted_restore() {
        let own = context.clone();
        let finished = blocking(move || own.toolbox.snapshots.of(own.workspace())).await;
        if let Err(failure) = finished {
            warn!(failure.message, "a restore that was interrupted is not finished");
            return;
        }
    }
    let mut checked = sync::lock(&stores.checked);
    if checked.len() >= MAX_CHECKED {
        checked.clear();
    }
    checked.insert(workspace.path().to_owned());
}

fn open(workspace: &NamedWorkspace) -> Result<Store, Failure> {
    let name = workspace.name();
    let Some(directory) = workspace.handle().snapshot_directory()? else {
        let message = format!(
            "\"{name}\" is a part of a workspace, and snapshots are of whole ones; ask for the whole one"
        );
        return Err(Failure::new(Code::ClientRoots, message).with("workspace", name));
    };
    let store = Store::open(directory, workspace.files().try_clone()?)?;
    if let Some(recovery) = store.recovery() {
        let (snapshot, conflicts) = (recovery.snapshot, recovery.conflicts.len());
        warn!(workspace = name, %snapshot, conflicts, "finished a restore that was interrupted");
    }
    Ok(store)
}
