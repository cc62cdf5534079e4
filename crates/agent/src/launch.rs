//! Starting an agent in its workspace, under its own plan.
//!
//! An agent runs behind the same walls as any command, with what it needs besides: the network, its own
//! program and its credentials, and what the workflow file lists. It has no deadline of its own; whoever
//! takes turns with it decides how long they may last.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use carrel_config::{ConductorConfig, environment as variable, withheld_variables};
use carrel_domain::{Network, WorkspaceAccess, message_of};
use carrel_runner::{CommandForm, Grants, LimitRequest, RunRequest, Runner, WorkspaceHandle};
use carrel_workspace::Workspace;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::warn;

use crate::OpenRequest;
use crate::credentials;
use crate::failure::{AgentFailure, FailureKind};
use crate::process::{Input, Process};
use crate::program_lookup;
use crate::reporter::Reporter;
use crate::session_tools::SessionTools;
use crate::tool_relay::ToolSocket;

/// Says to agents that somebody else confines them, so that they need not: ours, and what Claude Code and
/// Gemini CLI look at.
const INSIDE_WALLS: [(&str, &str); 3] =
    [("CARREL_SANDBOX", "1"), ("IS_SANDBOX", "1"), ("SANDBOX", "carrel")];

/// How long the disk has when an agent has left.
const LEAVE_PATIENCE: Duration = Duration::from_secs(20);

/// What every agent is started with, whatever its kind.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    command: String,
    network: Network,
    /// Names of the operator's variables that it sees.
    passed: Vec<String>,
    /// Names of variables that it must not have, whoever sets them.
    removed: Vec<String>,
    grants: Grants,
    access: WorkspaceAccess,
}

/// A workspace that an agent works in.
#[derive(Debug)]
pub(crate) struct AgentWorkspace {
    runner: Arc<Runner>,
    workspace: Arc<Workspace>,
    desk: Arc<WorkspaceHandle>,
    environment: Vec<(String, String)>,
    /// Tools for an agent that takes them over MCP.
    offer: Option<ToolSocket>,
}

impl AgentWorkspace {
    /// Looks at the workspace a last time and takes it into use.
    pub(crate) async fn open(opening: &OpenRequest) -> Result<Self, AgentFailure> {
        let desk = WorkspaceHandle::open(&opening.workspace).await;
        let desk =
            desk.map_err(|error| AgentFailure::new(FailureKind::Launch, message_of(&error)))?;
        Ok(Self {
            runner: Arc::clone(&opening.runner),
            workspace: Arc::clone(&opening.workspace),
            desk: Arc::new(desk),
            environment: opening.environment.clone(),
            offer: None,
        })
    }

    /// Offers the tools over MCP, if there are any.
    pub(crate) fn offering(mut self, opening: &OpenRequest) -> Self {
        let tools = SessionTools::new(Arc::clone(&opening.tools), &opening.stop);
        if tools.list().is_empty() {
            return self;
        }
        let temporary = self.runner.environment().temp_dir();
        let reporter = Reporter::new(opening.events.clone());
        match ToolSocket::open(&temporary, tools, reporter) {
            Ok(offer) => self.offer = Some(offer),
            Err(error) => warn!(
                %error,
                directory = %temporary.display(),
                "the agent works without tools: no socket can be made in the directory for temporary files"
            ),
        }
        self
    }

    /// Describes the servers that an agent gets its tools from, as editors do.
    pub(crate) fn servers(&self) -> Vec<Value> {
        let describe = |offer: &ToolSocket| {
            let socket = offer.socket();
            let variable =
                json!({ "name": variable::CARREL_TOOLS, "value": socket.to_string_lossy() });
            json!({
                "name": "carrel",
                "command": self.runner.program().to_string_lossy(),
                "args": ["mcp"],
                "env": [variable],
            })
        };
        self.offer.iter().map(describe).collect()
    }

    /// Returns where the workspace is.
    pub(crate) fn path(&self) -> &Path {
        self.desk.path()
    }

