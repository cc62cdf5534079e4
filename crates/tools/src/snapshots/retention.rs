//! What is kept of snapshots, and when the rest is dropped.

use std::sync::Arc;

use carrel_snapshot::{Retention, StorageError, Store};
use tracing::warn;

/// Garbage that is worth copying the rest of a store for, if it is at least half of it.
const WORTH_COLLECTING: u64 = 64 << 20;

/// Checkpoints of undo from which on any garbage is, if it is at least half: each of them takes memory.
const MANY_CHECKPOINTS: usize = 256;

/// Deletes the snapshots that are too many, too old or too large, and drops garbage, on a thread of its own.
pub(super) fn enforce_in_background(store: &Arc<Store>) {
    let store = Arc::clone(store);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = enforce(&store) {
            warn!(%error, "could not drop old snapshots; this is tried again with the next one");
        }
    });
}

fn enforce(store: &Store) -> Result<(), StorageError> {
    store.retain(&Retention::default())?;
    if !store.may_have_garbage(WORTH_COLLECTING, MANY_CHECKPOINTS)? || !store.damaged()?.is_empty()
    {
        return Ok(());
    }
    let usage = store.usage()?;
    let is_much = usage.reclaimable >= WORTH_COLLECTING || usage.checkpoints >= MANY_CHECKPOINTS;
    if is_much && usage.reclaimable * 2 >= usage.stored {
        store.collect_garbage()?;
    }
    Ok(())
}
