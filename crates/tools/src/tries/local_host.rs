//! The forks of tries of the command line and of `carrel mcp`.

use std::sync::Arc;

use async_trait::async_trait;
use carrel_config::Environment;
use carrel_domain::{Code, Failure, Identifier, NetworkRequest, TrialId, WorkspaceAccess};
use carrel_snapshot::SnapshotName;
use carrel_trial::Spec;
use carrel_workspace::{Hooks, Workspaces};

use super::host::{OpenFork, TryHost};
use super::run::network_of;
use crate::forks::{Forks, OtherForks, PromotedFork};
use crate::git::GitOptions;
use crate::named_workspace::NamedWorkspace;
use crate::secrets::Secrets;
use crate::tool_context::ToolContext;
use crate::toolbox::{Toolbox, ToolboxOptions};
use crate::workspace_list::WorkspaceEntry;

/// The forks of a root, without a server.
#[derive(Debug)]
pub struct LocalHost {
    forks: Forks,
    network: NetworkRequest,
    secrets: Secrets,
}

impl LocalHost {
    /// Makes the host of a root. `network` has the caps of the command line.
    pub fn new(forks: Forks, network: NetworkRequest) -> Self {
        Self { forks, network, secrets: Secrets::default() }
    }

    /// Returns the host of the root of a call's workspace, and the identifier of that.
    pub(super) fn of(context: &ToolContext) -> Result<(Self, Identifier), Failure> {
        let Some(workspace) = context.workspace().handle().managed() else {
            let name = context.workspace().name();
            let message = format!(
                "\"{name}\" is a directory that an operator named, or a part of a workspace, and has no forks; \
                 `carrel workspace create` makes a workspace that has"
            );
            return Err(Failure::new(Code::ForkRefused, message).with("workspace", name));
        };
        let runner = context.toolbox.runner.clone();
        let hooks = Hooks::none(runner.spawner().clone());
        let forks = Forks { workspaces: workspace.workspaces().clone(), runner, hooks };
        let secrets = context.toolbox.secrets.clone();
        let own = Self { forks, network: context.toolbox.network, secrets };
        Ok((own, workspace.record().identifier.clone()))
    }
}

#[async_trait]
impl TryHost for LocalHost {
    fn workspaces(&self) -> &Workspaces {
        &self.forks.workspaces
    }

    fn environment(&self) -> &Environment {
        self.forks.runner.environment()
    }

    fn is_server(&self) -> bool {
        false
    }

    async fn check_network(&self, _: &Identifier, spec: &Spec) -> Result<(), Failure> {
        let request = network_of(spec).within(self.network);
        self.forks.runner.decide_network(request)?;
        Ok(())
    }

    async fn names(
        &self,
        base: &Identifier,
        id: &TrialId,
        numbers: &[u8],
    ) -> Result<Vec<Identifier>, Failure> {
        let name = |number: &u8| Identifier::parse(format!("{base}.try-{id}-{number}"));
        numbers.iter().map(name).collect::<Result<_, _>>().map_err(|error| {
            Failure::new(
                Code::InvalidIdentifier,
                format!("no fork of {base} can be named: {error}"),
            )
        })
    }

    async fn make(
        &self,
        base: &Identifier,
        _: &TrialId,
        forks: &[(u8, Identifier)],
    ) -> Result<(), Failure> {
        let names = forks.iter().map(|(_, name)| Some(name.clone())).collect();
        self.forks.make(base, names, None).await.map(drop)
    }

    async fn open(&self, fork: &Identifier) -> Result<OpenFork, Failure> {
        let workspace = Arc::new(self.forks.workspaces.open(fork).await?);
        let handle = self.forks.runner.open(&workspace).await?;
        let entry = WorkspaceEntry {
            name: workspace.record().key.to_string(),
            path: handle.path().to_owned(),
            access: WorkspaceAccess::ReadWrite,
        };
        let workspaces =
            crate::named_workspace::Workspaces::new(vec![NamedWorkspace::new(entry, handle)]);
        Ok(OpenFork::own(Toolbox::new(ToolboxOptions {
            workspaces: workspaces.expect("one overlaps no other"),
            runner: self.forks.runner.clone(),
            secrets: self.secrets.clone(),
            access: WorkspaceAccess::ReadWrite,
            network: self.network,
            git: GitOptions::default(),
            reply_bytes: crate::DEFAULT_REPLY_BYTES,
            symbols: Arc::default(),
            snapshots: Arc::default(),
        })))
    }

    async fn promote(&self, fork: &Identifier) -> Result<PromotedFork, Failure> {
        self.forks.promote(fork, OtherForks::Record).await
    }

    async fn end(
        &self,
        fork: &Identifier,
        work: OtherForks,
    ) -> Result<Option<SnapshotName>, Failure> {
        self.forks.end(fork, work).await
    }
}
