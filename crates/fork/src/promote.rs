//! Promotion: a base becomes what its fork is.
//!
//! ```text
//! compare             the changes and the steps
//! sync                the contents that move, since an overlay mounted `volatile` syncs nothing
//! promote.journal     the steps; durable before the first one
//! strip, discard      marks of the overlay, on what moves
//! move aside          what is deleted, and directories that are replaced
//! move                files over those of the base, directories as a whole; nothing is copied
//! finish              modes, times and attributes of the directories that both have
//! sync                directories of the base
//! remove promote.journal
//! ```
//!
//! A process that ends in between leaves the journal, and [`recover`] takes the steps that were not taken. There is no
//! way back: a file that was replaced is gone. The caller takes a snapshot of the base first, and deletes what is in
//! the trash afterwards.

use std::path::{Path, PathBuf};

use carrel_fsroot::{Durability, Error, Root};
use tracing::info;

use crate::change::{Change, ChangeKind, Node};
use crate::compare::{Source, plan};
use crate::journal::{self, Found, Journal};
use crate::limits::{ChangesError, Limits};
use crate::steps::Steps;
use crate::sync::{sync, sync_together};
use crate::tree;

/// The directories of the server that a promotion uses.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// The directory of the journal, which is for one base alone.
    pub journal: &'a Root,
    /// The directory into which entries of the base are moved, on the same file system. The caller deletes what is in
    /// it when the promotion is over.
    pub trash: &'a Root,
}

/// The treatment of changes that the base saw since it was forked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// The paths that changed in the base, as the caller found by scanning it again.
    pub paths: Vec<PathBuf>,
    /// The drift that is refused.
    pub policy: DriftPolicy,
}

/// The drift that a promotion refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftPolicy {
    /// All.
    #[default]
    RefuseAll,
    /// Paths that the fork changed as well, and those below or above them.
    RefuseConflicts,
}

/// The options of a promotion.
#[derive(Clone, Debug, Default)]
pub struct PromoteOptions {
    /// [`Durability::Synced`] if base and journal must survive a power loss; otherwise the journal survives the end of
    /// the process only.
    pub durability: Durability,
    /// The changes that the base saw since it was forked.
    pub drift: Drift,
    /// Bounds of the comparison.
    pub limits: Limits,
}

/// A promotion that was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promoted {
    /// The changes that the base saw, in path order.
    pub changes: Vec<Change>,
    /// Entries that became something else while the promotion ran, or between a crash and the recovery, and were
    /// left alone.
    pub conflicts: Vec<PathBuf>,
    /// The number of steps that were taken now.
    pub steps: usize,
}

/// What a recovery found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// No promotion was interrupted.
    Nothing,
    /// An interrupted promotion is finished.
    Finished(Promoted),
    /// The journal cannot be read, after a power loss in a promotion that was not synced. The base may be partly
    /// changed: the caller restores the snapshot from before, and then calls [`abandon`].
    Damaged,
}

/// Why a fork was not promoted.
#[derive(Debug, thiserror::Error)]
pub enum PromoteError {
    /// The fork could not be compared with its base. Nothing was changed.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// The base changed since it was forked. Nothing was changed.
    #[error(
        "the base has changed since it was forked: {}; put that back, or take what is wanted from the fork by hand",
        listed(paths)
    )]
    Drift {
        /// The paths of the base that are in the way.
        paths: Vec<PathBuf>,
    },
    /// An earlier promotion was interrupted. Nothing was changed.
    #[error("an earlier promotion was interrupted; the next use of the base finishes it")]
    Unfinished,
    /// Base, fork and trash are not on one file system, or reached through different mounts. Nothing was changed.
    #[error("base, fork and trash are not on the same mounted file system")]
    OtherFileSystem,
    /// The journal is about other directories. Nothing was changed.
    #[error(
        "the journal of the interrupted promotion is about other directories; restore the snapshot of the base from \
         before it, and remove the fork"
    )]
    OtherDirectories,
    /// The preparation failed. Nothing was changed.
    #[error("could not prepare the promotion")]
    Prepare(#[source] Error),
    /// A step failed. The base is partly changed, and the journal is kept: [`recover`] goes on, or the caller restores
    /// the snapshot from before and calls [`abandon`].
    #[error("could not promote {}; the next use of the base goes on with it", shown(path))]
    Step {
        /// The entry.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Error,
    },
}

/// The path of an entry, in words for the top directory, which has none.
fn shown(path: &Path) -> std::borrow::Cow<'_, str> {
    if path.as_os_str().is_empty() { "the top directory".into() } else { path.to_string_lossy() }
}

fn listed(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().take(5).map(|path| path.display().to_string()).collect();
    let more = paths.len() - shown.len();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} others") }
}

/// A moment of a promotion at which a test can stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultPoint {
    ContentsSynced,
    JournalWritten,
    Step(usize),
    Synced,
    JournalRemoved,
}

/// Decides whether the promotion goes on or ends as if the process were killed.
pub(crate) type Faults<'a> = &'a mut dyn FnMut(FaultPoint) -> Result<(), PromoteError>;

/// Moves the changes of a fork into its base.
///
/// The fork must not be mounted or in use, and no program may be writing to the base. What is replaced is lost: the
/// caller has taken a snapshot of the base. The layers or the copy are of no use afterwards and are removed.
pub fn promote(
    base: &Root,
    source: Source<'_>,
    server: Server<'_>,
    options: &PromoteOptions,
) -> Result<Promoted, PromoteError> {
    promote_with(base, source, server, options, &mut |_| Ok(()))
}

