//! The start of an agent in its workspace.
//!
//! An agent runs in the same sandbox as any command, with additional grants: the network, its own program
//! and credentials, and the paths and variables that the workflow file lists. It has no deadline; the
//! protocol that runs its turns limits them. It is started by a login shell, so that the operator's profile
//! sets its `PATH`; variables that are Carrel's secrets are removed after the profile ran.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_audit::{AuditedCall, Interface, Mask};
use carrel_config::{ConductorConfig, environment as variable, withheld_variables};
use carrel_domain::{Network, NetworkRequest, WorkspaceAccess, message_of};
use carrel_runner::{CommandForm, Grants, LimitRequest, RunRequest, Runner, WorkspaceHandle};
use carrel_workspace::Workspace;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::warn;

use crate::OpenRequest;
use crate::credentials;
use crate::failure::{AgentFailure, FailureKind, Result};
use crate::process::{Input, Process};
use crate::program_lookup;
use crate::reporter::Reporter;
use crate::session_tools::SessionTools;
use crate::tool_relay::ToolSocket;

/// Variables that tell an agent that it runs in a sandbox: Carrel's own, and those of Claude Code and
/// Gemini CLI.
const SANDBOX_VARIABLES: [(&str, &str); 3] =
    [("CARREL_SANDBOX", "1"), ("IS_SANDBOX", "1"), ("SANDBOX", "carrel")];

/// The time for the cleanup of a workspace after its agent has ended.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The start parameters of an agent, the same for every protocol.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    command: String,
    network: Network,
    /// Names of the operator's variables that are passed on.
    passed: Vec<String>,
    /// Names of variables that are unset even if a profile sets them.
    removed: Vec<String>,
    grants: Grants,
    access: WorkspaceAccess,
}

#[derive(Debug)]
pub(crate) struct AgentWorkspace {
    runner: Arc<Runner>,
    workspace: Arc<Workspace>,
    handle: Arc<WorkspaceHandle>,
    environment: Vec<(String, String)>,
    /// The socket of the tools, for agents that reach them over MCP.
    tool_socket: Option<ToolSocket>,
}

impl AgentWorkspace {
    pub(crate) async fn open(request: &OpenRequest) -> Result<Self> {
        let handle = request.runner.open(&request.workspace).await;
        let handle =
            handle.map_err(|error| AgentFailure::new(FailureKind::Launch, message_of(&error)))?;
        Ok(Self {
            runner: Arc::clone(&request.runner),
            workspace: Arc::clone(&request.workspace),
            handle: Arc::new(handle),
            environment: request.environment.clone(),
            tool_socket: None,
        })
    }

    /// Listens for tool calls on a socket, if there are tools. Without a socket the agent works without
    /// tools.
    pub(crate) fn with_tools(mut self, request: &OpenRequest) -> Self {
        let tools = SessionTools::new(Arc::clone(&request.tools), &request.stop);
        if tools.list.is_empty() {
            return self;
        }
        let temporary = self.runner.environment().temp_dir();
        let reporter = Reporter(request.events.clone());
        match ToolSocket::open(&temporary, tools, reporter) {
            Ok(socket) => self.tool_socket = Some(socket),
            Err(error) => warn!(
                %error,
                directory = %temporary.display(),
                "the agent works without tools: no socket can be created in the temporary directory"
            ),
        }
        self
    }

    /// Returns the MCP server definition of the tool relay, in the format of editors' settings.
    pub(crate) fn mcp_servers(&self) -> Vec<Value> {
        let describe = |socket: &ToolSocket| {
            let path = socket.path();
            let variable =
                json!({ "name": variable::CARREL_TOOLS, "value": path.to_string_lossy() });
            json!({
                "name": "carrel",
                "command": self.runner.program().to_string_lossy(),
                "args": ["mcp"],
                "env": [variable],
            })
        };
        self.tool_socket.iter().map(describe).collect()
    }

    pub(crate) fn path(&self) -> &Path {
        self.handle.path()
    }

    /// Closes the tool socket, cleans up after the agent and updates the workspace's record.
    pub(crate) async fn leave(self) {
        if let Some(socket) = self.tool_socket {
            socket.close().await;
        }
        let leaving = async {
            if let Err(error) = self.runner.release(&self.handle).await {
                warn!(error = message_of(&error), "could not clean up after an agent");
            }
            if let Err(error) = self.workspace.touch().await {
                warn!(error = message_of(&error), "could not update the record of a workspace");
            }
        };
        if timeout(LEAVE_TIMEOUT, leaving).await.is_err() {
            warn!("the cleanup after an agent took too long");
        }
    }
}

