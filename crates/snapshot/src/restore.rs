//! Restoring a snapshot, in two steps or in one.
//!
//! [`Store::plan_restore`] says exactly what a restore would change. [`Store::apply`] does that and nothing else: it
//! scans again, and refuses if the list would be another one. [`Store::restore`] does both at once.
//!
//! ```text
//! scan, compare                 the list is that of the plan
//! snapshot `before_restore`     durable, so that the restore can be undone
//! restore.journal               the list, with what is and what will be there; durable
//! remove, make, write, modes    each file written beside and renamed
//! sync, remove restore.journal
//! ```
//!
//! If an entry cannot be written, or something else changes it meanwhile, the changes before it are taken back. A
//! process that ends in between, and a failure of the store itself, leave the journal. The next use of the store goes
//! through the list again: an entry that is as it was is changed, one that is as it will be is left, and one
//! that has become something else is left and reported. So finishing can itself be interrupted and repeated.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use carrel_fsroot::Durability;
use tracing::{info, warn};

use crate::compare::{Change, ChangeKind, Compared};
use crate::create::CreateRequest;
use crate::disk;
use crate::error::StorageError;
use crate::journal::{self, Journal};
use crate::name::SnapshotId;
use crate::restore_steps::{StepOutcome, Steps, Trusted};
use crate::scan_options::{ScanError, ScanOptions, Scanned};
use crate::snapshot::{Reason, Snapshot};
use crate::store::{FindError, Reference, State, Store};
use crate::tree::{Node, Omission};
use crate::tree_writer::{Times, TreeWriter, recorded_path};

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
    /// What differs and cannot be restored, since the snapshot or the scan of the present state left it out: it
    /// stays as it is.
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
    /// What differs and could not be restored, since it is left out of a side.
    pub left_alone: Vec<(PathBuf, Omission)>,
    /// Entries that could not be restored, since a directory that stays is in their place.
    pub blocked: Vec<PathBuf>,
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
    /// Entries that could not be changed.
    pub failed: Vec<PathBuf>,
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
    /// An entry was changed by something else while the restore was under way. It is left as it is, and the changes
    /// before it were taken back.
    #[error("{} was changed while it was to be restored; {}", path.display(), state_after(left, *before))]
    ChangedMeanwhile {
        /// The entry.
        path: PathBuf,
        /// The snapshot of the state before.
        before: SnapshotId,
        /// Entries whose change could not be taken back.
        left: Vec<PathBuf>,
    },
    /// An entry could not be written, and the changes before it were taken back.
    #[error("could not restore {}; {}", path.display(), state_after(left, *before))]
    Write {
        /// The entry.
        path: PathBuf,
        /// The snapshot of the state before.
        before: SnapshotId,
        /// Entries whose change could not be taken back.
        left: Vec<PathBuf>,
        /// The cause.
        #[source]
        source: carrel_fsroot::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

fn state_after(left: &[PathBuf], before: SnapshotId) -> String {
    match left {
        [] => "the workspace is as it was before".to_owned(),
        [first, ..] => format!(
            "{} and {} others are not as they were in snapshot {before}",
            first.display(),
            left.len() - 1
        ),
    }
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

    pub(crate) fn plan_against_now(
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
        let Compared { scanned, mut found, left_out_of_old } =
            self.scan_and_compare(state, &scan, snapshot.top)?;
        for path in &paths {
            let is_known = found.changes.iter().any(|change| change.path.starts_with(path))
                || has(state, scanned.top, path)?
                || has(state, snapshot.top, path)?;
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
        plan.keep(&left_out_of_old);
        Ok((plan, scanned))
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
            self.carry_out_plan(state, plan, scanned, bytes_before)
        })
    }

    /// Restores a snapshot without showing a plan first: [`plan_restore`](Self::plan_restore) and
    /// [`apply`](Self::apply) with one look at the tree.
    pub fn restore(
        &self,
        snapshot: &Reference,
        options: RestoreOptions,
    ) -> Result<Restored, RestoreError> {
        self.locked(|state| {
            let snapshot = state.find(snapshot)?.clone();
            let bytes_before = state.objects.stored_bytes();
            let (plan, scanned) = self.plan_against_now(state, snapshot, options)?;
            self.carry_out_plan(state, plan, scanned, bytes_before)
        })
    }

    /// Carries out a plan that was made from the last scan.
    pub(crate) fn carry_out_plan(
        &self,
        state: &mut State,
        plan: RestorePlan,
        scanned: Scanned,
        bytes_before: u64,
    ) -> Result<Restored, RestoreError> {
        let (journal, before) = self.prepare(state, &plan, scanned, bytes_before)?;
        let made = self.make_changes(state, &journal);
        if let Err(RestoreError::Storage(_)) = &made {
            // The journal is left, and the next use of the store goes through it.
            state.discard();
        }
        let mut kept = made?;
        let RestorePlan { kept: planned, left_alone, blocked, .. } = plan;
        kept.extend(planned);
        kept.sort_unstable();
        Ok(Restored { before, changes: journal.changes, kept, left_alone, blocked })
    }

    /// Takes the snapshot of the state before, and returns it with the journal.
    pub(crate) fn prepare(
        &self,
        state: &mut State,
        plan: &RestorePlan,
        scanned: Scanned,
        bytes_before: u64,
    ) -> Result<(Journal, Snapshot), StorageError> {
        for change in &plan.changes {
            if let Some(Node::File { id, .. }) = &change.new {
                // Before anything changes: what is damaged would stop the restore halfway.
                state.objects.get(*id)?;
            }
        }
        let RestoreOptions { times, durability, scan, .. } = &plan.options;
        let request = CreateRequest {
            description: format!("before restoring {}", plan.snapshot.id),
            options: ScanOptions { ignored: plan.snapshot.ignored, ..scan.clone() },
            ..CreateRequest::unnamed(Reason::BeforeRestore)
        };
        let before = self.record(state, &request, scanned, bytes_before)?.snapshot;
        let writer = TreeWriter::new(&self.workspace, *durability, *times);
        let journal = Journal {
            process: std::process::id(),
            snapshot: plan.snapshot.id,
            before: before.id,
            times: *times,
            durability: *durability,
            changes: plan.changes.clone(),
            granted: writer.restricted(plan.changes.iter().map(|change| &change.path)),
        };
        Ok((journal, before))
    }

    /// Makes the changes of a journal, or takes them back if one fails. Returns the directories that stay since
    /// they are not empty.
    pub(crate) fn make_changes(
        &self,
        state: &mut State,
        journal: &Journal,
    ) -> Result<Vec<PathBuf>, RestoreError> {
        self.begin_journal(journal)?;
        let mut outcome = self.carry_out(state, journal, Trusted::Plan)?;
        if outcome.is_whole() {
            self.end_restore(journal)?;
            return Ok(outcome.kept);
        }
        let reversed = self.carry_out(state, &journal.reversed(), Trusted::Nothing)?;
        self.end_restore(journal)?;
        let before = journal.before;
        let left = |path: &PathBuf| {
            let failed = reversed.failed.iter().map(|(path, _)| path);
            let left = failed.chain(&reversed.conflicts).filter(|left| *left != path);
            left.cloned().collect()
        };
        if let Some(path) = outcome.changed.pop() {
            return Err(RestoreError::ChangedMeanwhile { left: left(&path), before, path });
        }
        let (path, source) = outcome.failed.swap_remove(0);
        Err(RestoreError::Write { left: left(&path), before, path, source })
    }

    pub(crate) fn begin_journal(&self, journal: &Journal) -> Result<(), StorageError> {
        let bytes = journal.to_bytes();
        match journal.durability {
            Durability::Synced | Durability::Atomic => {
                disk::replace(&*self.disk, journal::FILE, &bytes)
            }
            // It outlives the process. After a power loss the files may be anything anyway.
            Durability::Buffered => disk::replace_cache(&*self.disk, journal::FILE, &bytes),
        }
    }

    fn end_restore(&self, journal: &Journal) -> Result<(), StorageError> {
        self.end_journal(journal::FILE)?;
        match journal.durability {
            Durability::Synced | Durability::Atomic => self.disk.sync_names(),
            Durability::Buffered => Ok(()),
        }
    }

    /// Finishes a restore that was interrupted.
    pub(crate) fn recover(&self, state: &mut State) -> Result<Option<Recovery>, StorageError> {
        let Some(bytes) = disk::read(&*self.disk, journal::FILE)? else { return Ok(None) };
        let Some(journal) = Journal::of_bytes(&bytes) else {
            // A power loss in a restore that was not to be synced, or damage of the disk.
            warn!("the journal of a restore is damaged; the restore is not finished");
            self.disk.remove(journal::FILE)?;
            self.disk.sync_names()?;
            return Ok(None);
        };
        // Also of a process with the number of this one: in containers all have the same.
        let mut writer = TreeWriter::new(&self.workspace, journal.durability, journal.times);
        for change in &journal.changes {
            if let Err(error) = writer.remove_leftovers(&change.path, journal.process) {
                warn!(%error, "could not remove what an interrupted restore was writing");
            }
        }
        let outcome = self.carry_out(state, &journal, Trusted::Nothing)?;
        // Also if something failed: later the entries would not be what they are now.
        self.end_restore(&journal)?;
        let Journal { snapshot, before, .. } = journal;
        info!(%snapshot, finished = outcome.finished, "finished an interrupted restore");
        Ok(Some(Recovery {
            snapshot,
            before,
            finished: outcome.finished,
            conflicts: outcome.conflicts.into_iter().collect(),
            failed: outcome.failed.into_iter().map(|(path, _)| path).collect(),
        }))
    }

    /// Makes the changes of a journal. Ends at the first failure if the present state is that of the plan.
    fn carry_out(
        &self,
        state: &mut State,
        journal: &Journal,
        trusted: Trusted,
    ) -> Result<StepOutcome, StorageError> {
        let mut writer = TreeWriter::new(&self.workspace, journal.durability, journal.times);
        if trusted == Trusted::Nothing {
            writer.take_back_access(&journal.granted);
        }
        Steps::new(writer, trusted).take(&journal.changes, state)
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

/// Returns whether a tree has an entry at a path.
fn has(state: &mut State, top: crate::ObjectId, path: &Path) -> Result<bool, StorageError> {
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
