//! Forks of the workspaces on this machine's volume.
//!
//! A fork is a workspace with a row of its own, whose id follows from the base's ([`WorkspaceId::fork`]), so that a
//! token for the base covers its forks. The rows come first and go first: a row without a directory is removed like any
//! other, while a directory without a row could not be. Promotion closes the forks in this process, lets the tools'
//! [`Forks`] do the work, and deletes the rows.
//!
//! A process that ends between the two leaves one without the other: [`HostedWorkspaces::remove_unfinished_forks`] finds
//! and removes both kinds when the server starts.

use std::collections::HashMap;

use carrel_domain::{Code, Failure, MAX_FORKS, WorkspaceId};
use carrel_store::{StoreError, Workspace};
use carrel_tools::{
    AdoptedChanges, ForkChange, ForkPatch, Forks, Interface, OtherForks, PromotedFork,
};
use carrel_workspace::{Error, Fork, ListingState, Record, UnsavedWork};
use futures_util::future::join_all;
use tracing::{info, warn};

use crate::error::ServiceError;
use crate::hosted_workspaces::{HostedWorkspaces, identifier};

/// The rows that are read from the store at once.
const PAGE: u32 = 1000;

impl HostedWorkspaces {
    /// Makes forks of a workspace, which is frozen until the last of them is promoted or removed.
    pub async fn fork(&self, base: WorkspaceId, count: u8) -> Result<Vec<Workspace>, Failure> {
        self.fork_with(base, count, None).await
    }

    /// Makes a fork of a workspace that begins with the work which a snapshot of the workspace has.
    pub async fn fork_from(&self, base: WorkspaceId, work: &str) -> Result<Workspace, Failure> {
        let made = self.fork_with(base, 1, Some(work)).await?;
        made.into_iter().next().ok_or_else(|| Failure::new(Code::Internal, "no fork was made"))
    }

    async fn fork_with(
        &self,
        base: WorkspaceId,
        count: u8,
        work: Option<&str>,
    ) -> Result<Vec<Workspace>, Failure> {
        let row = self.open_workspace(base).await?.workspace.clone();
        // One without the other is a fork in the making, and not a leftover, while this is held.
        let _forking = self.forking().await;
        let volume = row.volume.or(Some(self.volume()));
        let of_number = |number| Workspace {
            id: base.fork(number),
            name: fork_name(&row.name, number),
            created_at: self.now(),
            volume,
            ..row.clone()
        };
        let (mut rows, mut numbers) = (Vec::new(), 1..=MAX_FORKS);
        while rows.len() < usize::from(count) {
            let free = numbers.by_ref().take(usize::from(count) - rows.len()).map(of_number);
            // At once, so that one commit is for all of them.
            let added = free.map(|fork| async {
                let there = self.store().add_workspace(fork.clone()).await?;
                Ok::<_, StoreError>(there.is_none().then_some(fork))
            });
            let added = join_all(added).await;
            if added.is_empty() {
                break;
            }
            for fork in added {
                rows.extend(fork.map_err(ServiceError::from)?);
            }
        }
        let made = self.make_forks(base, &rows, usize::from(count), work).await;
        if made.is_err() {
            for fork in &rows {
                self.delete_row(fork.id).await;
            }
        }
        made.map(|()| rows)
    }

    async fn make_forks(
        &self,
        base: WorkspaceId,
        rows: &[Workspace],
        count: usize,
        work: Option<&str>,
    ) -> Result<(), Failure> {
        if rows.len() < count {
            let message =
                format!("workspace {base} can have {MAX_FORKS} forks; promote or remove some");
            return Err(
                Failure::new(Code::ForkRefused, message).with("workspace_id", base.to_string())
            );
        }
        let mut names = Vec::new();
        for row in rows {
            names.push(Some(identifier(row.id)?));
        }
        let base = identifier(base)?;
        match work {
            None => self.forks().make(&base, names, None).await.map(drop),
            Some(work) => {
                let name = names.pop().flatten();
                self.forks().make_from(&base, work, name, None).await.map(drop)
            }
        }
    }

    /// Returns the rows of a workspace's forks, in the order of their numbers.
    pub async fn forks_of(&self, base: WorkspaceId) -> Result<Vec<Workspace>, Failure> {
        let key = self.workspaces().key(&identifier(base)?)?;
        let forks = self.workspaces().forks_of(&key)?;
        let mut rows = Vec::new();
        for id in (1..=MAX_FORKS).map(|number| base.fork(number)) {
            let name = id.to_string();
            if forks.iter().any(|fork| fork.identifier.as_str() == name) {
                rows.extend(self.store().workspace(id).await.map_err(ServiceError::from)?);
            }
        }
        Ok(rows)
    }

    /// Returns the base of a fork; none for other workspaces.
    pub fn base_of(&self, fork: WorkspaceId) -> Result<Option<WorkspaceId>, Failure> {
        let Ok(record) = self.workspaces().record(&identifier(fork)?) else { return Ok(None) };
        let base = record.fork.and_then(|Fork { base, .. }| base.as_str().parse().ok());
        Ok(base)
    }

    /// Lists what a fork changed against its base or another fork of it, with a patch of at most so many bytes if it
    /// is asked for.
    pub async fn fork_changes(
        &self,
        fork: WorkspaceId,
        against: Option<WorkspaceId>,
        patch_bytes: Option<usize>,
    ) -> Result<(Vec<ForkChange>, Option<ForkPatch>), Failure> {
        let (forks, fork) = (self.forks(), identifier(fork)?);
        let against = against.map(identifier).transpose()?;
        match patch_bytes {
            Some(limit) => {
                let (changes, patch) = forks.patch(&fork, against.as_ref(), limit).await?;
                Ok((changes, Some(patch)))
            }
            None => Ok((forks.changes_against(&fork, against.as_ref()).await?, None)),
        }
    }

