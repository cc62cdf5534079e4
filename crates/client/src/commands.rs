//! `/exec` and `/git` of a workspace.

use std::time::Duration;

use carrel_domain::WorkspaceId;
use carrel_wire::{CommandReply, ExecRequest, GitReply, GitRequest};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{ApiRequest, WorkspaceClient};
use crate::error::Result;
use crate::limits::RESPONSE_TIMEOUT;
use crate::workspaces::at;

/// The response deadline of requests that run something: the longest command takes five minutes, and queueing
/// for a permit and ending it take part of another.
pub(crate) const LONGEST_COMMAND: Duration = Duration::from_mins(6);

impl WorkspaceClient {
    /// Runs a command line and waits for its end. A command that fails is a reply; see `success`.
    pub async fn exec(
        &self,
        workspace: WorkspaceId,
        command: &ExecRequest,
    ) -> Result<CommandReply> {
        let within = command.timeout.map_or(LONGEST_COMMAND, |seconds| {
            Duration::from_secs(seconds).saturating_add(RESPONSE_TIMEOUT)
        });
        self.work(&at(workspace, "/exec"), command, within).await
    }

    /// Runs a git operation and waits for its end.
    pub async fn git(&self, workspace: WorkspaceId, git: &GitRequest) -> Result<GitReply> {
        self.work(&at(workspace, "/git"), git, LONGEST_COMMAND).await
    }

    /// Sends a request that runs something, and waits for its end.
    pub(crate) async fn work<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        within: Duration,
    ) -> Result<T> {
        self.json(ApiRequest { within, ..ApiRequest::new(Method::POST, path).with(body) }).await
    }
}
