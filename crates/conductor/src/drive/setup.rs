//! The objects that follow from a workflow file: root, hooks, tracker, agent.
//!
//! A [`Setup`] is immutable. A reload creates another one, and each run keeps the one it started with, so
//! that its hooks, workspace root and tools do not change in the middle.

use std::path::Path;
use std::sync::Arc;

use carrel_agent::Agent;
use carrel_config::environment::{CARREL, CARREL_DATA};
use carrel_config::{ConductorConfig, Environment, TrackerConfig, Workflow};
use carrel_domain::Secret;
use carrel_exec::LazySpawner;
use carrel_runner::SandboxedHooks;
use carrel_tracker::Tracker;
use carrel_workspace::{HookSettings, Hooks, RootOptions, TrackerName, Workspaces};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::start_error::StartError;
use super::{Factories, ToolsFactory};

/// Provider settings that identify a set of issues.
const SCOPE_SETTINGS: [&str; 8] = [
    "base_url",
    "endpoint",
    "api_url",
    "project_slug",
    "repo",
    "project_path",
    "project_key",
    "project_gid",
];

pub(super) struct Setup {
    pub(super) workflow: Arc<Workflow>,
    pub(super) workspaces: Workspaces,
    pub(super) hooks: Hooks,
    pub(super) tracker: Arc<dyn Tracker>,
    pub(super) tracker_name: TrackerName,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) tools: Arc<ToolsFactory>,
    pub(super) secrets: Vec<Secret>,
    root: RootOptions,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("workflow", &self.workflow).finish_non_exhaustive()
    }
}

impl Setup {
    /// Opens the root and creates tracker, agent and hooks.
    pub(super) fn of(
        workflow: Arc<Workflow>,
        environment: &Environment,
        factories: &Factories,
        commands: &LazySpawner,
        data: &Path,
        tracker_name: TrackerName,
    ) -> Result<Self, StartError> {
        let config = conductor(&workflow)?;
        let tracker = (factories.tracker)(config).map_err(StartError::Tracker)?;
        let agent = (factories.agent)(config);
        let tools = Arc::clone(&factories.tools);
        let root = RootOptions::of(&workflow, environment);
        let workspaces = Workspaces::open_or_create(&root)?;
        let secrets = workflow.known_secrets();
        let hooks = workflow.config.hooks.clone();
        let hooks = HookSettings::new(hooks, environment, secrets.clone());
        let hooks = hooks.with(CARREL, commands.program()).with(CARREL_DATA, data);
        let sandbox = SandboxedHooks::new(environment, commands);
        let hooks = Hooks::new(hooks, commands.clone(), sandbox, CancellationToken::new());
        Ok(Self { workflow, workspaces, hooks, tracker, tracker_name, agent, tools, secrets, root })
    }

    pub(super) fn config(&self) -> &ConductorConfig {
        conductor(&self.workflow).expect("checked by `of`")
    }

    /// Opens the root of an existing workspace, which may be another than the configured one; `None` if
    /// that root does not exist any more.
    pub(super) fn workspaces_of(&self, workspace: &Path) -> Option<Workspaces> {
        let root = workspace.parent()?;
        if root == self.workspaces.path() {
            return Some(self.workspaces.clone());
        }
        let options = RootOptions { root: root.to_owned(), ..self.root.clone() };
        Workspaces::open_existing(&options).unwrap_or_else(|error| {
            let workspace = workspace.display();
            let error = carrel_domain::message_of(&error);
            warn!(%workspace, error, "The root of an earlier workspace cannot be opened");
            None
        })
    }
}

pub(super) fn conductor(workflow: &Workflow) -> Result<&ConductorConfig, StartError> {
    workflow.config.conductor.as_ref().ok_or(StartError::NoConductor)
}

/// Returns the scope of a tracker: its kind and the settings that identify its set of issues. One conductor
/// at a time works on a scope, and the journal is kept per scope.
pub fn scope_of(tracker: &TrackerConfig) -> String {
    let settings = &tracker.provider.settings;
    let mut scope = tracker.kind.as_str().to_owned();
    for value in
        SCOPE_SETTINGS.iter().filter_map(|name| settings.get(*name)).filter_map(Value::as_str)
    {
        scope.push(':');
        scope.push_str(value);
    }
    scope
}