impl Launcher {
    pub(crate) fn new(config: &ConductorConfig, command: &str) -> Self {
        let agent = &config.agent;
        let withheld = withheld_variables().map(str::to_owned);
        Self {
            command: command.to_owned(),
            network: agent.network,
            passed: agent.env.clone(),
            removed: withheld.chain(config.secret_variables.iter().cloned()).collect(),
            grants: Grants { readable: agent.readable.clone(), writable: agent.writable.clone() },
            access: WorkspaceAccess::ReadWrite,
        }
    }

    pub(crate) fn reading_only(self) -> Self {
        Self { access: WorkspaceAccess::ReadOnly, ..self }
    }

    pub(crate) async fn start(&self, workspace: &AgentWorkspace, input: Input) -> Result<Process> {
        let request = self.request(workspace);
        Process::start(Arc::clone(&workspace.runner), Arc::clone(&workspace.handle), request, input)
            .await
    }

    fn request(&self, workspace: &AgentWorkspace) -> RunRequest {
        let operator = workspace.runner.environment();
        let found = program_lookup::find(&self.command, &workspace.runner);
        let credentials = credentials::of(&self.command, operator);
        let mut grants = self.grants.clone();
        grants.readable.extend(found.readable);
        grants.readable.extend(credentials.readable);
        grants.writable.extend(credentials.writable);
        if let Some(socket) = &workspace.tool_socket {
            let program = workspace.runner.program().to_owned();
            grants.readable.extend([socket.directory.clone(), program]);
        }
        let passed = self.passed.iter().filter_map(|name| Some((name, operator.get(name)?)));
        let mut environment: Vec<(OsString, OsString)> =
            passed.map(|(name, value)| (name.into(), value.to_owned())).collect();
        environment.extend(credentials.variables);
        environment.extend(
            Self::described_environment(workspace).map(|(name, value)| (name.into(), value.into())),
        );
        let last = workspace.tool_socket.as_ref().and_then(|_| workspace.runner.program().parent());
        let line = self.shell_script(&found.command, &found.path, last);
        let argv = ["bash", "-lc", "--", &line].map(OsString::from).to_vec();
        RunRequest {
            // The workflow file is the operator's, as a command line is.
            network: NetworkRequest {
                agent: Some(self.network),
                ..NetworkRequest::of(self.network)
            },
            access: self.access,
            grants,
            environment,
            audited_call: Some(Self::audited_call(workspace)),
            limits: LimitRequest { lifetime: Some(Duration::MAX), ..LimitRequest::default() },
            ..RunRequest::new(CommandForm::Argv(argv))
        }
    }

    fn audited_call(workspace: &AgentWorkspace) -> AuditedCall {
        let key = workspace.workspace.record().key.to_string();
        AuditedCall {
            session: format!("agent:{key}"),
            interface: Interface::Agent,
            tool: "agent".to_owned(),
            workspace: Some(key),
            // Secrets of the workflow file never reach an agent.
            mask: Mask::default(),
        }
    }

    fn described_environment(workspace: &AgentWorkspace) -> impl Iterator<Item = (String, String)> {
        let sandbox = SANDBOX_VARIABLES.iter().filter(|_| workspace.runner.is_sandboxed());
        let sandbox = sandbox.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        // Keeps git from taking a repository around the root for the workspace's own.
        let root = workspace.path().parent().map(|root| root.to_string_lossy().into_owned());
        let ceiling = root.map(|root| ("GIT_CEILING_DIRECTORIES".to_owned(), root));
        let path = workspace.path().to_string_lossy().into_owned();
        let own = [("CARREL_WORKSPACE".to_owned(), path)];
        let socket = workspace
            .tool_socket
            .as_ref()
            .map(|socket| socket.path().to_string_lossy().into_owned());
        let tools = socket.map(|socket| (variable::CARREL_TOOLS.to_owned(), socket));
        sandbox.chain(ceiling).chain(own).chain(tools).chain(workspace.environment.iter().cloned())
    }

    /// Returns the script for the login shell. It runs after the profile, so it can unset exported secrets
    /// and extend the `PATH`.
    fn shell_script(&self, command: &str, first: &[PathBuf], last: Option<&Path>) -> String {
        let names = self.removed.join(" ");
        let prefixes = [variable::SECRET_PREFIX, variable::GIT_TOKEN_PREFIX];
        let prefixes = prefixes.map(|prefix| format!("\"${{!{prefix}@}}\"")).join(" ");
        let first = first.iter().map(|path| format!("{}:", quoted(path)));
        let last = last.map(|path| format!(":{}", quoted(path))).unwrap_or_default();
        let path = format!("PATH={}$PATH{last}", first.collect::<Vec<_>>().concat());
        format!("unset -v {names} {prefixes} || exit 126\n{path}\n{command}")
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}
