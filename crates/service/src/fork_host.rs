//! The forks that tools of a hosted workspace make: workspaces of the service, with rows of their own.

use carrel_domain::{Failure, WorkspaceId};
use carrel_tools::{ForkChange, ForkHost, ForkPatch, OtherForks, PromotedFork};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::error::ServiceError;
use crate::hosted_workspaces::{HostedWorkspaces, WeakWorkspaces};

/// Makes and ends the forks of one workspace. It is in the toolbox of that workspace, which the service owns.
#[derive(Debug)]
pub(crate) struct HostedForks {
    pub(crate) spaces: WeakWorkspaces,
    pub(crate) base: WorkspaceId,
}

impl HostedForks {
    fn spaces(&self) -> Result<HostedWorkspaces, Failure> {
        let spaces = self.spaces.upgrade();
        Ok(spaces.ok_or(ServiceError::NoWorkspace { id: self.base })?)
    }

    /// Returns the id of a fork of this base.
    async fn fork(&self, name: &str) -> Result<WorkspaceId, Failure> {
        let forks = self.names().await?;
        if let (true, Ok(id)) = (forks.iter().any(|fork| fork == name), name.parse()) {
            return Ok(id);
        }
        let have = if forks.is_empty() { "none".to_owned() } else { forks.join(", ") };
        let message = format!("{name:?} is no fork of {}; it has {have}", self.base);
        Err(Failure::argument("fork", message))
    }

    async fn names(&self) -> Result<Vec<String>, Failure> {
        let forks = self.spaces()?.forks_of(self.base).await?;
        Ok(forks.iter().map(|fork| fork.id.to_string()).collect())
    }
}

impl ForkHost for HostedForks {
    fn make(&self, count: u8) -> BoxFuture<'_, Result<Vec<String>, Failure>> {
        async move {
            let forks = self.spaces()?.fork(self.base, count).await?;
            Ok(forks.iter().map(|fork| fork.id.to_string()).collect())
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, Failure>> {
        self.names().boxed()
    }

    fn patch<'a>(
        &'a self,
        fork: &'a str,
        against: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<(Vec<ForkChange>, ForkPatch), Failure>> {
        async move {
            let fork = self.fork(fork).await?;
            let against = match against {
                Some(other) => Some(self.fork(other).await?),
                None => None,
            };
            let (changes, patch) = self.spaces()?.fork_changes(fork, against, Some(limit)).await?;
            Ok((changes, patch.unwrap_or_default()))
        }
        .boxed()
    }

    fn promote<'a>(
        &'a self,
        fork: &'a str,
        others: OtherForks,
    ) -> BoxFuture<'a, Result<PromotedFork, Failure>> {
        async move {
            let fork = self.fork(fork).await?;
            self.spaces()?.promote(fork, others).await
        }
        .boxed()
    }

    fn end<'a>(&'a self, fork: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            let fork = self.fork(fork).await?;
            Ok(self.spaces()?.remove(fork).await?)
        }
        .boxed()
    }
}
