//! What is kept of snapshots, and when the rest is dropped.

use std::sync::Arc;

use carrel_snapshot::{Retention, StorageError, Store};
use tracing::warn;

/// Garbage that is worth copying the rest of a store for, which is also at least half of it.
const WORTH_COLLECTING: u64 = 64 << 20;

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
    let usage = store.usage()?;
    if usage.reclaimable >= WORTH_COLLECTING && usage.reclaimable * 2 >= usage.stored {
        store.collect_garbage()?;
    }
    Ok(())
}
