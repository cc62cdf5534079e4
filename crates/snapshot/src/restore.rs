//! Restoring a snapshot, in two steps.
//!
//! [`Store::plan_restore`] says exactly what a restore would change. [`Store::apply`] does that and nothing else: it
//! scans again, and refuses if the list would be another one.
//!
//! ```text
//! scan, compare                 the list is that of the plan
//! snapshot `before_restore`     durable, so that the restore can be undone
//! restore.journal               the list, with what is and what will be there; durable
//! remove, make, write, modes    each file written beside and renamed
//! sync, remove restore.journal
//! ```
//!
//! A process that ends in between leaves the journal. The next opening of the store goes through the list again: an
//! entry that is as it was is changed, one that is as it will be is left, and one that has become something
//! else is left and reported. So finishing can itself be interrupted and repeated.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use carrel_fsroot::Durability;
use tracing::{info, warn};

use crate::compare::{Change, ChangeKind, Differences};
use crate::create::CreateRequest;
use crate::disk;
use crate::error::StorageError;
use crate::journal::{self, Journal};
use crate::name::SnapshotId;
use crate::scan::{ScanError, ScanOptions, Scanned};
use crate::snapshot::{Reason, Snapshot};
use crate::store::{FindError, Reference, State, Store};
use crate::tree::{Node, Omission};
use crate::tree_writer::{Present, Times, TreeWriter, WriteError, recorded_path};

/// The options of a restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Paths of files or directories to restore; empty for everything.
    pub paths: Vec<PathBuf>,
    /// The time of the last change that restored files get.
    pub times: Times,
    /// Whether the restored files survive a power loss when the call returns. The state before does in any case.
    pub durability: Durability,
    /// What the scans trust, and their limits. What ignore rules exclude is taken as in the snapshot.
    pub scan: ScanOptions,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            times: Times::default(),
            durability: Durability::Synced,
            scan: ScanOptions::default(),
        }
    }
}

/// What a restore would do.
#[derive(Clone, Debug)]
pub struct RestorePlan {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The changes, in path order, from the present state to that of the snapshot.
    pub changes: Vec<Change>,
    /// What the snapshot does not have and a restore therefore leaves as it is, as far as it lies below a
    /// directory that differs.
    pub left_alone: Vec<(PathBuf, Omission)>,
    /// Directories that the snapshot does not have and that stay, since something that is left alone is in them.
    pub kept: Vec<PathBuf>,
    /// Entries that cannot be restored, since a directory that stays is in their place.
    pub blocked: Vec<PathBuf>,
    options: RestoreOptions,
}

/// What a restore did.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The snapshot of the state before.
    pub before: Snapshot,
    /// The changes that were made, in path order.
    pub changes: Vec<Change>,
    /// Directories that stay, since something that is left alone is in them.
    pub kept: Vec<PathBuf>,
}

/// What became of a restore that was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The snapshot that was being restored.
    pub snapshot: SnapshotId,
    /// The snapshot of the state before.
    pub before: SnapshotId,
    /// The number of entries that were changed now.
    pub finished: usize,
    /// Entries that had become something else since, and were left alone.
    pub conflicts: Vec<PathBuf>,
}

