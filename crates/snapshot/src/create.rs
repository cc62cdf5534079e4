//! Taking a snapshot.
//!
//! ```text
//! scan                         what is new is appended to the segment
//! snapshot-000012.tmp          written
//! fdatasync of both            all content and the record would survive a power loss
//! rename, fsync(directory)     from here on the snapshot is there
//! objects.index, scan.index    caches, not synced, and not written each time
//! ```
//!
//! A crash before the rename leaves content that no snapshot names, which the next collection of garbage drops.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::disk;
use crate::error::StorageError;
use crate::name::{SnapshotId, SnapshotName};
use crate::scan_options::{ScanError, ScanOptions, Scanned};
use crate::snapshot::{Reason, Snapshot};
use crate::store::{State, Store};
use crate::tree::Omission;

/// What becomes of an older snapshot of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameName {
    /// The new one is refused.
    #[default]
    Refused,
    /// The new one replaces it.
    Replaced,
}

/// A snapshot to take.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// Its name, if it has one.
    pub name: Option<SnapshotName>,
    /// What becomes of an older one of the same name.
    pub same_name: SameName,
    /// The reason.
    pub reason: Reason,
    /// Who takes it.
    pub author: String,
    /// What it is for.
    pub description: String,
    /// The snapshot of what the tree began as, for the work of a fork. Its content is kept with this one.
    pub origin: Option<SnapshotId>,
    /// What is taken.
    pub options: ScanOptions,
}

impl CreateRequest {
    /// Returns a request for a snapshot that a caller asks for by a name.
    pub fn named(name: SnapshotName) -> Self {
        Self { name: Some(name), ..Self::unnamed(Reason::Asked) }
    }

    /// Returns a request for a snapshot that is found by its id.
    pub fn unnamed(reason: Reason) -> Self {
        Self {
            name: None,
            same_name: SameName::default(),
            reason,
            author: String::new(),
            description: String::new(),
            origin: None,
            options: ScanOptions::default(),
        }
    }
}

/// A snapshot that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The tree is that of the snapshot before.
    pub is_unchanged: bool,
    /// The files that were read, since they may have changed.
    pub files_read: u64,
    /// What is not in it and why, in path order.
    pub left_out: Vec<(PathBuf, Omission)>,
    /// The older snapshot of the same name, which is gone.
    pub replaced: Option<SnapshotId>,
}

/// Why a snapshot was not taken.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is one of that name.
    #[error(
        "a snapshot named {name:?} exists; choose another name, delete it, or ask to replace it"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The workspace could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Takes a snapshot of the workspace. When it returns, the snapshot survives a power loss.
    ///
    /// An automatic one of a tree that did not change since the newest snapshot is that snapshot: it costs one
    /// look at each file, and displaces no older one.
    pub fn create(&self, request: &CreateRequest) -> Result<Created, CreateError> {
        self.locked(|state| {
            let named =
                |snapshot: &&Snapshot| request.name.is_some() && snapshot.name == request.name;
            let older: Vec<_> =
                state.snapshots.iter().filter(named).map(|snapshot| snapshot.id).collect();
            if let (Some(name), SameName::Refused, false) =
                (&request.name, request.same_name, older.is_empty())
            {
                return Err(CreateError::NameTaken { name: name.to_string() });
            }
            let before = state.objects.stored_bytes();
            let scanned = self.scan(state, &request.options, &BTreeSet::new())?;
            if let Some(same) = same_as_newest(state, request, &scanned) {
                self.save_cache(state, &scanned);
                let Scanned { left_out, files_read, .. } = scanned;
                let is_unchanged = true;
                return Ok(Created {
                    snapshot: same,
                    is_unchanged,
                    files_read,
                    left_out,
                    replaced: None,
                });
            }
            let created = self.record(state, request, scanned, before)?;
            if !older.is_empty() {
                for id in &older {
                    self.remove_record(state, *id)?;
                }
                self.disk.sync_names()?;
            }
            Ok(Created { replaced: older.last().copied(), ..created })
        })
    }

    /// Makes a snapshot of what a scan found.
    pub(crate) fn record(
        &self,
        state: &mut State,
        request: &CreateRequest,
        scanned: Scanned,
        bytes_before: u64,
    ) -> Result<Created, StorageError> {
        state.objects.flush()?;
        let newest = state.snapshots.last();
        let is_unchanged = newest.is_some_and(|newest| newest.top == scanned.top);
        let parent = newest.map(|newest| newest.id);
        // While its record is there, so is its content.
        let origin = request.origin.and_then(|id| state.find(&id.into()).ok().map(|one| one.top));
        let snapshot = Snapshot {
            id: state.take_number(),
            name: request.name.clone(),
            created: self.clock.now(),
            reason: request.reason.clone(),
            author: request.author.clone(),
            description: request.description.clone(),
            parent,
            totals: scanned.totals,
            added_bytes: state.objects.stored_bytes().saturating_sub(bytes_before),
            ignored: request.options.ignored,
            top: scanned.top,
            origin,
        };
        // Before the record is there, so that no other process takes the same number.
        self.announce(state)?;
        self.write_record(state, &snapshot)?;
        state.snapshots.push(snapshot.clone());
        self.save_cache(state, &scanned);
        state.objects.save_index_if_worthwhile()?;
        let Scanned { left_out, files_read, .. } = scanned;
        Ok(Created { snapshot, is_unchanged, files_read, left_out, replaced: None })
    }

    /// Makes a snapshot durable. Content and record are synced at the same time, and both before the record has its name.
    fn write_record(&self, state: &mut State, snapshot: &Snapshot) -> Result<(), StorageError> {
        let (disk, name) = (&*self.disk, snapshot.file_name());
        let unfinished = disk::write_beside(disk, &name, &snapshot.to_bytes())?;
        if state.objects.is_unsynced() {
            let (content, record) = std::thread::scope(|scope| {
                let record = scope.spawn(|| disk.sync(&unfinished));
                (state.objects.sync(), record.join())
            });
            content?;
            record.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        } else {
            disk.sync(&unfinished)?;
        }
        disk.rename(&unfinished, &name)?;
        disk.sync_names()
    }

    /// Removes the record of a snapshot, unsynced.
    pub(crate) fn remove_record(
        &self,
        state: &mut State,
        id: SnapshotId,
    ) -> Result<(), StorageError> {
        self.disk.remove(&crate::snapshot::file_name(id))?;
        state.snapshots.retain(|snapshot| snapshot.id != id);
        state.removed += 1;
        Ok(())
    }
}

/// Returns the newest snapshot if it serves an automatic one.
fn same_as_newest(state: &State, request: &CreateRequest, scanned: &Scanned) -> Option<Snapshot> {
    let is_automatic = matches!(request.reason, Reason::Automatic(_)) && request.name.is_none();
    let newest = state.snapshots.last().filter(|_| is_automatic)?;
    let is_same = newest.top == scanned.top && newest.ignored == request.options.ignored;
    is_same.then(|| newest.clone())
}
