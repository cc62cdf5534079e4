//! The objects that follow from a workflow file: root, hooks, tracker, agent.
//!
//! A [`Setup`] is immutable. A reload creates another one, and each run keeps the one it started with, so
//! that its hooks, workspace root and tools do not change in the middle.

use std::path::Path;
use std::sync::Arc;

use carrel_agent::Agent;
use carrel_config::{ConductorConfig, TrackerConfig, Workflow};
use carrel_domain::Secret;
use carrel_tracker::Tracker;
use carrel_workspace::{Hooks, RootOptions, TrackerName, Workspaces};
use tracing::warn;

use super::start_error::StartError;
use super::{SnapshotFactory, ToolsFactory};

/// Provider settings that identify a set of issues.
const SCOPE_SETTINGS: &str =
    "base_url, endpoint, api_url, project_slug, repo, project_path, project_key, project_gid";

pub(super) struct Setup {
    pub(super) workflow: Arc<Workflow>,
    pub(super) workspaces: Workspaces,
    pub(super) hooks: Hooks,
    pub(super) tracker: Arc<dyn Tracker>,
    pub(super) tracker_name: TrackerName,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) tools: Arc<ToolsFactory>,
    pub(super) snapshots: Arc<SnapshotFactory>,
    pub(super) secrets: Vec<Secret>,
    pub(super) root: RootOptions,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("workflow", &self.workflow).finish_non_exhaustive()
    }
}

impl Setup {
    pub(super) fn config(&self) -> &ConductorConfig {
        conductor(&self.workflow).expect("checked when it was created")
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
    let names = SCOPE_SETTINGS.split(", ");
    for value in names.filter_map(|name| settings.get(name)?.as_str()) {
        scope.extend([":", value]);
    }
    scope
}
