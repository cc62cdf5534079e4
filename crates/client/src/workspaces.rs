//! `/api/workspaces` and `/api/tools`.

use carrel_domain::WorkspaceId;
use carrel_wire::{
    NewWorkspace, ToolArguments, ToolList, ToolReply, Workspace, WorkspaceList, WorkspaceQuery,
    WorkspaceUsage,
};
use hyper::Method;

use crate::client::{ApiRequest, WorkspaceClient};
use crate::commands::LONGEST_COMMAND;
use crate::error::Result;
use crate::server_url::percent_encode;

pub(crate) fn at(workspace: WorkspaceId, rest: &str) -> String {
    format!("/api/workspaces/{workspace}{rest}")
}

impl WorkspaceClient {
    /// Creates a workspace.
    pub async fn create_workspace(&self, request: &NewWorkspace) -> Result<Workspace> {
        self.post("/api/workspaces", request).await
    }

    /// Returns the first page of the workspaces that the token covers, after the given one.
    pub async fn workspaces(&self, after: Option<WorkspaceId>) -> Result<WorkspaceList> {
        self.get("/api/workspaces", &WorkspaceQuery { after, limit: None }).await
    }

    /// Returns a workspace. One that the token names and that does not exist is created.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<Workspace> {
        self.get(&at(id, ""), &()).await
    }

    /// Returns the disk usage of a workspace.
    pub async fn usage(&self, id: WorkspaceId) -> Result<WorkspaceUsage> {
        self.get(&at(id, "/usage"), &()).await
    }

    /// Removes a workspace with its files and tasks.
    pub async fn remove_workspace(&self, id: WorkspaceId) -> Result<()> {
        self.send(ApiRequest::new(Method::DELETE, &at(id, ""))).await.map(drop)
    }

    /// Returns the tools that can be called, with their schemas.
    pub async fn tools(&self) -> Result<ToolList> {
        self.get("/api/tools", &()).await
    }

    /// Calls a tool in a workspace.
    pub async fn call_tool(
        &self,
        workspace: WorkspaceId,
        name: &str,
        arguments: &ToolArguments,
    ) -> Result<ToolReply> {
        let path = at(workspace, &format!("/tools/{}", percent_encode(name)));
        self.work(&path, arguments, LONGEST_COMMAND).await
    }
}