pub(crate) fn promote_with(
    base: &Root,
    source: Source<'_>,
    server: Server<'_>,
    options: &PromoteOptions,
    faults: Faults<'_>,
) -> Result<Promoted, PromoteError> {
    if journal::exists(server.journal).map_err(PromoteError::Prepare)? {
        return Err(PromoteError::Unfinished);
    }
    let tree = source.root();
    let roots = inodes(base, tree, server.trash)?;
    let plan = plan(base, source, options.limits)?;
    refuse_drift(&options.drift, &plan.changes)?;
    if plan.steps.is_empty() {
        return Ok(Promoted::default());
    }
    let moved = plan.moved;
    let journal = Journal {
        durability: options.durability,
        roots,
        trash_name: trash_name(),
        steps: plan.steps,
        changes: plan.changes,
    };
    let mut written = journal.begin_write(server.journal).map_err(PromoteError::Prepare)?;
    if is_durable(options.durability) {
        // The journal has its name only when the contents are there, too.
        sync_together(|| sync(tree, &moved), || written.sync_contents())
            .map_err(PromoteError::Prepare)?;
    }
    faults(FaultPoint::ContentsSynced)?;
    written.commit().map_err(PromoteError::Prepare)?;
    faults(FaultPoint::JournalWritten)?;
    carry_out(base, tree, server, journal, faults)
}

/// Finishes a promotion that was interrupted, if there is one. It can itself be interrupted and repeated.
pub fn recover(base: &Root, source: &Root, server: Server<'_>) -> Result<Recovery, PromoteError> {
    recover_with(base, source, server, &mut |_| Ok(()))
}

pub(crate) fn recover_with(
    base: &Root,
    source: &Root,
    server: Server<'_>,
    faults: Faults<'_>,
) -> Result<Recovery, PromoteError> {
    journal::remove_unfinished(server.journal).map_err(PromoteError::Prepare)?;
    let journal = match journal::read(server.journal).map_err(PromoteError::Prepare)? {
        Found::Nothing => return Ok(Recovery::Nothing),
        Found::Damaged => return Ok(Recovery::Damaged),
        Found::Journal(journal) => journal,
    };
    if journal.roots != inodes(base, source, server.trash)? {
        return Err(PromoteError::OtherDirectories);
    }
    let promoted = carry_out(base, source, server, journal, faults)?;
    info!(steps = promoted.steps, "finished an interrupted promotion");
    Ok(Recovery::Finished(promoted))
}

/// Returns whether a promotion was interrupted.
pub fn is_unfinished(journal: &Root) -> Result<bool, Error> {
    journal::exists(journal)
}

/// Gives an interrupted promotion up, after the base was restored by other means.
pub fn abandon(journal: &Root) -> Result<(), Error> {
    journal::remove(journal, Durability::Synced)
}

fn carry_out(
    base: &Root,
    source: &Root,
    server: Server<'_>,
    journal: Journal,
    faults: Faults<'_>,
) -> Result<Promoted, PromoteError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source: Error| PromoteError::Step { source: source.at(&path), path }
    };
    let mut steps = Steps::new(base, source, server.trash, &journal);
    for (number, step) in journal.steps.iter().enumerate() {
        steps.take(number, step).map_err(failed(step.path()))?;
        faults(FaultPoint::Step(number))?;
    }
    let top = Path::new("");
    if is_durable(journal.durability) {
        steps.sync().map_err(failed(top))?;
    }
    faults(FaultPoint::Synced)?;
    let outcome = std::mem::take(&mut steps.outcome);
    journal::remove(server.journal, journal.durability).map_err(failed(top))?;
    faults(FaultPoint::JournalRemoved)?;
    Ok(Promoted {
        changes: journal.changes,
        conflicts: outcome.conflicts.into_iter().collect(),
        steps: outcome.taken,
    })
}

fn is_durable(durability: Durability) -> bool {
    match durability {
        Durability::Synced | Durability::Atomic => true,
        Durability::Buffered => false,
    }
}

/// Returns the inodes of the three directories, between which entries are renamed. The number of a device is not
/// recorded, since it may be another one after a reboot.
fn inodes(base: &Root, source: &Root, trash: &Root) -> Result<[u64; 3], PromoteError> {
    let identity = |root: &Root| root.identity().map_err(PromoteError::Prepare);
    for other in [source, trash] {
        if !tree::are_together(base, other).map_err(PromoteError::Prepare)? {
            return Err(PromoteError::OtherFileSystem);
        }
    }
    let identities = [identity(base)?, identity(source)?, identity(trash)?];
    Ok(identities.map(|identity| identity.inode))
}

fn trash_name() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    format!("promote-{}-{}", std::process::id(), since.unwrap_or_default().as_nanos())
}

fn refuse_drift(drift: &Drift, changes: &[Change]) -> Result<(), PromoteError> {
    let paths: Vec<_> = match drift.policy {
        DriftPolicy::RefuseAll => drift.paths.clone(),
        DriftPolicy::RefuseConflicts => {
            let conflicts =
                |path: &&PathBuf| changes.iter().any(|change| do_conflict(change, path));
            drift.paths.iter().filter(conflicts).cloned().collect()
        }
    };
    if paths.is_empty() { Ok(()) } else { Err(PromoteError::Drift { paths }) }
}

/// Returns whether a change of the fork concerns a path that changed in the base. One above it does unless it leaves
/// the directory there.
fn do_conflict(change: &Change, drifted: &Path) -> bool {
    let keeps_directory = matches!(change.kind, ChangeKind::Mode | ChangeKind::Attributes)
        && change.new.as_ref().is_some_and(Node::is_directory);
    change.path.starts_with(drifted) || (drifted.starts_with(&change.path) && !keeps_directory)
}
