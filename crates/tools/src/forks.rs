//! Forks of workspaces for every interface: made, compared with their base, and promoted into it.
//!
//! | step of a promotion | after a crash |
//! |---|---|
//! | lock the forks alone; end their cells and mounts; look for changes of the base | the forks |
//! | record the work of the other forks, and the base, as snapshots of the base | the forks, and snapshots |
//! | remove the other forks | the fork, and snapshots |
//! | move the fork's layers into the base, after a journal (crate `fork`) | a journal, from which the next opening of the base goes on |
//! | remove the fork; the base thaws | a fork without changes, which can be removed |
//!
//! What a promotion replaces is in the snapshot of the base before it, except for what ignore rules exclude.

use std::path::PathBuf;
use std::sync::Arc;

use carrel_domain::{Code, Failure, Identifier, WorkspaceKey};
use carrel_fork::Change;
use carrel_fsroot::Durability;
use carrel_runner::{Runner, WorkspaceHandle};
use carrel_snapshot::{CreateError, CreateRequest, Reason, SnapshotId, SnapshotName, Store};
use carrel_workspace::{
    Amount, Created, Fork, ForkKind, Hooks, MakeFork, Quota, Record, RemovalLock, UnsavedWork,
    Workspace, Workspaces,
};

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
            let (mut made, mut failed) = (Vec::with_capacity(requests.len()), None);
            for request in &requests {
                match workspaces.fork(&frozen, request) {
                    Ok(fork) => made.push(fork),
                    Err(error) => {
                        failed = Some(Failure::from(error));
                        break;
                    }
                }
            }
            Ok((made, failed))
        });
        let (made, failed) = made.await?;
        let failed = match (failed, made.first()) {
            // A host that cannot mount it is better found now than by the first command.
            (None, Some(first)) => own.try_mount(&first.record.identifier).await.err(),
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
        let Pair { fork, base } = self.pair(fork).await?;
        let workspaces = self.workspaces.clone();
        blocking(move || Ok(workspaces.changes(&fork, base.files())?)).await
    }

    /// Makes the base what a fork is, and removes the fork. The caller has closed the fork in this process.
    pub async fn promote(
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
        let mut rest = Vec::new();
        for other in self.others(&fork, &base)? {
            rest.push(self.lock(&other).await?);
        }
        let drift = self.drift(&fork, &base).await?;
        if !drift.is_empty() {
            return Err(changed(&fork, &base, &drift));
        }
        let mut ended = Vec::new();
        for other in &rest {
            let recorded = match others {
                OtherForks::Record => self.record(other, &base).await?,
                OtherForks::Discard => None,
            };
            ended.extend(other.record().map(|record| (record.key.clone(), recorded)));
        }
        let handle = self.runner.open_counted(Arc::clone(&base), Amount::default()).await?;
        let workspaces = self.workspaces.clone();
        let moved = blocking(move || {
            let writing = handle.lock_past_freeze()?;
            let before = snapshot_before(&handle, &fork.key)?;
            workspaces.mark_ending(&rest, true)?;
            let promoted = match workspaces.promote(&winner, &base, Durability::Synced) {
                Ok(promoted) => promoted,
                Err(error) => {
                    workspaces.mark_ending(&rest, false)?;
                    return Err(error.into());
                }
            };
            drop(writing);
            Ok((promoted, before, winner, rest))
        });
        let (promoted, before, winner, rest) = moved.await?;
        drop(frozen);
        for done in std::iter::once(winner).chain(rest) {
            self.workspaces.remove_locked(done, UnsavedWork::Discard, &self.hooks).await?;
        }
        let before = (!promoted.changes.is_empty()).then_some(before);
        Ok(PromotedFork { base: base_identifier, changes: promoted.changes, before, ended })
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

    /// Records the tree of a locked fork as a snapshot of its base; none if it changed nothing.
    async fn record(
        &self,
        fork: &RemovalLock,
        base: &Arc<Workspace>,
    ) -> Result<Option<SnapshotName>, Failure> {
        let Some(opened) = self.workspaces.open_locked(fork)? else { return Ok(None) };
        let record = opened.record().clone();
        let (workspaces, tree) = (self.workspaces.clone(), base.files().try_clone()?);
        let (changed, record) =
            blocking(move || Ok((!workspaces.changes(&record, &tree)?.is_empty(), record))).await?;
        if !changed {
            return Ok(None);
        }
        let path = opened.files().path().to_owned();
        let handle = self.runner.open_counted(opened, Amount::default()).await?;
        let base = self.runner.open_counted(Arc::clone(base), Amount::default()).await?;
        let recorded = blocking(move || {
            let Some(directory) = base.snapshot_directory()? else { return Ok(None) };
            let store = Store::open(directory, handle.files().try_clone()?)?;
            record_under_free_name(&store, &record.key).map(Some)
        });
        let recorded = recorded.await;
        self.runner.end_fork(&path).await?;
        recorded
    }

    /// Locks a fork that nothing uses any more, and ends its mount.
    async fn lock(&self, fork: &Record) -> Result<RemovalLock, Failure> {
        self.runner.end_fork(&self.workspaces.path().join(fork.key.as_str())).await?;
        Ok(self.workspaces.lock_for_removal(fork.identifier.clone()).await?)
    }
}

/// Takes a snapshot of a fork's tree under a name that says which fork it was. Numbers of forks come back, so the name may
/// be taken by an earlier one.
fn record_under_free_name(store: &Store, fork: &WorkspaceKey) -> Result<SnapshotName, Failure> {
    for number in 1.. {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let name = SnapshotName::new(format!("fork-{fork}{suffix}"))
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let mut request = CreateRequest::named(name.clone());
        request.description = format!("the work of the fork {fork}");
        match store.create(&request) {
            Err(CreateError::NameTaken { .. }) => {}
            created => return created.map(|_| name).map_err(Failure::from),
        }
    }
    unreachable!("there is always another number")
}

/// Takes a snapshot of a base before it is replaced by a fork.
fn snapshot_before(base: &WorkspaceHandle, fork: &WorkspaceKey) -> Result<SnapshotId, Failure> {
    let directory = base.snapshot_directory()?;
    let directory =
        directory.ok_or_else(|| Failure::new(Code::Internal, "a base is a whole workspace"))?;
    let store = Store::open(directory, base.files().try_clone()?)?;
    let mut request = CreateRequest::unnamed(Reason::Automatic("promote".to_owned()));
    request.description = format!("before the promotion of {fork}");
    Ok(store.create(&request)?.snapshot.id)
}

fn changed(fork: &Record, base: &Workspace, paths: &[PathBuf]) -> Failure {
    let key = &base.record().key;
    let is_overlay = fork.fork.as_ref().is_some_and(|fork| fork.kind == ForkKind::Overlay);
    // A base with overlays is frozen for every writer of Carrel.
    let past = if is_overlay { ", not through Carrel" } else { "" };
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    let message = format!(
        "the base {key} has changed since it was forked{past}: {}{}; put that back, or take what is \
         wanted from the fork by hand",
        shown.iter().take(5).cloned().collect::<Vec<_>>().join(", "),
        if shown.len() > 5 { format!(" and {} more", shown.len() - 5) } else { String::new() },
    );
    Failure::new(Code::ForkConflict, message).with("base", key.as_str()).with("paths", shown)
}
