//! The snapshot stores of a server: one for each workspace, opened on first use and shared by all sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use carrel_domain::{Code, Failure, sync};
use carrel_fsroot::Identity;
use carrel_snapshot::Store;
use tracing::warn;

use crate::named_workspace::NamedWorkspace;

/// The stores that are kept open. Each has the names and change keys of its workspace in memory.
const MAX_OPEN: usize = 32;

/// The snapshot stores of a server, by the paths of their workspaces.
#[derive(Debug, Default)]
pub struct SnapshotStores(Mutex<BTreeMap<PathBuf, OpenStore>>);

#[derive(Debug)]
struct OpenStore {
    store: Arc<Store>,
    /// The directory of the workspace, which may be another one of the same path later.
    workspace: Identity,
    used: Instant,
}

impl SnapshotStores {
    /// Returns the store of a workspace. It blocks, for an interrupted restore is finished first.
    pub(crate) fn of(&self, workspace: &NamedWorkspace) -> Result<Arc<Store>, Failure> {
        let identity = workspace.files().identity()?;
        let mut all = sync::lock(&self.0);
        if let Some(open) = all.get_mut(workspace.path())
            && open.workspace == identity
        {
            open.used = Instant::now();
            return Ok(Arc::clone(&open.store));
        }
        let store = Arc::new(open(workspace)?);
        let opened =
            OpenStore { store: Arc::clone(&store), workspace: identity, used: Instant::now() };
        all.insert(workspace.path().to_owned(), opened);
        if all.len() > MAX_OPEN
            && let Some((oldest, _)) = all.iter().min_by_key(|(_, open)| open.used)
        {
            let oldest = oldest.clone();
            all.remove(&oldest);
        }
        Ok(store)
    }
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
