//! Carrel's own tools for the agents of issues.
//!
//! An agent cannot run them itself: no namespace can be made inside its sandbox. They run in the
//! conductor's process instead, each command in a cell of its own, with the limits that `carrel mcp` would
//! have in the same workspace. Their network is capped by the agent's, and secrets of the workflow file are
//! masked in what they return.

use std::sync::Arc;

use carrel_agent::{ToolCall, ToolResult, Tools};
use carrel_conductor::drive::{ToolsFactory, ToolsRequest};
use carrel_config::{ConductorConfig, Workflow};
use carrel_domain::{NetworkRequest, WorkspaceAccess, message_of};
use carrel_mcp::{reply_for_client, tool_for_one_workspace};
use carrel_runner::{Runner, WorkspaceHandle};
use carrel_tools::{
    CallOptions, CommandSettings, GitOptions, Interface, NamedWorkspace, Progress, Registry,
    Secrets, Session, SnapshotStores, Toolbox, ToolboxOptions, WorkspaceEntry, Workspaces,
};
use carrel_traces::TraceParent;
use carrel_workspace::Workspace;
use futures_util::FutureExt as _;
use serde_json::Value;
use tracing::warn;

use crate::sandbox;
use crate::toolbox::UNNAMED;

/// Returns the factory of tools for agents.
pub(super) fn factory(stores: &Arc<SnapshotStores>) -> Arc<ToolsFactory> {
    let stores = Arc::clone(stores);
    Arc::new(move |request: ToolsRequest| {
        let config = request.workflow.config.conductor.as_ref();
        let config = config.filter(|config| !config.agent.tools.is_empty()).cloned();
        let Some(config) = config else {
            return async { Ok(None) }.boxed();
        };
        let stores = Arc::clone(&stores);
        let made = async move {
            let tools = AgentTools::make(request, &config, stores).await?;
            Ok(Some(Arc::new(tools) as Arc<dyn Tools>))
        };
        made.boxed()
    })
}

#[derive(Debug)]
struct AgentTools {
    registry: Registry,
    session: Arc<Session>,
    command_settings: CommandSettings,
    runner: Arc<Runner>,
    /// The span of the run: agents call from tasks that know none.
    under: Option<TraceParent>,
}

impl AgentTools {
    async fn make(
        request: ToolsRequest,
        config: &ConductorConfig,
        snapshots: Arc<SnapshotStores>,
    ) -> Result<Self, String> {
        let ToolsRequest { workflow, runner, workspace } = request;
        let handle = runner.open(&workspace).await.map_err(|error| message_of(&error))?;
        // What the agent changes later is not to be trusted, whichever way it is changed.
        runner.record_trust(&handle).await.map_err(|error| message_of(&error))?;
        let access = sandbox::access(carrel_agent::reads_only(config));
        let workspace = named(&workspace, access, handle);
        let name = workspace.name().to_owned();
        let environment = runner.environment();
        let toolbox = Toolbox::new(ToolboxOptions {
            workspaces: Workspaces::new(vec![workspace]).map_err(|error| message_of(&error))?,
            runner: Runner::clone(&runner),
            secrets: Secrets::new(environment, None),
            access,
            network: NetworkRequest::default(),
            git: GitOptions::new(environment),
            reply_bytes: carrel_tools::DEFAULT_REPLY_BYTES,
            symbols: Arc::default(),
            snapshots,
        });
        let registry = Registry::new(toolbox, config.agent.tools).without_operator_tools();
        let session = Session::new(format!("agent:{name}"));
        let (command_settings, under) =
            (command_settings(&workflow, config), carrel_traces::current_context());
        Ok(Self { registry, session, command_settings, runner, under })
    }
}

/// Returns the workspace of a run as tools see it.
pub(super) fn named(
    workspace: &Workspace,
    access: WorkspaceAccess,
    handle: WorkspaceHandle,
) -> NamedWorkspace {
    let key = workspace.record().key.to_string();
    let name = if carrel_tools::is_workspace_name(&key) { key } else { UNNAMED.to_owned() };
    let path = handle.path().to_owned();
    NamedWorkspace::new(WorkspaceEntry { name, path, access }, handle)
}

/// Caps the network of tools at the agent's, and masks the workflow file's secrets.
fn command_settings(workflow: &Workflow, config: &ConductorConfig) -> CommandSettings {
    let secrets = workflow.known_secrets().into_iter();
    CommandSettings {
        network: NetworkRequest { agent: Some(config.agent.network), ..NetworkRequest::default() },
        masked: secrets.map(|secret| ("workflow".to_owned(), secret)).collect(),
        ..CommandSettings::default()
    }
}

/// Passes the progress of a tool on to the agent that asked for it.
struct AgentProgress(carrel_agent::Progress);

impl Progress for AgentProgress {
    fn report(&self, done: f64, total: Option<f64>, message: &str) {
        self.0.report(done, total, message);
    }
}

#[async_trait::async_trait]
impl Tools for AgentTools {
    fn list(&self) -> Vec<Value> {
        self.registry.definitions().map(tool_for_one_workspace).collect()
    }

    async fn call(&self, call: ToolCall) -> ToolResult {
        let ToolCall { name, arguments, cancel, client, progress } = call;
        let Value::Object(arguments) = arguments else {
            return ToolResult::failed(format!("the arguments of {name} have to be an object"));
        };
        let (command_settings, under) = (self.command_settings.clone(), self.under);
        let progress =
            progress.map(|progress| Arc::new(AgentProgress(progress)) as Arc<dyn Progress>);
        let options = CallOptions {
            cancel,
            progress,
            command_settings,
            under,
            ..CallOptions::new(Interface::Agent)
        };
        let answer = self.registry.call(&self.session, &name, arguments, options).await;
        let is_error = answer.is_error;
        let (content, facts) = reply_for_client(client.as_deref(), answer);
        ToolResult { content, facts, is_error }
    }

    async fn close(&self) {
        let toolbox = self.registry.toolbox();
        toolbox.end_processes().await;
        for workspace in toolbox.workspaces.iter() {
            if let Err(error) = self.runner.release(workspace.handle()).await {
                warn!(error = message_of(&error), "could not clear up after the tools of an agent");
            }
        }
    }
}
