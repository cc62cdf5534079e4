//! Reload of the workflow file while the conductor runs.
//!
//! The file is checked every second. A valid change becomes a new [`Setup`], which further runs use; runs
//! in progress keep theirs. An invalid file, or one that names another tracker, is reported once per
//! error and stops dispatches until it is repaired. A setup that failed for another reason than the
//! file (the tracker's settings, the root) is retried every second.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_config::environment::{CARREL, CARREL_DATA};
use carrel_config::{Environment, ReloadOutcome, Reloader, Workflow};
use carrel_domain::message_of;
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, SandboxedHooks};
use carrel_workspace::{HookSettings, Hooks, RootOptions, TrackerName, Workspaces};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Factories;
use super::setup::{Setup, conductor, scope_of};
use super::start_error::StartError;

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The result of a check that found a change.
#[derive(Debug)]
pub(super) enum WorkflowUpdate {
    Changed(Arc<Setup>),
    /// The error of an invalid file, which was not reported before.
    Invalid(String),
}

#[derive(Debug)]
pub(super) struct WorkflowWatcher {
    pub(super) reloader: Reloader,
    pub(super) environment: fn() -> Environment,
    pub(super) factories: Factories,
    pub(super) commands: LazySpawner,
    /// The runner of agents, for its audit log.
    pub(super) runner: Arc<Runner>,
    pub(super) data: PathBuf,
    pub(super) tracker_name: TrackerName,
    pub(super) scope: String,
    /// The last reported error, while the file is invalid.
    pub(super) last_error: Option<String>,
}

impl WorkflowWatcher {
    /// Checks the file until `stop` is cancelled, and sends changes.
    pub(super) async fn run(
        mut self,
        found: mpsc::Sender<WorkflowUpdate>,
        stop: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let looked = carrel_exec::blocking(move || {
                let update = self.check();
                (self, update)
            });
            let Ok((same, update)) = looked.await else { return };
            self = same;
            if let Some(update) = update
                && found.send(update).await.is_err()
            {
                return;
            }
        }
    }

    fn check(&mut self) -> Option<WorkflowUpdate> {
        match self.reloader.check(self.environment) {
            ReloadOutcome::Unchanged if self.last_error.is_some() => {
                self.load_setup(&self.reloader.current())
            }
            ReloadOutcome::Unchanged => None,
            ReloadOutcome::Failed { error, .. } => self.invalid(message_of(&*error)),
            ReloadOutcome::Reloaded { new, .. } => {
                for warning in &new.warnings {
                    warn!("{}", warning.located(&new.path));
                }
                self.last_error = None;
                self.load_setup(&new)
            }
        }
    }

    fn load_setup(&mut self, workflow: &Arc<Workflow>) -> Option<WorkflowUpdate> {
        match self.setup(workflow) {
            Ok(setup) => {
                self.last_error = None;
                Some(WorkflowUpdate::Changed(Arc::new(setup)))
            }
            Err(error) => self.invalid(message_of(&error)),
        }
    }

    /// Opens the root and creates tracker, agent and hooks. Fails for a workflow file of another scope.
    pub(super) fn setup(&self, workflow: &Arc<Workflow>) -> Result<Setup, StartError> {
        let config = conductor(workflow)?;
        let to = scope_of(&config.tracker);
        if to != self.scope {
            return Err(StartError::OtherScope { from: self.scope.clone(), to });
        }
        let environment = (self.environment)();
        let tracker = (self.factories.tracker)(config).map_err(StartError::Tracker)?;
        let root = RootOptions::of(workflow, &environment);
        let secrets = workflow.known_secrets();
        let hooks = workflow.config.hooks.clone();
        let hooks = HookSettings::new(hooks, &environment, secrets.clone());
        let hooks = hooks.with(CARREL, self.commands.program()).with(CARREL_DATA, &self.data);
        let sandbox =
            SandboxedHooks::new(&environment, &self.commands, self.runner.events().clone());
        Ok(Setup {
            workflow: Arc::clone(workflow),
            workspaces: Workspaces::open_or_create(&root)?,
            hooks: Hooks::new(hooks, self.commands.clone(), sandbox, CancellationToken::new()),
            tracker,
            tracker_name: self.tracker_name.clone(),
            agent: (self.factories.agent)(config),
            tools: Arc::clone(&self.factories.tools),
            snapshots: Arc::clone(&self.factories.snapshots),
            secrets,
            root,
        })
    }

    fn invalid(&mut self, error: String) -> Option<WorkflowUpdate> {
        let known = self.last_error.replace(error.clone());
        (known.as_ref() != Some(&error)).then_some(WorkflowUpdate::Invalid(error))
    }
}
