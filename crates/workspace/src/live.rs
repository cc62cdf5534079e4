//! Following a workflow file while it is edited.

use std::sync::Arc;

use carrel_config::{Check, Environment, Reloader, Workflow};
use carrel_domain::{SystemClock, message_of};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::commands::Commands;
use crate::error::Error;
use crate::hooks::{HookSettings, Hooks};
use crate::manager::{Options, Workspaces};
use crate::quota::Quota;

/// The root and the hooks that a workflow file asks for at the moment.
///
/// A change applies to workspaces made from then on. Those that exist stay where
/// they are: whoever holds the old [`Workspaces`] goes on with it.
#[derive(Debug)]
pub struct Live {
    reloader: Reloader,
    workspaces: Workspaces,
    hooks: Hooks,
    commands: Commands,
    cancel: CancellationToken,
    /// Why the root of the present file cannot be used, while it cannot.
    refused: Option<String>,
}

impl Options {
    /// Takes what a workflow file says about workspaces.
    pub fn of(workflow: &Workflow, environment: &Environment) -> Self {
        let config = &workflow.config.workspace;
        Self {
            root: config.root.path.clone(),
            home: environment.home(),
            quota: Quota { bytes: config.quota, files: Some(config.quota_files) },
            clock: Arc::new(SystemClock),
        }
    }
}

impl Hooks {
    /// Takes what a workflow file says about hooks.
    pub fn of(
        workflow: &Workflow,
        environment: &Environment,
        commands: Commands,
        cancel: CancellationToken,
    ) -> Self {
        let secrets = workflow.known_secrets();
        let settings = HookSettings::new(workflow.config.hooks.clone(), environment, secrets);
        Self::new(settings, commands, cancel)
    }
}

impl Live {
    /// Opens the root of a workflow file and begins to follow the file.
    pub fn start(
        workflow: Workflow,
        environment: &Environment,
        commands: Commands,
        cancel: CancellationToken,
    ) -> Result<Self, Error> {
        let workspaces = Workspaces::open_or_create(&Options::of(&workflow, environment))?;
        let hooks = Hooks::of(&workflow, environment, commands.clone(), cancel.clone());
        Ok(Self {
            reloader: Reloader::new(workflow),
            workspaces,
            hooks,
            commands,
            cancel,
            refused: None,
        })
    }

    /// Returns the workspaces of the present root.
    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// Returns the present hooks.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Returns the workflow in use.
    pub fn workflow(&self) -> Arc<Workflow> {
        self.reloader.current()
    }

    /// Looks at the file once and takes over what changed. A file that cannot be
    /// used leaves everything as it is, and is complained about once.
    pub fn check(&mut self, environment: impl Fn() -> Environment) {
        match self.reloader.check(&environment) {
            Check::Unchanged if self.refused.is_some() => {
                self.take_over(&self.workflow(), &environment());
            }
            Check::Unchanged => {}
            Check::Failed { error, first_time } => {
                if first_time {
                    let error = message_of(&*error);
                    error!(error, "Workflow file cannot be used, keeping the last good one");
                }
            }
            Check::Reloaded { new, .. } => {
                info!(file = %new.path.display(), "Workflow file reloaded");
                for warning in &new.warnings {
                    warn!("{}", warning.located(&new.path));
                }
                self.take_over(&new, &environment());
            }
        }
    }

    /// Moves to the root and the hooks of a file together. A root that cannot be used
    /// leaves both as they are, and is tried again at every look.
    fn take_over(&mut self, workflow: &Workflow, environment: &Environment) {
        match Workspaces::open_or_create(&Options::of(workflow, environment)) {
            Ok(workspaces) => {
                let (commands, cancel) = (self.commands.clone(), self.cancel.clone());
                self.hooks = Hooks::of(workflow, environment, commands, cancel);
                self.refused = None;
                self.move_to(workspaces);
            }
            Err(error) => {
                let error = message_of(&error);
                if self.refused.as_ref() != Some(&error) {
                    error!(error, "Workspace root cannot be used, keeping the old one");
                }
                self.refused = Some(error);
            }
        }
    }

    fn move_to(&mut self, workspaces: Workspaces) {
        let old = std::mem::replace(&mut self.workspaces, workspaces);
        if old.path() != self.workspaces.path() {
            let left_behind = old.count().unwrap_or(0);
            warn!(
                old_root = %old.path().display(),
                new_root = %self.workspaces.path().display(),
                left_behind,
                "Workspace root changed, existing workspaces stay where they are"
            );
        }
    }
}
