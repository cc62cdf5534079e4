//! Putting recorded work onto a workspace that has moved on.
//!
//! The snapshot of a fork's work names the tree that the fork began as, its origin. The work is what differs between the
//! two, and is made again in a tree that is as the workspace is now, such as a new fork of it. What the workspace has
//! changed since, and the work has not, stays.
//!
//! | path | in the new tree |
//! |---|---|
//! | changed by the work alone | as in the work |
//! | changed by the workspace alone, or by neither | as in the workspace |
//! | changed by both, to the same | so |
//! | changed by both, to different entries | a conflict: nothing is written |
//!
//! Each file counts as a whole. An entry that one side has put below a directory that the other has removed is a
//! conflict too.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Durability, Root};

use crate::compare::{Change, Comparison, Differences};
use crate::error::StorageError;
use crate::name::SnapshotId;
use crate::object_id::ObjectId;
use crate::restore_steps::{Steps, Trusted};
use crate::scan_options::{ScanError, ScanOptions};
use crate::store::{FindError, Reference, State, Store};
use crate::tree::{Node, Omission};
use crate::tree_writer::{Times, TreeWriter};

/// Work that was put onto another tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebased {
    /// The changes of the tree, in path order.
    pub changes: Vec<Change>,
    /// Changes of the work that the workspace has made as well.
    pub already: Vec<PathBuf>,
    /// Directories that the work removed and that stay, since they are not empty.
    pub kept: Vec<PathBuf>,
    /// What the snapshot of the work left out, so that it is as in the workspace.
    pub left_alone: Vec<(PathBuf, Omission)>,
}