    /// Clears up after the agent, and notes that it has left.
    pub(crate) async fn leave(self) {
        if let Some(offer) = self.offer {
            offer.close().await;
        }
        let leaving = async {
            if let Err(error) = self.runner.leave(&self.desk).await {
                warn!(error = message_of(&error), "could not clear up after an agent");
            }
            if let Err(error) = self.workspace.touch().await {
                warn!(error = message_of(&error), "could not note that a workspace has changed");
            }
        };
        if timeout(LEAVE_PATIENCE, leaving).await.is_err() {
            warn!("the disk is too slow to clear up after an agent");
        }
    }
}

impl Launcher {
    /// Takes what a workflow file says about its agent.
    pub(crate) fn new(config: &ConductorConfig, command: &str) -> Self {
        let agent = &config.agent;
        let withheld = withheld_variables().map(str::to_owned);
        Self {
            command: command.to_owned(),
            network: match agent.network {
                carrel_config::Network::None => Network::None,
                carrel_config::Network::Loopback => Network::Loopback,
                carrel_config::Network::Full => Network::Full,
            },
            passed: agent.env.clone(),
            removed: withheld.chain(config.secret_variables.iter().cloned()).collect(),
            grants: Grants { readable: agent.readable.clone(), writable: agent.writable.clone() },
            access: WorkspaceAccess::ReadWrite,
        }
    }

    /// Lets the agent leave its workspace as it is.
    pub(crate) fn reading_only(self) -> Self {
        Self { access: WorkspaceAccess::ReadOnly, ..self }
    }

    /// Starts the agent.
    pub(crate) async fn start(
        &self,
        site: &AgentWorkspace,
        input: Input,
    ) -> Result<Process, AgentFailure> {
        let request = self.request(site);
        Process::start(Arc::clone(&site.runner), Arc::clone(&site.desk), request, input).await
    }

    fn request(&self, site: &AgentWorkspace) -> RunRequest {
        let operator = site.runner.environment();
        let found = program_lookup::find(&self.command, &site.runner);
        let own = credentials::of(&self.command, operator);
        let mut grants = self.grants.clone();
        grants.readable.extend(found.readable);
        grants.readable.extend(own.readable);
        grants.writable.extend(own.writable);
        if let Some(offer) = &site.offer {
            let program = site.runner.program().to_owned();
            grants.readable.extend([offer.directory().to_owned(), program]);
        }
        let passed = self.passed.iter().filter_map(|name| Some((name, operator.get(name)?)));
        let mut environment: Vec<(OsString, OsString)> =
            passed.map(|(name, value)| (name.into(), value.to_owned())).collect();
        environment.extend(own.variables);
        environment.extend(Self::told(site).map(|(name, value)| (name.into(), value.into())));
        let last = site.offer.as_ref().and_then(|_| site.runner.program().parent());
        let line = self.line(&found.command, &found.path, last);
        let argv = ["bash", "-lc", "--", &line].map(OsString::from).to_vec();
        RunRequest {
            network: Some(self.network),
            access: self.access,
            grants,
            environment,
            limits: LimitRequest { lifetime: Some(Duration::MAX), ..LimitRequest::default() },
            ..RunRequest::new(CommandForm::Argv(argv))
        }
    }

    /// Returns what the agent is told about its place.
    fn told(site: &AgentWorkspace) -> impl Iterator<Item = (String, String)> {
        let walls = INSIDE_WALLS.iter().filter(|_| site.runner.is_sandboxed());
        let walls = walls.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        // Keeps git from taking a repository around the root for the workspace's own.
        let root = site.path().parent().map(|root| root.to_string_lossy().into_owned());
        let ceiling = root.map(|root| ("GIT_CEILING_DIRECTORIES".to_owned(), root));
        let path = site.path().to_string_lossy().into_owned();
        let place = [("CARREL_WORKSPACE".to_owned(), path)];
        let socket = site.offer.as_ref().map(|offer| offer.socket().to_string_lossy().into_owned());
        let tools = socket.map(|socket| (variable::CARREL_TOOLS.to_owned(), socket));
        walls.chain(ceiling).chain(place).chain(tools).chain(site.environment.iter().cloned())
    }

    /// Returns the line for a login shell. What a profile exports comes before it, and so does the `PATH`
    /// that a profile sets.
    fn line(&self, command: &str, first: &[PathBuf], last: Option<&Path>) -> String {
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