    /// Lets a fork take over what was changed in its base by other programs. Fails if a task of it is queued or running.
    pub async fn rebase(&self, fork: WorkspaceId) -> Result<AdoptedChanges, Failure> {
        self.refuse_live_tasks(fork).await?;
        // It is opened again at its next use.
        let _closed = self.begin_removal(fork);
        self.close_for_good(fork).await;
        self.forks().rebase(&identifier(fork)?).await
    }

    /// Makes the base what a fork is, and removes all forks of the base. Fails if a task of one is queued or running.
    pub async fn promote(
        &self,
        fork: WorkspaceId,
        others: OtherForks,
    ) -> Result<PromotedFork, Failure> {
        let Some(base) = self.base_of(fork)? else {
            let message = format!("workspace {fork} is no fork");
            return Err(
                Failure::new(Code::ForkRefused, message).with("workspace_id", fork.to_string())
            );
        };
        let forks: Vec<_> = self.forks_of(base).await?.iter().map(|row| row.id).collect();
        for id in &forks {
            self.refuse_live_tasks(*id).await?;
        }
        // Processes end only for a promotion that takes place.
        self.forks().check_promotion(&identifier(fork)?, others).await?;
        let closed: Vec<_> = forks.iter().map(|id| self.begin_removal(*id)).collect();
        for id in &forks {
            self.close_for_good(*id).await;
        }
        let opened = self.open_workspace(base).await?;
        let promoted = self.forks().promote(&identifier(fork)?, others).await;
        opened.expect_changes();
        drop(closed);
        let promoted = promoted?;
        for id in forks {
            self.delete_row(id).await;
        }
        Ok(promoted)
    }

    /// Removes what a process that ended left of forks on this volume: rows without a directory, and directories
    /// without a row, for which their bases would be frozen.
    pub async fn remove_unfinished_forks(&self) -> Result<(), Failure> {
        let _forking = self.forking().await;
        let rows = self.rows_of_volume().await?;
        for row in rows.values() {
            // Records are read for forks only: there may be many rows.
            let is_fork = row.volume == Some(self.volume()) && is_fork_of_any(row, &rows);
            let is_gone = |id| matches!(self.workspaces().record(&id), Err(Error::NotFound { .. }));
            if is_fork && is_gone(identifier(row.id)?) {
                info!(workspace = %row.id, "removed the row of a fork that was not made or is gone");
                self.delete_row(row.id).await;
            }
        }
        for listing in self.workspaces().forks().await? {
            let Ok(id) = listing.record.identifier.as_str().parse::<WorkspaceId>() else {
                continue;
            };
            let is_usable = listing.state == ListingState::Ready;
            if is_usable && rows.contains_key(&id) {
                continue;
            }
            if let Err(failure) = self.remove_leftover(&listing.record, is_usable).await {
                let (fork, error) = (&listing.record.key, failure.message);
                warn!(%fork, error, "could not remove what is left of a fork");
                continue;
            }
            info!(workspace = %id, "removed what was left of a fork");
            if rows.contains_key(&id) {
                self.delete_row(id).await;
            }
        }
        Ok(())
    }

    async fn remove_leftover(&self, fork: &Record, is_usable: bool) -> Result<(), Failure> {
        if is_usable {
            // Perhaps it is the row that was lost: its work is kept as that of an idle fork.
            self.forks().end_idle(fork, None, Interface::Rest).await?;
            return Ok(());
        }
        let locked = self.workspaces().lock_for_removal(fork.identifier.clone()).await?;
        self.workspaces().refuse_work_without_directory(fork)?;
        self.workspaces().remove_locked(locked, UnsavedWork::Discard, self.hooks()).await?;
        Ok(())
    }

    /// Returns the rows of the workspaces that are, or may come to be, on this volume.
    async fn rows_of_volume(&self) -> Result<HashMap<WorkspaceId, Workspace>, Failure> {
        let (mut rows, mut after) = (HashMap::new(), None);
        loop {
            let page = self.store().workspaces(after, PAGE).await.map_err(ServiceError::from)?;
            let Some(last) = page.last() else { return Ok(rows) };
            after = Some(last.id);
            let is_own = |row: &Workspace| row.volume.is_none_or(|volume| volume == self.volume());
            let own = page.into_iter().filter(is_own);
            rows.extend(own.map(|row| (row.id, row)));
        }
    }

    pub(crate) fn forks(&self) -> Forks {
        Forks {
            workspaces: self.workspaces().clone(),
            runner: self.runner().clone(),
            hooks: self.hooks().clone(),
        }
    }

    /// Deletes the row of a fork that is gone. One that stays makes an empty workspace at its next use.
    pub(crate) async fn delete_row(&self, id: WorkspaceId) {
        if let Err(error) = self.store().delete_workspace(id).await {
            tracing::warn!(workspace = %id, %error, "could not delete the row of a fork that is gone");
        }
    }
}

fn fork_name(base: &str, number: u8) -> String {
    format!("{base} fork {number}")
}

/// Returns whether a row is that of a fork, as its name and its id say.
fn is_fork_of_any(row: &Workspace, rows: &HashMap<WorkspaceId, Workspace>) -> bool {
    let Some((base, number)) = row.name.rsplit_once(" fork ") else { return false };
    let Ok(number) = number.parse() else { return false };
    rows.values().any(|other| other.name == base && other.id.fork(number) == row.id)
}