/// Why a restore was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is no such snapshot.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A path is not one of the workspace.
    #[error("not a path of the workspace: {}; give it relative to the workspace, not below .git", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// A path is neither in the snapshot nor in the workspace.
    #[error("neither the snapshot nor the workspace has {}; check its spelling", path.display())]
    UnknownPath {
        /// The path.
        path: PathBuf,
    },
    /// The workspace changed since the plan was made.
    #[error("the workspace has changed since the plan was made, {} first; make a new plan", path.display())]
    Changed {
        /// The first path that differs.
        path: PathBuf,
    },
    /// The workspace could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// An entry could not be written. The restore is finished when the store is opened again; the state before is
    /// kept in a snapshot.
    #[error("could not restore {}; the state before is snapshot {before}", path.display())]
    Write {
        /// The entry.
        path: PathBuf,
        /// The snapshot of the state before.
        before: SnapshotId,
        /// The cause.
        #[source]
        source: carrel_fsroot::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Store {
    /// Returns what a restore would change at present.
    pub fn plan_restore(
        &self,
        snapshot: &Reference,
        options: RestoreOptions,
    ) -> Result<RestorePlan, RestoreError> {
        self.locked(|state| {
            let snapshot = state.find(snapshot)?.clone();
            let (plan, scanned) = self.plan_against_now(state, snapshot, options)?;
            self.save_cache(state, &scanned);
            Ok(plan)
        })
    }

    fn plan_against_now(
        &self,
        state: &mut State,
        snapshot: Snapshot,
        options: RestoreOptions,
    ) -> Result<(RestorePlan, Scanned), RestoreError> {
        let recorded = |path: &PathBuf| {
            recorded_path(path).ok_or_else(|| RestoreError::Path { path: path.clone() })
        };
        let paths = options.paths.iter().map(recorded).collect::<Result<BTreeSet<_>, _>>()?;
        let scan = ScanOptions { ignored: snapshot.ignored, ..options.scan.clone() };
        let scanned = self.scan(state, &scan)?;
        let mut differences = Differences::new(&mut state.objects);
        differences.directories(Path::new(""), Some(scanned.top), Some(snapshot.top))?;
        let (mut found, left_alone) = (differences.found, differences.left_out_of_old);
        for path in &paths {
            let is_known = found.changes.iter().any(|change| change.path.starts_with(path))
                || self.has(state, scanned.top, path)?
                || self.has(state, snapshot.top, path)?;
            if !is_known {
                return Err(RestoreError::UnknownPath { path: path.clone() });
            }
        }
        if !paths.is_empty() {
            found.changes.retain(|change| is_selected(change, &paths));
            found.incomparable.retain(|(path, _)| is_at_or_below(path, &paths));
        }
        let mut plan = RestorePlan {
            snapshot,
            changes: found.changes,
            left_alone: found.incomparable,
            kept: Vec::new(),
            blocked: Vec::new(),
            options,
        };
        plan.keep(&left_alone);
        Ok((plan, scanned))
    }

    /// Returns whether a tree has an entry at a path.
    fn has(
        &self,
        state: &mut State,
        top: crate::ObjectId,
        path: &Path,
    ) -> Result<bool, StorageError> {
        let mut list = Some(top);
        for name in path {
            let Some(id) = list else { return Ok(false) };
            let entries = crate::compare::entries_of(&mut state.objects, id)?;
            match entries.into_iter().find(|entry| entry.name == name) {
                Some(entry) => {
                    list = match entry.node {
                        Node::Directory { id, .. } => Some(id),
                        Node::File { .. } | Node::Link { .. } | Node::LeftOut(_) => None,
                    }
                }
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Restores what a plan says, after a snapshot of the present state. If the process ends in between, the next
    /// [`Store::open`] finishes it.
    pub fn apply(&self, plan: RestorePlan) -> Result<Restored, RestoreError> {
        self.locked(|state| {
            state.find(&plan.snapshot.id.into())?;
            let bytes_before = state.objects.stored_bytes();
            let (now, scanned) =
                self.plan_against_now(state, plan.snapshot.clone(), plan.options.clone())?;
            if let Some(path) = first_difference(&plan.changes, &now.changes) {
                return Err(RestoreError::Changed { path });
            }
            let request = CreateRequest {
                description: format!("before restoring {}", plan.snapshot.id),
                options: ScanOptions {
                    ignored: plan.snapshot.ignored,
                    ..plan.options.scan.clone()
                },
                ..CreateRequest::unnamed(Reason::BeforeRestore)
            };
            let before = self.record(state, &request, scanned, bytes_before)?.snapshot;
            let journal = Journal {
                snapshot: plan.snapshot.id,
                before: before.id,
                times: plan.options.times,
                durability: plan.options.durability,
                changes: plan.changes,
            };
            disk::replace(&*self.disk, journal::FILE, &journal.to_bytes())?;
            let (_, mut kept) = self.carry_out(state, &journal, Trusted::Plan)?;
            self.end_journal()?;
            kept.extend(plan.kept);
            kept.sort_unstable();
            Ok(Restored { before, changes: journal.changes, kept })
        })
    }

    fn end_journal(&self) -> Result<(), StorageError> {
        self.disk.remove(journal::FILE)?;
        self.disk.sync_names()
    }

    /// Finishes a restore that was interrupted.
    pub(crate) fn recover(&self, state: &mut State) -> Result<Option<Recovery>, RestoreError> {
        let Some(bytes) = disk::read(&*self.disk, journal::FILE)? else { return Ok(None) };
        let Some(journal) = Journal::of_bytes(&bytes) else {
            // It was renamed to its place after it was synced, so this is damage of the disk.
            warn!("the journal of a restore is damaged; the restore is not finished");
            self.end_journal()?;
            return Ok(None);
        };
        let (recovery, _) = self.carry_out(state, &journal, Trusted::Nothing)?;
        self.end_journal()?;
        info!(snapshot = %journal.snapshot, finished = recovery.finished, "finished an interrupted restore");
        Ok(Some(recovery))
    }

    /// Makes the changes of a journal. Also returns the directories that stay since they are not empty.
    fn carry_out(
        &self,
        state: &mut State,
        journal: &Journal,
        trusted: Trusted,
    ) -> Result<(Recovery, Vec<PathBuf>), RestoreError> {
        let writer = TreeWriter::new(&self.workspace, journal.durability, journal.times);
        let mut steps =
            Steps { writer, trusted, finished: 0, conflicts: BTreeSet::new(), kept: Vec::new() };
        let failed = |path: &Path| {
            let path = path.to_owned();
            let before = journal.before;
            move |error: WriteError| match error {
                WriteError::Files(source) => RestoreError::Write { path, before, source },
                WriteError::Storage(error) => RestoreError::Storage(error),
            }
        };
        // What goes, the deepest first, makes room for what comes, the highest first.
        for change in journal.changes.iter().rev() {
            steps.remove(change).map_err(failed(&change.path))?;
        }
        for change in &journal.changes {
            steps.put(change, state).map_err(failed(&change.path))?;
        }
        steps.writer.finish().map_err(WriteError::from).map_err(failed(Path::new(".")))?;
        let recovery = Recovery {
            snapshot: journal.snapshot,
            before: journal.before,
            finished: steps.finished,
            conflicts: steps.conflicts.into_iter().collect(),
        };
        Ok((recovery, steps.kept))
    }
}

/// What is known about the present state when the changes of a journal are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trusted {
    /// It is that of the plan, which was just compared.
    Plan,
    /// Each entry has to be looked at.
    Nothing,
}

struct Steps<'a> {
    writer: TreeWriter<'a>,
    trusted: Trusted,
    finished: usize,
    conflicts: BTreeSet<PathBuf>,
    kept: Vec<PathBuf>,
}

impl Steps<'_> {
    /// Removes what a change removes.
    fn remove(&mut self, change: &Change) -> Result<(), WriteError> {
        let (ChangeKind::Deleted | ChangeKind::Type, Some(old)) = (&change.kind, &change.old)
        else {
            return Ok(());
        };
        let is_directory = matches!(old, Node::Directory { .. });
        // A file or link that becomes a file or link is replaced in one step.
        let becomes_directory = matches!(change.new, Some(Node::Directory { .. }));
        if change.kind == ChangeKind::Type && !is_directory && !becomes_directory {
            return Ok(());
        }
        if self.trusted == Trusted::Nothing {
            match self.writer.compare(&change.path, old)? {
                Present::Same | Present::OtherMode => {}
                Present::Missing => return Ok(()),
                Present::Other => {
                    let is_done = match &change.new {
                        Some(new) => self.writer.compare(&change.path, new)? != Present::Other,
                        None => false,
                    };
                    if !is_done {
                        self.conflicts.insert(change.path.clone());
                    }
                    return Ok(());
                }
            }
        }
        if self.writer.remove(&change.path, is_directory)? {
            self.finished += 1;
        } else {
            self.kept.push(change.path.clone());
        }
        Ok(())
    }

    /// Makes or changes what a change makes or changes.
    fn put(&mut self, change: &Change, state: &mut State) -> Result<(), WriteError> {
        let Some(new) = &change.new else { return Ok(()) };
        let is_in_the_way = |kept: &PathBuf| change.path.starts_with(kept);
        if self.conflicts.iter().any(is_in_the_way)
            || (change.kind == ChangeKind::Type && self.kept.contains(&change.path))
        {
            return Ok(());
        }
        if self.trusted == Trusted::Nothing {
            let present = self.writer.compare(&change.path, new)?;
            let is_as_before = match (&change.old, present) {
                (_, Present::Same) => return Ok(()),
                // Its mode is set, which can be done twice.
                (_, Present::OtherMode) => {
                    self.finished += 1;
                    return Ok(self.writer.set_mode(&change.path, new)?);
                }
                (_, Present::Missing) => true,
                (Some(old), Present::Other) => {
                    self.writer.compare(&change.path, old)? != Present::Other
                }
                (None, Present::Other) => false,
            };
            if !is_as_before {
                self.conflicts.insert(change.path.clone());
                return Ok(());
            }
        }
        self.finished += 1;
        match change.kind {
            ChangeKind::Mode => Ok(self.writer.set_mode(&change.path, new)?),
            ChangeKind::Added
            | ChangeKind::Modified
            | ChangeKind::Type
            | ChangeKind::Renamed { .. }
            | ChangeKind::Deleted => self.writer.put(&change.path, new, &mut state.objects),
        }
    }
}

impl RestorePlan {
    /// Keeps the directories that contain something that is left alone.
    fn keep(&mut self, left_alone: &[(PathBuf, Omission)]) {
        let occupied: BTreeSet<&Path> =
            left_alone.iter().flat_map(|(path, _)| path.ancestors().skip(1)).collect();
        let (mut kept, mut blocked) = (Vec::new(), Vec::new());
        self.changes.retain(|change| {
            let was_directory = matches!(change.old, Some(Node::Directory { .. }));
            if !was_directory || !occupied.contains(&*change.path) {
                return true;
            }
            match change.kind {
                ChangeKind::Deleted => kept.push(change.path.clone()),
                ChangeKind::Type => blocked.push(change.path.clone()),
                ChangeKind::Added
                | ChangeKind::Modified
                | ChangeKind::Mode
                | ChangeKind::Renamed { .. } => return true,
            }
            false
        });
        (self.kept, self.blocked) = (kept, blocked);
    }
}

fn is_at_or_below(path: &Path, paths: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().any(|above| paths.contains(above))
}

/// Returns whether a change belongs to a restore of these paths: at or below them, or a directory above that is
/// missing.
fn is_selected(change: &Change, paths: &BTreeSet<PathBuf>) -> bool {
    let makes_directory = matches!(change.kind, ChangeKind::Added | ChangeKind::Type)
        && matches!(change.new, Some(Node::Directory { .. }));
    is_at_or_below(&change.path, paths)
        || (makes_directory && paths.iter().any(|path| path.starts_with(&change.path)))
}

fn first_difference(planned: &[Change], now: &[Change]) -> Option<PathBuf> {
    let same = |one: &Option<Node>, other: &Option<Node>| match (one, other) {
        // The list of a directory is not what a change of it is about.
        (Some(Node::Directory { mode, .. }), Some(Node::Directory { mode: other, .. })) => {
            mode == other
        }
        (Some(one), Some(other)) => one.is_same(other),
        (one, other) => one == other,
    };
    let mut pairs = planned.iter().zip(now);
    let differs = pairs.find(|(planned, now)| {
        planned.path != now.path
            || planned.kind != now.kind
            || !same(&planned.old, &now.old)
            || !same(&planned.new, &now.new)
    });
    let longer = if planned.len() > now.len() { planned } else { now };
    let rest = longer.get(planned.len().min(now.len()));
    differs
        .map(|(planned, now)| (&planned.path).min(&now.path))
        .or(rest.map(|change| &change.path))
        .cloned()
}
