//! Work in an open fork: snapshots of its states, and the context of tools.

use std::sync::Arc;

use carrel_audit::Interface;
use carrel_domain::{Failure, NetworkRequest};
use carrel_snapshot::{
    CreateRequest, Reference, RestoreOptions, SameName, ScanOptions, SnapshotName, Store, Trust,
};
use carrel_trial::Spec;
use tokio_util::sync::CancellationToken;

use super::host::OpenFork;
use crate::blocking::blocking;
use crate::named_workspace::NamedWorkspace;
use crate::session::Session;
use crate::tool_context::{CallOptions, CommandSettings, ToolContext};

/// The name of the snapshot of a fork as it was made.
pub(super) const BEFORE: &str = "before-the-run";

/// The name of the snapshot of a candidate's work.
pub(super) const AFTER: &str = "after-the-run";

impl OpenFork {
    pub(super) fn workspace(&self) -> &Arc<NamedWorkspace> {
        self.toolbox.workspaces.iter().next().expect("a fork is opened with one workspace")
    }

    /// Returns the context of a tool that works for a try.
    pub(super) fn context(&self, spec: &Spec, cancel: CancellationToken) -> ToolContext {
        let network = NetworkRequest { token: spec.network_cap, ..NetworkRequest::default() };
        let command_settings = CommandSettings { network, ..CommandSettings::default() };
        let options = CallOptions { cancel, command_settings, ..CallOptions::new(Interface::Cli) };
        ToolContext {
            toolbox: Arc::clone(&self.toolbox),
            session: Session::new("try"),
            tool: "try",
            options,
            workspaces: Arc::clone(&self.toolbox.workspaces),
            workspace: Some(Arc::clone(self.workspace())),
            changes: Arc::default(),
        }
    }

    /// Takes a snapshot of the fork, in place of an earlier one of the name.
    pub(super) async fn snapshot(&self, name: &'static str) -> Result<(), Failure> {
        self.in_store(move |store, workspace| {
            let name = SnapshotName::new(name)
                .map_err(|error| Failure::new(carrel_domain::Code::Internal, error.to_string()))?;
            let mut request = CreateRequest::named(name);
            request.same_name = SameName::Replaced;
            request.options = scan(workspace);
            let _writing = workspace.handle().lock_for_writing()?;
            store.create(&request)?;
            Ok(())
        })
        .await
    }

    /// Brings the fork back to the candidate's work, if something changed it since.
    pub(super) async fn restore_work(&self) -> Result<(), Failure> {
        self.in_store(|store, workspace| {
            let options = RestoreOptions { scan: scan(workspace), ..RestoreOptions::default() };
            let _writing = workspace.handle().lock_for_writing()?;
            let plan = store.plan_restore(&named(AFTER)?, options)?;
            if !plan.changes.is_empty() {
                store.apply(plan)?;
            }
            Ok(())
        })
        .await
    }

    /// Does something with the snapshots of the fork.
    pub(super) async fn in_store<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Store, &NamedWorkspace) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (toolbox, workspace) = (Arc::clone(&self.toolbox), Arc::clone(self.workspace()));
        blocking(move || {
            let store = toolbox.snapshots.of(&workspace)?;
            act(&store, &workspace)
        })
        .await
    }

    /// Ends what runs in the fork, so that it can be promoted or removed.
    pub(super) async fn close(self) {
        self.toolbox.snapshots.forget(self.workspace().path());
        if self.is_own {
            self.toolbox.end_processes().await;
        }
    }
}

pub(super) fn named(name: &str) -> Result<Reference, Failure> {
    Reference::parse(name)
        .map_err(|error| Failure::new(carrel_domain::Code::Internal, error.to_string()))
}

/// A process that may still write could have files mapped, and change them without changing their keys.
fn scan(workspace: &NamedWorkspace) -> ScanOptions {
    let runs = workspace.handle().running_commands() > 0;
    let trust = if runs { Trust::Nothing } else { Trust::Keys };
    ScanOptions { trust, ..ScanOptions::default() }
}
