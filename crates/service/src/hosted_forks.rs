//! Forks of the workspaces on this machine's volume.
//!
//! A fork is a workspace with a row of its own, whose id follows from the base's ([`WorkspaceId::fork`]), so that a
//! token for the base covers its forks. The rows come first: a row without a directory is removed like any other,
//! while a directory without a row could not be. Promotion closes the forks in this process, lets the tools' [`Forks`]
//! do the work, and deletes the rows.

use carrel_domain::{Code, Failure, MAX_FORKS, WorkspaceId};
use carrel_store::Workspace;
use carrel_tools::{ForkChange, Forks, OtherForks, PromotedFork};
use carrel_workspace::Fork;

use crate::error::ServiceError;
use crate::hosted_workspaces::{HostedWorkspaces, identifier};

impl HostedWorkspaces {
    /// Makes forks of a workspace, which is frozen until the last of them is promoted or removed.
    pub async fn fork(&self, base: WorkspaceId, count: u8) -> Result<Vec<Workspace>, Failure> {
        let row = self.open_workspace(base).await?.workspace.clone();
        let volume = row.volume.or(Some(self.volume()));
        let mut rows = Vec::new();
        for number in 1..=MAX_FORKS {
            if rows.len() == usize::from(count) {
                break;
            }
            let fork = Workspace {
                id: base.fork(number),
                name: format!("{} fork {number}", row.name),
                created_at: self.now(),
                volume,
                ..row.clone()
            };
            if self.store().add_workspace(fork.clone()).await.map_err(ServiceError::from)?.is_none()
            {
                rows.push(fork);
            }
        }
        let made = self.make_forks(base, &rows, usize::from(count)).await;
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
        self.forks().make(&identifier(base)?, names, None).await.map(drop)
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

    /// Lists what a fork changed against its base.
    pub async fn fork_changes(&self, fork: WorkspaceId) -> Result<Vec<ForkChange>, Failure> {
        self.forks().changes(&identifier(fork)?).await
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

    fn forks(&self) -> Forks {
        Forks {
            workspaces: self.workspaces().clone(),
            runner: self.runner().clone(),
            hooks: self.hooks().clone(),
        }
    }

    /// Deletes the row of a fork that is gone. One that stays makes an empty workspace at its next use.
    async fn delete_row(&self, id: WorkspaceId) {
        if let Err(error) = self.store().delete_workspace(id).await {
            tracing::warn!(workspace = %id, %error, "could not delete the row of a fork that is gone");
        }
    }
}
