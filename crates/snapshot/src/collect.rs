//! What a store holds, deleting snapshots, and collecting garbage.
//!
//! Deleting removes a record. Its content stays until garbage is collected: everything that no snapshot and no
//! checkpoint of undo needs is dropped by copying the rest to a new segment.

use std::collections::HashSet;
use std::time::Duration;

use carrel_domain::Timestamp;

use crate::compare::entries_of;
use crate::error::StorageError;
use crate::name::SnapshotId;
use crate::object_id::ObjectId;
use crate::objects::Objects;
use crate::snapshot::{Reason, Snapshot};
use crate::store::{FindError, Reference, State, Store};
use crate::tree::Node;
use crate::undo;

/// What may be kept of one kind of snapshots. The newest one always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most snapshots.
    pub count: usize,
    /// The age beyond which they are deleted.
    pub age: Duration,
    /// The most bytes that they added to the store, the newest counted first. Content that several snapshots
    /// share counts for the first that had it.
    pub bytes: u64,
}

/// What may be kept. The kinds do not displace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Snapshots that a caller asked for.
    pub asked: Budget,
    /// Automatic ones, and those before restores.
    pub automatic: Budget,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |days: u64| Duration::from_hours(24 * days);
        Self {
            asked: Budget { count: 100, age: days(90), bytes: 4 << 30 },
            automatic: Budget { count: 50, age: days(7), bytes: 1 << 30 },
        }
    }
}

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The bytes of all content.
    pub stored: u64,
    /// The part that collecting garbage would free.
    pub reclaimable: u64,
    /// The bytes that cannot be read.
    pub damaged: u64,
    /// The snapshots.
    pub snapshots: usize,
    /// The checkpoints of undo.
    pub checkpoints: usize,
}

/// What collecting garbage freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The bytes before.
    pub before: u64,
    /// The bytes afterwards.
    pub after: u64,
}

impl Store {
    /// Deletes a snapshot. What only it had is freed by [`collect_garbage`](Self::collect_garbage).
    pub fn delete(&self, reference: &Reference) -> Result<Snapshot, FindError> {
        self.locked(|state| {
            let snapshot = state.find(reference)?.clone();
            self.delete_all(state, &[snapshot.id])?;
            Ok(snapshot)
        })
    }

    /// Deletes the snapshots that exceed a retention, and returns them, the oldest first.
    pub fn retain(&self, retention: &Retention) -> Result<Vec<Snapshot>, StorageError> {
        self.locked(|state| {
            let ids = surplus(&state.snapshots, retention, self.clock.now());
            let is_surplus = |snapshot: &&Snapshot| ids.contains(&snapshot.id);
            let deleted = state.snapshots.iter().filter(is_surplus).cloned().collect();
            self.delete_all(state, &ids)?;
            Ok(deleted)
        })
    }

    fn delete_all(&self, state: &mut State, ids: &[SnapshotId]) -> Result<(), StorageError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.announce(state)?;
        for id in ids {
            self.remove_record(state, *id)?;
        }
        self.disk.sync_names()
    }

    /// Drops content that no snapshot and no checkpoint needs.
    ///
    /// A crash at any moment leaves the old segments, or the new one, or both. Refused while content that is needed is
    /// damaged, or a record of a snapshot is: what it names would be dropped.
    pub fn collect_garbage(&self) -> Result<Collected, StorageError> {
        self.locked(|state| {
            if let Some(file) = state.damaged_records.first() {
                return Err(StorageError::DamagedRecord { file: file.clone() });
            }
            let live = live(state)?;
            let before = state.objects.stored_bytes();
            self.announce(state)?;
            state.objects.compact(&live)?;
            state.forget_missing();
            Ok(Collected { before, after: state.objects.stored_bytes() })
        })
    }

    /// Returns what the store holds.
    pub fn usage(&self) -> Result<Usage, StorageError> {
        self.locked(|state| {
            let live = live(state)?;
            Ok(Usage {
                stored: state.objects.stored_bytes(),
                reclaimable: state.objects.bytes_without(&live),
                damaged: state.objects.damaged_bytes(),
                snapshots: state.snapshots.len(),
                checkpoints: state.objects.checkpoints().len(),
            })
        })
    }
}

/// Returns all content that snapshots and checkpoints need.
fn live(state: &mut State) -> Result<HashSet<ObjectId>, StorageError> {
    let mut live: HashSet<ObjectId> = undo::live(state)?.into_iter().collect();
    for top in state.snapshots.iter().map(|snapshot| snapshot.top).collect::<Vec<_>>() {
        mark(&mut state.objects, top, &mut live)?;
    }
    Ok(live)
}

/// Adds the list of a directory and everything below it.
fn mark(
    objects: &mut Objects,
    top: ObjectId,
    live: &mut HashSet<ObjectId>,
) -> Result<(), StorageError> {
    // Apart from `live`: a file may have the content of a list.
    let mut lists = HashSet::new();
    let mut pending = vec![top];
    while let Some(list) = pending.pop() {
        if !lists.insert(list) {
            continue;
        }
        live.insert(list);
        for entry in entries_of(objects, list)? {
            match entry.node {
                Node::File { id, .. } => drop(live.insert(id)),
                Node::Directory { id, .. } => pending.push(id),
                Node::Link { .. } | Node::LeftOut(_) => {}
            }
        }
    }
    Ok(())
}

/// Returns the snapshots that exceed a retention, the oldest first.
fn surplus(snapshots: &[Snapshot], retention: &Retention, now: Timestamp) -> Vec<SnapshotId> {
    let is_asked = |snapshot: &&Snapshot| match &snapshot.reason {
        Reason::Asked => true,
        Reason::Automatic(_) | Reason::BeforeRestore => false,
    };
    let (asked, automatic): (Vec<_>, Vec<_>) = snapshots.iter().partition(is_asked);
    let mut surplus = beyond(&asked, &retention.asked, now);
    surplus.extend(beyond(&automatic, &retention.automatic, now));
    surplus.sort_unstable();
    surplus
}

fn beyond(snapshots: &[&Snapshot], budget: &Budget, now: Timestamp) -> Vec<SnapshotId> {
    let mut bytes = 0_u64;
    let mut surplus = Vec::new();
    for (index, snapshot) in snapshots.iter().rev().enumerate() {
        bytes = bytes.saturating_add(snapshot.added_bytes);
        let is_beyond =
            index >= budget.count || snapshot.created.age(now) > budget.age || bytes > budget.bytes;
        if index > 0 && is_beyond {
            surplus.push(snapshot.id);
        }
    }
    surplus
}
