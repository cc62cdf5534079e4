//! What a store holds, deleting snapshots, and collecting garbage.
//!
//! Deleting removes a record. Its content stays until garbage is collected: everything that no snapshot and no
//! checkpoint of undo needs is dropped by copying the rest to a new segment.

use std::collections::HashSet;
use std::time::Duration;

use carrel_domain::Timestamp;

use crate::compare::entries_of;
use crate::error::StorageError;
use crate::name::{SnapshotId, SnapshotName};
use crate::object_id::ObjectId;
use crate::objects::Objects;
use crate::snapshot::{Reason, Snapshot, file_name, number_of};
use crate::store::{FindError, Reference, State, Store};
use crate::tree::Node;
use crate::undo_record;

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

/// The snapshots after whose deletion garbage is looked for again.
const FEW_REMOVED: u64 = 16;

/// A snapshot that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The number.
    pub id: SnapshotId,
    /// The name, if it had one and its record could be read.
    pub name: Option<SnapshotName>,
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
    /// Deletes a snapshot. What only it had is freed by [`collect_garbage`](Self::collect_garbage). One whose record is
    /// damaged is found by its id.
    pub fn delete(&self, reference: &Reference) -> Result<Deleted, FindError> {
        self.locked(|state| {
            let deleted = match (state.find(reference), reference) {
                (Ok(snapshot), _) => Deleted { id: snapshot.id, name: snapshot.name.clone() },
                (Err(error), Reference::Id(id)) => {
                    let file = file_name(*id);
                    if !state.damaged_records.contains(&file) {
                        return Err(error);
                    }
                    state.damaged_records.retain(|damaged| *damaged != file);
                    Deleted { id: *id, name: None }
                }
                (Err(error), Reference::Name(_)) => return Err(error),
            };
            self.delete_all(state, &[deleted.id])?;
            Ok(deleted)
        })
    }

    /// Deletes the snapshots that exceed a retention, and returns them, the oldest first.
    pub fn retain(&self, retention: &Retention) -> Result<Vec<Snapshot>, StorageError> {
        self.locked(|state| {
            let deleted = surplus(&state.snapshots, retention, self.clock.now());
            let ids: Vec<_> = deleted.iter().map(|snapshot| snapshot.id).collect();
            self.delete_all(state, &ids)?;
            Ok(deleted)
        })
    }

    /// Returns the snapshots that exceed a retention, the oldest first.
    pub fn surplus(&self, retention: &Retention) -> Result<Vec<Snapshot>, StorageError> {
        self.locked(|state| Ok(surplus(&state.snapshots, retention, self.clock.now())))
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

    /// Drops content that no snapshot and no checkpoint needs, some segments at a time: between two of these pieces
    /// others use the store.
    ///
    /// A crash at any moment leaves the old segments, or the new one, or both. Refused while content that is needed is
    /// damaged, or a record of a snapshot is: what it names would be dropped.
    pub fn collect_garbage(&self) -> Result<Collected, StorageError> {
        let (before, pieces) = self.locked(|state| {
            let live = self.needed(state)?;
            Ok::<_, StorageError>((state.objects.stored_bytes(), state.objects.pieces(&live)))
        })?;
        for piece in pieces {
            self.locked(|state| {
                // Again: what was dropped by all may be needed now.
                let live = self.needed(state)?;
                self.announce(state)?;
                state.objects.compact(&piece, &live)?;
                state.forget_missing();
                Ok::<_, StorageError>(())
            })?;
        }
        let after = self.locked(|state| {
            // The next opening need not scan what is covered by it.
            state.objects.sync()?;
            state.objects.save_index()?;
            Ok::<_, StorageError>(state.objects.stored_bytes())
        })?;
        Ok(Collected { before, after })
    }

    /// Returns all content that is needed, if that is known.
    fn needed(&self, state: &mut State) -> Result<HashSet<ObjectId>, StorageError> {
        if let Some(file) = state.damaged_records.first() {
            let id = SnapshotId(number_of(file).unwrap_or(0));
            return Err(StorageError::DamagedRecord { file: file.clone(), id });
        }
        let live = live(state, self.clock.now())?;
        // What is needed and lost may still be read from the old segments by other means.
        match live.iter().find(|id| !state.objects.contains(id)) {
            Some(id) => Err(StorageError::Damaged { id: *id }),
            None => Ok(live),
        }
    }

    /// Returns whether it may be worth looking for garbage, without looking: the store holds less than `worth` bytes
    /// and few checkpoints, or has hardly changed since the last look.
    pub fn may_have_garbage(&self, worth: u64, checkpoints: usize) -> Result<bool, StorageError> {
        self.locked(|state| {
            let stored = state.objects.stored_bytes();
            let is_small = stored < worth && state.objects.checkpoints().len() < checkpoints;
            let is_as_before = state.looked.is_some_and(|(then, removed)| {
                stored.saturating_sub(then) < worth / 2 && state.removed - removed < FEW_REMOVED
            });
            Ok(!is_small && !is_as_before)
        })
    }

    /// Returns what the store holds.
    pub fn usage(&self) -> Result<Usage, StorageError> {
        self.locked(|state| {
            let live = live(state, self.clock.now())?;
            state.looked = Some((state.objects.stored_bytes(), state.removed));
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
fn live(state: &mut State, now: Timestamp) -> Result<HashSet<ObjectId>, StorageError> {
    let mut live: HashSet<ObjectId> = undo_record::live(state, now)?.into_iter().collect();
    // Apart from `live`: a file may have the content of a list. Shared, since most lists are those of the snapshot before.
    let mut lists = HashSet::new();
    let tops = state.snapshots.iter().flat_map(|one| [Some(one.top), one.origin]).flatten();
    for top in tops.collect::<Vec<_>>() {
        mark(&mut state.objects, top, &mut live, &mut lists)?;
    }
    Ok(live)
}

/// Adds the list of a directory and everything below it.
fn mark(
    objects: &mut Objects,
    top: ObjectId,
    live: &mut HashSet<ObjectId>,
    lists: &mut HashSet<ObjectId>,
) -> Result<(), StorageError> {
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
fn surplus(snapshots: &[Snapshot], retention: &Retention, now: Timestamp) -> Vec<Snapshot> {
    let is_asked = |snapshot: &&Snapshot| match &snapshot.reason {
        Reason::Asked => true,
        Reason::Automatic(_) | Reason::BeforeRestore => false,
    };
    let (asked, automatic): (Vec<_>, Vec<_>) = snapshots.iter().partition(is_asked);
    let mut surplus = beyond(&asked, &retention.asked, now);
    surplus.extend(beyond(&automatic, &retention.automatic, now));
    surplus.sort_unstable_by_key(|snapshot| snapshot.id);
    surplus
}

fn beyond(snapshots: &[&Snapshot], budget: &Budget, now: Timestamp) -> Vec<Snapshot> {
    let mut bytes = 0_u64;
    let mut surplus = Vec::new();
    for (index, snapshot) in snapshots.iter().rev().enumerate() {
        bytes = bytes.saturating_add(snapshot.added_bytes);
        let is_beyond =
            index >= budget.count || snapshot.created.age(now) > budget.age || bytes > budget.bytes;
        if index > 0 && is_beyond {
            surplus.push((*snapshot).clone());
        }
    }
    surplus
}
