//! The snapshots of a base that a fork leaves behind: of the base before it changes, and of the fork's own work.

use std::sync::Arc;

use carrel_domain::{Code, Failure, WorkspaceKey};
use carrel_runner::WorkspaceHandle;
use carrel_snapshot::{
    CreateError, CreateRequest, Reason, Reference, Renames, Side, SnapshotId, SnapshotName, Store,
    Trust,
};
use carrel_workspace::{Amount, Record, RemovalLock, Workspace};

use super::{Forks, Pair, work_of};
use crate::blocking::blocking;

/// The fate of the work of a fork that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It changed nothing.
    Nothing,
    /// It changed only what ignore rules exclude.
    OnlyIgnored,
    /// It is a snapshot of the base.
    Snapshot(SnapshotName),
}

/// What is known of the tree that a fork began as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is that of the base, where the fork has changed it.
    Base,
    /// The base was changed past Carrel where the fork has changed it too.
    Unknown,
}

impl Origin {
    fn filter_base(self, base: SnapshotId) -> Option<SnapshotId> {
        match self {
            Self::Base => Some(base),
            Self::Unknown => None,
        }
    }
}

impl Recorded {
    pub(super) fn snapshot(self) -> Option<SnapshotName> {
        match self {
            Self::Snapshot(name) => Some(name),
            Self::Nothing | Self::OnlyIgnored => None,
        }
    }
}

impl Forks {
    /// Records the tree of a locked fork as a snapshot of its base, unless it is as the snapshot `base_now`.
    pub(super) async fn record(
        &self,
        fork: &RemovalLock,
        base: &Arc<Workspace>,
        base_now: SnapshotId,
        origin: Origin,
    ) -> Result<Recorded, Failure> {
        let Some(opened) = self.workspaces.open_locked(fork)? else {
            return self.record_nothing(fork);
        };
        let record = opened.record().clone();
        let (workspaces, tree) = (self.workspaces.clone(), base.files().try_clone()?);
        let (changed, record) =
            blocking(move || Ok((!workspaces.changes(&record, &tree)?.is_empty(), record))).await?;
        if !changed {
            return Ok(Recorded::Nothing);
        }
        let path = opened.files().path().to_owned();
        let handle = self.runner.open_counted(opened, Amount::default()).await?;
        let base = self.runner.open_counted(Arc::clone(base), Amount::default()).await?;
        let recorded = blocking(move || {
            let store = Store::open(directory(&base)?, handle.files().try_clone()?)?;
            let (old, new) = (Side::Snapshot(Reference::Id(base_now)), Side::Now);
            let compared = store.compare(&old, &new, Renames::Apart, &Trust::default())?;
            if compared.changes.is_empty() && compared.incomparable.is_empty() {
                return Ok(Recorded::OnlyIgnored);
            }
            under_free_name(&store, &record.key, origin.filter_base(base_now))
                .map(Recorded::Snapshot)
        });
        let recorded = recorded.await;
        self.runner.end_fork(&path).await?;
        recorded
    }

    /// Records the work of a locked fork that ends without a promotion, unless it was lost.
    pub(super) async fn record_end(
        &self,
        locked: &RemovalLock,
        fork: &Record,
    ) -> Result<Recorded, Failure> {
        if self.workspaces.is_lost(fork)? {
            return Ok(Recorded::Nothing);
        }
        let Pair { base, .. } = self.pair(&fork.identifier).await?;
        let handle = self.runner.open_counted(Arc::clone(&base), Amount::default()).await?;
        let before =
            base_as_it_is(&handle, format!("before the end of the fork {}", fork.key)).await?;
        let origin = self.origin(fork, &base).await;
        self.record(locked, &base, before, origin).await
    }

    /// Returns what the base as it is now says of the tree that a fork began as. What both have changed would later seem
    /// to be changed by the fork alone.
    pub(super) async fn origin(&self, fork: &Record, base: &Arc<Workspace>) -> Origin {
        match self.drift_of(fork, base).await {
            Ok(drift) if drift.conflicts.is_empty() => Origin::Base,
            // What cannot be told does not keep the work from being recorded.
            Ok(_) | Err(_) => Origin::Unknown,
        }
    }

    /// Fails for a fork without a directory whose work is still there.
    fn record_nothing(&self, fork: &RemovalLock) -> Result<Recorded, Failure> {
        if let Some(record) = fork.record() {
            self.workspaces.refuse_work_without_directory(record)?;
        }
        Ok(Recorded::Nothing)
    }
}

/// Takes a snapshot of a base as it is. A tool that changes it has ended before.
pub(crate) async fn base_as_it_is(
    base: &WorkspaceHandle,
    description: String,
) -> Result<SnapshotId, Failure> {
    let store = store_of(base)?;
    blocking(move || {
        let mut request = CreateRequest::unnamed(Reason::Automatic("promote".to_owned()));
        request.description = description;
        Ok(store.create(&request)?.snapshot.id)
    })
    .await
}

/// Opens the store of a base.
pub(crate) fn store_of(base: &WorkspaceHandle) -> Result<Store, Failure> {
    Ok(Store::open(directory(base)?, base.files().try_clone()?)?)
}

fn directory(base: &WorkspaceHandle) -> Result<carrel_fsroot::Root, Failure> {
    let directory = base.snapshot_directory()?;
    directory.ok_or_else(|| Failure::new(Code::Internal, "a base is a whole workspace"))
}

/// Takes a snapshot of a fork's tree under a name that says which fork it was. Numbers of forks come back, so the name may
/// be taken by an earlier one.
fn under_free_name(
    store: &Store,
    fork: &WorkspaceKey,
    origin: Option<SnapshotId>,
) -> Result<SnapshotName, Failure> {
    for number in 1.. {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let name = SnapshotName::new(format!("fork-{fork}{suffix}"))
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let mut request = CreateRequest::named(name.clone());
        request.description = work_of(fork);
        request.origin = origin;
        match store.create(&request) {
            Err(CreateError::NameTaken { .. }) => {}
            created => return created.map(|_| name).map_err(Failure::from),
        }
    }
    unreachable!("there is always another number")
}
