//! Repositories on GitHub.

use carrel_domain::WorkspaceId;
use serde_json::json;

use crate::answers::{Accepted, RepositoryList};
use crate::client::WorkspaceClient;
use crate::error::ClientError;
use crate::workspaces::at;

impl WorkspaceClient {
    /// Lists a part of the repositories that a workspace can reach; the first part is 1.
    pub async fn repositories(
        &self,
        workspace: WorkspaceId,
        page: u32,
        per_page: u32,
    ) -> Result<RepositoryList, ClientError> {
        let query = [("page", page.to_string()), ("per_page", per_page.to_string())];
        self.get(&at(workspace, "/github/repos"), &query).await
    }

    /// Queues a task that brings a repository into the workspace.
    pub async fn clone_repository(
        &self,
        workspace: WorkspaceId,
        url: &str,
        branch: Option<&str>,
    ) -> Result<Accepted, ClientError> {
        let body = json!({ "repo_url": url, "branch": branch });
        self.post(&at(workspace, "/github/clone"), &body).await
    }
}
