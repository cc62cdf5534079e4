//! Forks of workspaces for every interface: made, compared with their base, and promoted into it.
//!
//! | step of a promotion | after a crash |
//! |---|---|
//! | lock the forks alone; end their cells and mounts; look for changes of the base | the forks |
//! | record the base, and the work of the other forks, as snapshots of the base | the forks, and snapshots |
//! | mark the other forks as ending | the fork, and snapshots; clean-up removes the others |
//! | move the fork's layers into the base, after a journal (crate `fork`) | a journal, from which the next opening of the base goes on |
//! | remove the fork, then the others; the base thaws | forks that clean-up removes |
//!
//! What a promotion replaces is in the snapshot of the base before it, except for what ignore rules exclude.

mod comparison;
mod expiry;
mod kept;
mod rebase;
mod recording;

use std::path::PathBuf;
use std::sync::Arc;

use carrel_domain::{Code, Coded as _, Failure, Identifier, WorkspaceKey};
use carrel_fork::Change;
use carrel_fsroot::Durability;
use carrel_runner::{Runner, WorkspaceHandle};
use carrel_snapshot::{SnapshotId, SnapshotName};
use carrel_workspace::{
    Amount, Created, Fork, ForkKind, Hooks, MakeFork, Quota, Record, RemovalLock, UnsavedWork,
    Workspace, Workspaces,
};
use futures_util::future::BoxFuture;

pub use self::comparison::ForkPatch;
pub use self::expiry::{Expired, ExpiredFork};
pub use self::kept::RebasedFork;
pub use self::rebase::AdoptedChanges;
use self::recording::{Origin, Recorded};
pub(crate) use self::recording::{base_as_it_is, store_of};
use crate::blocking::blocking;

/// The forks of the workspaces of a root.
#[derive(Clone, Debug)]
pub struct Forks {
    /// The root.
    pub workspaces: Workspaces,
    /// Mounts the trees of forks.
    pub runner: Runner,
    /// The hooks of the root; none of them runs for a fork.
    pub hooks: Hooks,
}

/// The treatment of the other forks of a base when one is promoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherForks {
    /// They end, and what they changed becomes a snapshot of the base.
    #[default]
    Record,
    /// They end with what they changed.
    Discard,
}

/// A promoted fork.
#[derive(Clone, Debug)]
pub struct PromotedFork {
    /// The identifier of the base.
    pub base: Identifier,
    /// The changes of the base.
    pub changes: Vec<Change>,
    /// The snapshot of the base as it was before; none if nothing changed.
    pub before: Option<SnapshotId>,
    /// The other forks, which have ended, each with the name of the snapshot of its work if it had any.
    pub ended: Vec<(WorkspaceKey, Option<SnapshotName>)>,
    /// Those of the other forks that changed files, but only such as ignore rules exclude, which no snapshot has.
    pub only_ignored: Vec<WorkspaceKey>,
}

/// A fork and its base, open for file work.
struct Pair {
    fork: Record,
    base: Arc<Workspace>,
}

impl Forks {
    /// Makes forks of a workspace, which is frozen until the last of them is promoted or removed.
    pub async fn make(
        &self,
        base: &Identifier,
        names: Vec<Option<Identifier>>,
        quota: Option<Quota>,
    ) -> Result<Vec<Created>, Failure> {
        let kind = self.kind();
        let request = |identifier| MakeFork { identifier, quota, kind };
        let requests: Vec<_> = names.into_iter().map(request).collect();
        let opened = Arc::new(self.workspaces.open(base).await?);
        let (workspaces, base) = (self.workspaces.clone(), base.clone());
        let own = self.clone();
        let made = blocking(move || {
            let handle = WorkspaceHandle::for_workspace(opened, Amount::default())?;
            let frozen = workspaces.freeze(&base)?;
            // A tool that began before is over then, and none begins after.
            drop(handle.lock_past_freeze()?);
            let (made, result) = workspaces.fork_many(&frozen, &requests);
            Ok((made, result.err().map(Failure::from)))
        });
        let (made, failed) = made.await?;
        let failed = match (failed, made.first()) {
            // A host that cannot mount it is better found now than by the first command.
            (None, Some(first)) if !own.runner.has_mounted_forks() => {
                own.try_mount(&first.record.identifier).await.err()
            }
            (failed, _) => failed,
        };
        let Some(failed) = failed else { return Ok(made) };
        for fork in &made {
            let locked = own.lock(&fork.record).await?;
            own.workspaces.remove_locked(locked, UnsavedWork::Discard, &own.hooks).await?;
        }
        Err(failed)
    }

