//! Forks that begin with kept work: that of a fork which ended, put onto its base as that is now.
//!
//! | step | after a crash |
//! |---|---|
//! | freeze the base; make a fork that counts as half-made | a broken fork, which clean-up removes |
//! | put the work into it, as crate `snapshot` does | the same |
//! | make the fork usable | a fork |
//!
//! Neither the base nor the snapshot of the work is changed, so it can be done again.

use std::sync::Arc;

use carrel_domain::{Failure, Identifier};
use carrel_runner::WorkspaceHandle;
use carrel_snapshot::{FindError, Rebased, Reference};
use carrel_workspace::{Amount, Created, MakeFork, Quota, RemovalLock, UnsavedWork};

use super::{Forks, store_of};
use crate::blocking::blocking;

/// A fork that begins with kept work.
#[derive(Clone, Debug)]
pub struct RebasedFork {
    /// The fork.
    pub fork: Created,
    /// The work that is in it.
    pub work: Rebased,
}

impl Forks {
    /// Makes a fork of a workspace as it is now, with the work that a snapshot of the workspace has. Fails if both
    /// have changed the same files, and leaves nothing then.
    pub async fn make_from(
        &self,
        base: &Identifier,
        work: &str,
        name: Option<Identifier>,
        quota: Option<Quota>,
    ) -> Result<RebasedFork, Failure> {
        let work = Reference::parse(work).map_err(FindError::Name)?;
        let opened = Arc::new(self.workspaces.open(base).await?);
        let base_handle = WorkspaceHandle::for_workspace(opened, Amount::default())?;
        // Before anything is made for a name that is wrong.
        let store = store_of(&base_handle)?;
        let request = MakeFork { identifier: name, quota, kind: self.kind() };
        let (workspaces, base) = (self.workspaces.clone(), base.clone());
        let begun = blocking(move || {
            store.find(&work)?;
            let frozen = workspaces.freeze(&base)?;
            drop(base_handle.lock_past_freeze()?);
            Ok((workspaces.begin_fork(&frozen, &request)?, base_handle, work))
        });
        let (begun, base_handle, work) = begun.await?;
        let put = self.put(&begun, base_handle, work).await;
        match put {
            Ok(work) => {
                let workspaces = self.workspaces.clone();
                let fork = blocking(move || Ok(workspaces.finish_fork(begun)?)).await?;
                Ok(RebasedFork { fork, work })
            }
            Err(failure) => {
                self.workspaces.remove_locked(begun, UnsavedWork::Discard, &self.hooks).await?;
                Err(failure)
            }
        }
    }

    /// Puts work into a fork that is half-made, and ends its mount.
    async fn put(
        &self,
        begun: &RemovalLock,
        base: WorkspaceHandle,
        work: Reference,
    ) -> Result<Rebased, Failure> {
        let opened = self.workspaces.open_locked(begun)?.map(Arc::new);
        let Some(opened) = opened else {
            let message = "the directory of a fork in the making is gone; make it again";
            return Err(Failure::new(carrel_domain::Code::Contended, message));
        };
        let path = self.workspaces.path().join(opened.record().key.as_str());
        let put = async {
            let fork = self.runner.open_counted(opened, Amount::default()).await?;
            blocking(move || {
                let store = store_of(&base)?;
                Ok(store.rebase(&work, fork.files())?)
            })
            .await
        };
        let put = put.await;
        self.runner.end_fork(&path).await?;
        put
    }
}
