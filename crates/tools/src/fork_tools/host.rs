//! The maker of the forks that tools ask for: the toolbox itself for a workspace of a root, or a service.

use std::fmt;
use std::sync::Arc;

use carrel_domain::{Code, Failure, Identifier};
use carrel_fork::Change;
use carrel_workspace::{Fork, Hooks, Remove, Target, UnsavedWork, Workspace};
use futures_util::future::BoxFuture;

use crate::forks::{ForkPatch, Forks, OtherForks, PromotedFork};
use crate::tool_context::ToolContext;

/// Makes and ends the forks of one workspace for a service, which has rows for them and closes them first.
pub trait ForkHost: fmt::Debug + Send + Sync {
    /// Makes forks, and returns their names.
    fn make(&self, count: u8) -> BoxFuture<'_, Result<Vec<String>, Failure>>;

    /// Returns the names of the forks.
    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, Failure>>;

    /// Compares a fork with its base or another fork of it.
    fn patch<'a>(
        &'a self,
        fork: &'a str,
        against: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<(Vec<Change>, ForkPatch), Failure>>;

    /// Makes the workspace what a fork is.
    fn promote<'a>(
        &'a self,
        fork: &'a str,
        others: OtherForks,
    ) -> BoxFuture<'a, Result<PromotedFork, Failure>>;

    /// Throws a fork away.
    fn end<'a>(&'a self, fork: &'a str) -> BoxFuture<'a, Result<(), Failure>>;
}

/// The host of a call's workspace.
pub(super) enum Host<'a> {
    Service(Arc<dyn ForkHost>),
    Root(RootForks<'a>),
}

/// The forks of a workspace of a root, which this process opens itself.
pub(super) struct RootForks<'a> {
    context: &'a ToolContext,
    base: &'a Arc<Workspace>,
    forks: Forks,
}

impl<'a> Host<'a> {
    pub(super) fn of(context: &'a ToolContext) -> Result<Self, Failure> {
        if let Some(host) = context.toolbox.forks.host() {
            return Ok(Self::Service(host));
        }
        let workspace = context.workspace();
        let Some(base) = workspace.handle().managed() else {
            let (name, path) = (workspace.name(), workspace.path().display());
            let message = format!(
                "\"{name}\" is not a workspace of a root, so it cannot be frozen and has no forks; `carrel workspace \
                 create NAME --root DIR` makes one, to be served with --workspace DIR/NAME in place of {path}"
            );
            return Err(Failure::new(Code::ForkRefused, message).with("workspace", name));
        };
        let forks = Forks {
            workspaces: base.workspaces().clone(),
            runner: context.toolbox.runner.clone(),
            hooks: Hooks::none(context.toolbox.runner.spawner().clone()),
        };
        Ok(Self::Root(RootForks { context, base, forks }))
    }

    pub(super) async fn make(&self, count: u8) -> Result<Vec<String>, Failure> {
        match self {
            Self::Service(host) => host.make(count).await,
            Self::Root(root) => {
                let names = vec![None; usize::from(count)];
                let made = root.forks.make(&root.base.record().identifier, names, None).await?;
                Ok(made.into_iter().map(|fork| fork.record.key.to_string()).collect())
            }
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<String>, Failure> {
        match self {
            Self::Service(host) => host.list().await,
            Self::Root(root) => {
                let forks = root.forks.workspaces.forks_of(&root.base.record().key)?;
                Ok(forks.into_iter().map(|fork| fork.key.to_string()).collect())
            }
        }
    }

    pub(super) async fn patch(
        &self,
        fork: &str,
        against: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Change>, ForkPatch), Failure> {
        match self {
            Self::Service(host) => host.patch(fork, against, limit).await,
            Self::Root(root) => {
                let against = against.map(|other| root.fork(other)).transpose()?;
                root.forks.patch(&root.fork(fork)?, against.as_ref(), limit).await
            }
        }
    }

    pub(super) async fn promote(
        &self,
        fork: &str,
        others: OtherForks,
    ) -> Result<PromotedFork, Failure> {
        match self {
            Self::Service(host) => host.promote(fork, others).await,
            Self::Root(root) => {
                let fork = root.fork(fork)?;
                root.forks.check_promotion(&fork, others).await?;
                root.close(None).await?;
                root.forks.promote(&fork, others).await
            }
        }
    }

    pub(super) async fn end(&self, fork: &str) -> Result<(), Failure> {
        match self {
            Self::Service(host) => host.end(fork).await,
            Self::Root(root) => {
                let identifier = root.fork(fork)?;
                root.close(Some(fork)).await?;
                let path = root.forks.workspaces.path().join(fork);
                root.forks.runner.end_fork(&path).await?;
                let target = Target::Identifier(identifier);
                let request = Remove { target, unsaved: UnsavedWork::Discard };
                root.forks.workspaces.remove(request, &root.forks.hooks).await?;
                Ok(())
            }
        }
    }
}

impl RootForks<'_> {
    /// Returns the identifier of a fork of this base by its key.
    fn fork(&self, name: &str) -> Result<Identifier, Failure> {
        let key = &self.base.record().key;
        let forks = self.forks.workspaces.forks_of(key)?;
        let is_named = |fork: &Option<Fork>| fork.as_ref().is_some_and(|fork| fork.base == *key);
        let found = forks.iter().find(|fork| fork.key.as_str() == name && is_named(&fork.fork));
        if let Some(found) = found {
            return Ok(found.identifier.clone());
        }
        let names: Vec<_> = forks.iter().map(|fork| fork.key.as_str()).collect();
        let have = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(Failure::argument("fork", format!("{name:?} is no fork of {key}; it has {have}")))
    }

    /// Closes a fork in this process, or all of them, unless commands run there.
    async fn close(&self, fork: Option<&str>) -> Result<(), Failure> {
        let toolbox = &self.context.toolbox;
        for closed in toolbox.forks.close(self.context.workspace().path(), fork)? {
            toolbox.language_servers.close_workspace(closed.path()).await;
            toolbox.snapshots.forget(closed.path());
        }
        Ok(())
    }
}