    async fn try_mount(&self, fork: &Identifier) -> Result<(), Failure> {
        let fork = Arc::new(self.workspaces.open(fork).await?);
        Ok(self.runner.open_counted(fork, Amount::default()).await.map(drop)?)
    }

    /// Lists what a fork changed against its base.
    pub async fn changes(&self, fork: &Identifier) -> Result<Vec<Change>, Failure> {
        self.changes_against(fork, None).await
    }

    /// Fails where a promotion would be refused. It changes nothing, so that callers can ask before they end what runs
    /// in the fork.
    pub async fn check_promotion(
        &self,
        fork: &Identifier,
        others: OtherForks,
    ) -> Result<(), Failure> {
        let Pair { fork, base } = self.pair(fork).await?;
        self.refuse_lost(&fork)?;
        for other in self.others(&fork, &base)?.iter().filter(|_| others == OtherForks::Record) {
            self.workspaces.refuse_work_without_directory(other)?;
        }
        let (workspaces, identifier) = (self.workspaces.clone(), base.record().identifier.clone());
        blocking(move || Ok(workspaces.freeze(&identifier).map(drop)?)).await?;
        let drift = self.drift(&fork, &base).await?;
        if drift.is_empty() { Ok(()) } else { Err(changed(&fork, &base, &drift)) }
    }

    /// Makes the base what a fork is, and removes the fork. The caller has closed the fork in this process.
    pub fn promote<'a>(
        &'a self,
        fork: &'a Identifier,
        others: OtherForks,
    ) -> BoxFuture<'a, Result<PromotedFork, Failure>> {
        Box::pin(self.promote_now(fork, others))
    }

    async fn promote_now(
        &self,
        fork: &Identifier,
        others: OtherForks,
    ) -> Result<PromotedFork, Failure> {
        let Pair { fork, base } = self.pair(fork).await?;
        let base_identifier = base.record().identifier.clone();
        // From here on no fork is made, and the base does not thaw.
        let frozen = {
            let (workspaces, identifier) = (self.workspaces.clone(), base_identifier.clone());
            blocking(move || Ok(workspaces.freeze(&identifier)?)).await?
        };
        let winner = self.lock(&fork).await?;
        if winner.record().is_none() {
            // Another promotion ended it.
            return Err(Failure::from(
                self.workspaces.record(&fork.identifier).err().unwrap_or_else(|| {
                    carrel_workspace::Error::Busy { key: fork.key.to_string(), holder: None }
                }),
            ));
        }
        let mut rest = Vec::new();
        for other in self.others(&fork, &base)? {
            rest.push(self.lock(&other).await?);
        }
        self.refuse_lost(&fork)?;
        let drift = self.drift(&fork, &base).await?;
        if !drift.is_empty() {
            return Err(changed(&fork, &base, &drift));
        }
        let handle = self.runner.open_counted(Arc::clone(&base), Amount::default()).await?;
        let before = base_as_it_is(&handle, before_promotion(&fork.key));
        let before = before.await?;
        let (mut ended, mut only_ignored) = (Vec::new(), Vec::new());
        let has_drift = self.workspaces.has_taken_over(&fork)?;
        for other in &rest {
            let recorded = match others {
                OtherForks::Record => {
                    let origin = match other.record().filter(|_| has_drift) {
                        Some(other) => self.origin(other, &base).await,
                        // There is no drift for any fork.
                        None => Origin::Base,
                    };
                    self.record(other, &base, before, origin).await?
                }
                OtherForks::Discard => Recorded::Nothing,
            };
            let Some(record) = other.record() else { continue };
            only_ignored.extend((recorded == Recorded::OnlyIgnored).then(|| record.key.clone()));
            ended.push((record.key.clone(), recorded.snapshot()));
        }
        let workspaces = self.workspaces.clone();
        let moved = blocking(move || {
            let writing = handle.lock_past_freeze()?;
            workspaces.mark_ending(&rest, true)?;
            let promoted = match workspaces.promote(&winner, &base, Durability::Synced) {
                // What is left of it is no tree any more, least of all of a copy.
                Ok(promoted) => {
                    workspaces.mark_ending(std::slice::from_ref(&winner), true)?;
                    promoted
                }
                Err(error) => {
                    workspaces.mark_ending(&rest, false)?;
                    return Err(error.into());
                }
            };
            drop(writing);
            Ok((promoted, winner, rest))
        });
        let (promoted, winner, rest) = moved.await?;
        let forks = std::iter::once(winner).chain(rest).collect();
        self.workspaces.remove_forks(frozen, forks).await?;
        let before = (!promoted.changes.is_empty()).then_some(before);
        let changes = promoted.changes;
        Ok(PromotedFork { base: base_identifier, changes, before, ended, only_ignored })
    }

    /// Ends a fork that is not promoted. Its work becomes a snapshot of the base, or goes with it. One that is gone is
    /// no error.
    pub async fn end(
        &self,
        fork: &Identifier,
        work: OtherForks,
    ) -> Result<Option<SnapshotName>, Failure> {
        let record = match self.workspaces.record(fork) {
            Err(error) if error.code() == Code::WorkspaceNotFound => return Ok(None),
            found => found?,
        };
        let locked = self.lock(&record).await?;
        let recorded = match work {
            OtherForks::Record => self.record_end(&locked, &record).await?.snapshot(),
            OtherForks::Discard => None,
        };
        self.workspaces.remove_locked(locked, UnsavedWork::Discard, &self.hooks).await?;
        Ok(recorded)
    }

    /// Returns the kind of new forks: overlays where commands have mount namespaces.
    fn kind(&self) -> ForkKind {
        if self.runner.mounts_overlays() { ForkKind::Overlay } else { ForkKind::Copy }
    }

    async fn pair(&self, fork: &Identifier) -> Result<Pair, Failure> {
        let record = self.workspaces.record(fork)?;
        let Some(Fork { base, .. }) = &record.fork else {
            let message = format!(
                "{fork} is no fork; `carrel workspace ls --json` names the base of each fork"
            );
            return Err(Failure::new(Code::ForkRefused, message).with("identifier", fork.as_str()));
        };
        let path = self.workspaces.path().join(base.as_str());
        let base = Arc::new(self.workspaces.open_at(&path).await?);
        Ok(Pair { fork: record, base })
    }

    /// Fails for a fork that may lack anything since the machine was started anew.
    fn refuse_lost(&self, fork: &Record) -> Result<(), Failure> {
        if !self.workspaces.is_lost(fork)? {
            return Ok(());
        }
        let path = self.workspaces.path().join(fork.key.as_str());
        Err(carrel_runner::RunError::ForkLost { fork: path }.into())
    }

    /// Returns the other forks of a fork's base.
    fn others(&self, fork: &Record, base: &Workspace) -> Result<Vec<Record>, Failure> {
        let mut forks = self.workspaces.overlays_of(&base.record().key)?;
        forks.retain(|other| other.key != fork.key);
        Ok(forks)
    }

    async fn drift(&self, fork: &Record, base: &Arc<Workspace>) -> Result<Vec<PathBuf>, Failure> {
        let (workspaces, fork) = (self.workspaces.clone(), fork.clone());
        let base = Arc::clone(base);
        blocking(move || Ok(workspaces.drift(&fork, &base)?)).await
    }

    /// Locks a fork that nothing uses any more, and ends its mount.
    async fn lock(&self, fork: &Record) -> Result<RemovalLock, Failure> {
        self.runner.end_fork(&self.workspaces.path().join(fork.key.as_str())).await?;
        let (workspaces, record) = (self.workspaces.clone(), fork.clone());
        // The cells of a mount that was dropped before end a moment later.
        blocking(move || Ok(workspaces.wait_until_unmounted(&record)?)).await?;
        Ok(self.workspaces.lock_for_removal(fork.identifier.clone()).await?)
    }
}

