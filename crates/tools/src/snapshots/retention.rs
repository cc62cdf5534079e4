//! What is kept of snapshots, and when the rest is dropped.

use std::sync::Arc;

use carrel_config::SnapshotPolicy;
use carrel_snapshot::{Budget, Retention, Snapshot, StorageError, Store};
use tracing::warn;

/// Garbage that is worth copying the rest of a store for, if it is at least half of it.
const WORTH_COLLECTING: u64 = 64 << 20;

/// Checkpoints of undo from which on any garbage is, if it is at least half: each of them takes memory.
const MANY_CHECKPOINTS: usize = 256;

/// Deletes the snapshots that are too many, too old or too large, and drops garbage, on a thread of its own.
pub(super) fn enforce_in_background(store: &Arc<Store>, policy: SnapshotPolicy) {
    let store = Arc::clone(store);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = enforce(&store, policy) {
            warn!(%error, "could not drop old snapshots; this is tried again with the next one");
        }
    });
}

/// Returns what an operator's policy keeps.
pub(super) fn retention(policy: SnapshotPolicy) -> Retention {
    let count = usize::try_from(policy.keep).unwrap_or(usize::MAX);
    let (age, bytes) = (policy.keep_for, policy.keep_bytes.as_u64());
    Retention { automatic: Budget { count, age, bytes }, ..Retention::default() }
}

/// Deletes the snapshots that are too many, too old or too large, and drops garbage. Returns what was deleted.
pub(super) fn enforce(
    store: &Store,
    policy: SnapshotPolicy,
) -> Result<Vec<Snapshot>, StorageError> {
    let deleted = store.retain(&retention(policy))?;
    if !store.may_have_garbage(WORTH_COLLECTING, MANY_CHECKPOINTS)? || !store.damaged()?.is_empty()
    {
        return Ok(deleted);
    }
    let usage = store.usage()?;
    let is_much = usage.reclaimable >= WORTH_COLLECTING || usage.checkpoints >= MANY_CHECKPOINTS;
    if is_much && usage.reclaimable * 2 >= usage.stored {
        store.collect_garbage()?;
    }
    Ok(deleted)
}
