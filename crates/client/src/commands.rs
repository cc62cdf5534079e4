//! Commands and git.

use std::time::Duration;

use carrel_domain::{Network, WorkspaceId};
use hyper::Method;
use serde::Serialize;

use crate::answers::CommandReply;
use crate::client::{ApiRequest, WorkspaceClient};
use crate::error::ClientError;
use crate::limits::RESPONSE_TIMEOUT;
use crate::workspaces::at;

/// The longest that work over HTTP takes, which is five minutes, and the time around it.
pub(crate) const LONGEST_COMMAND: Duration = Duration::from_mins(6);

/// A command that is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExecRequest {
    /// The command line.
    pub command: String,
    /// Where it starts, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Seconds until it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// What it can reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// What git is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GitRequest {
    /// The operation, such as `status`.
    pub operation: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Where, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

impl WorkspaceClient {
    /// Runs a command line to its end.
    pub async fn exec(
        &self,
        workspace: WorkspaceId,
        command: &ExecRequest,
    ) -> Result<CommandReply, ClientError> {
        let within = command.timeout.map_or(LONGEST_COMMAND, |seconds| {
            Duration::from_secs(seconds).saturating_add(RESPONSE_TIMEOUT)
        });
        self.work(&at(workspace, "/exec"), command, within).await
    }

    /// Runs git.
    pub async fn git(
        &self,
        workspace: WorkspaceId,
        git: &GitRequest,
    ) -> Result<CommandReply, ClientError> {
        self.work(&at(workspace, "/git"), git, LONGEST_COMMAND).await
    }

    async fn work(
        &self,
        path: &str,
        body: &impl Serialize,
        within: Duration,
    ) -> Result<CommandReply, ClientError> {
        self.json(ApiRequest { within, ..ApiRequest::new(Method::POST, path).with(body) }).await
    }
}