/// Returns the description of the snapshot of a fork's work.
pub(crate) fn work_of(fork: &WorkspaceKey) -> String {
    format!("the work of the fork {fork}")
}

/// Returns the description of the snapshot of a base before a promotion.
pub(crate) fn before_promotion(fork: &WorkspaceKey) -> String {
    format!("before the promotion of {fork}")
}

fn changed(fork: &Record, base: &Workspace, paths: &[PathBuf]) -> Failure {
    let key = &base.record().key;
    let is_overlay = fork.fork.as_ref().is_some_and(|fork| fork.kind == ForkKind::Overlay);
    // A base with overlays is frozen for every writer of Carrel.
    let past = if is_overlay { ", not through Carrel" } else { "" };
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    let way_out = if is_overlay {
        format!(
            "`carrel workspace rebase {}` takes that over where the fork has not changed the same",
            fork.key
        )
    } else {
        "put that back, or take what is wanted from the fork by hand".to_owned()
    };
    let message = format!(
        "the base {key} has changed since it was forked{past}: {}; {way_out}",
        first_of(&shown)
    );
    Failure::new(Code::ForkConflict, message).with("base", key.as_str()).with("paths", shown)
}

/// Returns the first of some paths, and the number of the others.
fn first_of(paths: &[String]) -> String {
    let shown = paths.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if paths.len() > 5 { format!("{shown} and {} more", paths.len() - 5) } else { shown }
}
