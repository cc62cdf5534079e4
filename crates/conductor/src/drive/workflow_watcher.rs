//! Following the workflow file while it is edited.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_config::{Environment, ReloadOutcome, Reloader, Workflow};
use carrel_domain::message_of;
use carrel_exec::LazySpawner;
use carrel_workspace::TrackerName;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Factories;
use super::setup::{Setup, conductor, scope_of};
use super::start_error::StartError;

/// How often the file is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// What a look at the file found.
#[derive(Debug)]
pub(super) enum WorkflowUpdate {
    /// Other settings, which can be used.
    Changed(Arc<Setup>),
    /// Something that cannot be used, and was not said before.
    Broken(String),
}

/// Follows the workflow file.
#[derive(Debug)]
pub(super) struct WorkflowWatcher {
    pub(super) reloader: Reloader,
    pub(super) environment: fn() -> Environment,
    pub(super) factories: Factories,
    pub(super) commands: LazySpawner,
    pub(super) data: PathBuf,
    pub(super) tracker_name: TrackerName,
    pub(super) scope: String,
    /// Why the present file cannot be used, while it cannot.
    pub(super) refused: Option<String>,
}

impl WorkflowWatcher {
    /// Looks at the file from time to time and tells what it found.
    pub(super) async fn run(
        mut self,
        found: mpsc::Sender<WorkflowUpdate>,
        stop: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let looked = tokio::task::spawn_blocking(move || {
                let news = self.look();
                (self, news)
            });
            let Ok((same, news)) = looked.await else { return };
            self = same;
            if let Some(news) = news
                && found.send(news).await.is_err()
            {
                return;
            }
        }
    }

    fn look(&mut self) -> Option<WorkflowUpdate> {
        match self.reloader.check(self.environment) {
            ReloadOutcome::Unchanged if self.refused.is_some() => {
                self.take(&self.reloader.current())
            }
            ReloadOutcome::Unchanged => None,
            ReloadOutcome::Failed { error, .. } => self.broken(message_of(&*error)),
            ReloadOutcome::Reloaded { new, .. } => {
                for warning in &new.warnings {
                    warn!("{}", warning.located(&new.path));
                }
                self.refused = None;
                self.take(&new)
            }
        }
    }

    fn take(&mut self, workflow: &Arc<Workflow>) -> Option<WorkflowUpdate> {
        match self.setup(workflow) {
            Ok(setup) => {
                self.refused = None;
                Some(WorkflowUpdate::Changed(Arc::new(setup)))
            }
            Err(error) => self.broken(message_of(&error)),
        }
    }

    fn setup(&self, workflow: &Arc<Workflow>) -> Result<Setup, StartError> {
        let to = scope_of(&conductor(workflow)?.tracker);
        if to != self.scope {
            return Err(StartError::OtherScope { from: self.scope.clone(), to });
        }
        let environment = (self.environment)();
        let workflow = Arc::clone(workflow);
        let name = self.tracker_name.clone();
        Setup::of(workflow, &environment, &self.factories, &self.commands, &self.data, name)
    }

    /// Says why the file cannot be used, unless that was said before.
    fn broken(&mut self, error: String) -> Option<WorkflowUpdate> {
        let known = self.refused.replace(error.clone());
        (known.as_ref() != Some(&error)).then_some(WorkflowUpdate::Broken(error))
    }
}