/// Why work was not put onto another tree.
#[derive(Debug, thiserror::Error)]
pub enum RebaseError {
    /// There is no such snapshot.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The snapshot does not name an origin.
    #[error(
        "it is not known what the tree of snapshot {id} began as: it is not the work of a fork that ended, or the base of \
         that fork was changed past Carrel before; `carrel snapshot restore {id}` brings all of its files back"
    )]
    NoOrigin {
        /// The snapshot.
        id: SnapshotId,
    },
    /// Work and workspace have changed the same entries. Nothing was written.
    #[error(
        "the work of {id} and the workspace have both changed {}; restore what is wanted of them by \
         `carrel snapshot restore {id} PATH`, or make the workspace's as they were",
        listed(paths)
    )]
    Conflicts {
        /// The snapshot.
        id: SnapshotId,
        /// The entries, in path order.
        paths: Vec<PathBuf>,
    },
    /// The workspace could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// An entry of the tree could not be written. What was written before it stays.
    #[error("could not write {}", path.display())]
    Write {
        /// The entry.
        path: PathBuf,
        /// The cause.
        #[source]
        source: carrel_fsroot::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The paths of an error that its message has.
const MAX_LISTED: usize = 5;

fn listed(paths: &[PathBuf]) -> String {
    let shown: Vec<_> =
        paths.iter().take(MAX_LISTED).map(|path| path.display().to_string()).collect();
    let more = paths.len() - shown.len();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

impl Store {
    /// Puts recorded work onto a tree that is as the workspace is now. Nothing is synced, and a crash or a failed write
    /// leaves a part of it: the caller makes the tree for this, and removes it then.
    pub fn rebase(&self, work: &Reference, tree: &Root) -> Result<Rebased, RebaseError> {
        self.locked(|state| {
            let work = state.find(work)?.clone();
            let id = work.id;
            let origin = work.origin.ok_or(RebaseError::NoOrigin { id })?;
            let scan = ScanOptions { ignored: work.ignored, ..ScanOptions::default() };
            let scanned = self.scan_for(state, &scan, work.top)?;
            self.save_cache(state, &scanned);
            let of_work = compared(state, origin, work.top)?;
            let moved = Moved::new(compared(state, origin, scanned.top)?);
            let paths: Vec<_> =
                of_work.changes.iter().filter(|one| moved.is_in_conflict(one)).collect();
            if !paths.is_empty() {
                let paths = paths.into_iter().map(|change| change.path.clone()).collect();
                return Err(RebaseError::Conflicts { id, paths });
            }
            let (already, changes): (Vec<_>, Vec<_>) =
                of_work.changes.into_iter().partition(|one| moved.of(&one.path).is_some());
            for change in &changes {
                if let Some(Node::File { id, .. }) = &change.new {
                    // Before anything is written: what is damaged would stop it halfway.
                    state.objects.get(*id)?;
                }
            }
            let writer = TreeWriter::new(tree, Durability::Buffered, Times::Now);
            let outcome = Steps::new(writer, Trusted::Nothing).take(&changes, state)?;
            if let Some((path, source)) = outcome.failed.into_iter().next() {
                return Err(RebaseError::Write { path, source });
            }
            if !outcome.conflicts.is_empty() {
                // What ignore rules exclude is in no comparison.
                let paths = outcome.conflicts.into_iter().collect();
                return Err(RebaseError::Conflicts { id, paths });
            }
            let already = already.into_iter().map(|change| change.path).collect();
            let left_alone = of_work.incomparable;
            Ok(Rebased { changes, already, kept: outcome.kept, left_alone })
        })
    }
}

fn compared(state: &mut State, old: ObjectId, new: ObjectId) -> Result<Comparison, StorageError> {
    let mut differences = Differences::new(&mut state.objects);
    differences.directories(Path::new(""), Some(old), Some(new))?;
    Ok(differences.found)
}

/// The changes of the workspace since the origin of the work.
struct Moved {
    changes: BTreeMap<PathBuf, Change>,
    incomparable: Vec<PathBuf>,
}

impl Moved {
    fn new(comparison: Comparison) -> Self {
        let Comparison { changes, incomparable } = comparison;
        let changes = changes.into_iter().map(|change| (change.path.clone(), change)).collect();
        Self { changes, incomparable: incomparable.into_iter().map(|(path, _)| path).collect() }
    }

    fn of(&self, path: &Path) -> Option<&Change> {
        self.changes.get(path)
    }

    fn is_in_conflict(&self, work: &Change) -> bool {
        let removes_directory = is_directory(work.old.as_ref()) && !is_directory(work.new.as_ref());
        let is_unknown = |path: &PathBuf| {
            work.path.starts_with(path) || (removes_directory && path.starts_with(&work.path))
        };
        if self.incomparable.iter().any(is_unknown) {
            return true;
        }
        if let Some(other) = self.of(&work.path) {
            return !is_same(work.new.as_ref(), other.new.as_ref());
        }
        let is_gone =
            |above: &Path| self.of(above).is_some_and(|one| !is_directory(one.new.as_ref()));
        let lost_its_directory = work.new.is_some() && work.path.ancestors().skip(1).any(is_gone);
        lost_its_directory || (removes_directory && self.has_below(&work.path))
    }

    /// Returns whether the workspace has put or changed something below a directory.
    fn has_below(&self, directory: &Path) -> bool {
        let after = (Bound::Excluded(directory.to_owned()), Bound::Unbounded);
        let below = self.changes.range(after).take_while(|(path, _)| path.starts_with(directory));
        below.map(|(_, change)| change).any(|change| change.new.is_some())
    }
}

fn is_directory(node: Option<&Node>) -> bool {
    matches!(node, Some(Node::Directory { .. }))
}

/// Returns whether two entries are the same; directories without what is in them.
fn is_same(one: Option<&Node>, other: Option<&Node>) -> bool {
    match (one, other) {
        (Some(Node::Directory { mode, .. }), Some(Node::Directory { mode: other, .. })) => {
            mode == other
        }
        (Some(one), Some(other)) => one.is_same(other),
        (one, other) => one == other,
    }
}
