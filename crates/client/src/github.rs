//! Repositories on GitHub.

use carrel_domain::WorkspaceId;
use serde_json::json;

use crate::answers::{Accepted, RepositoryList};
use crate::client::WorkspaceClient;
use crate::error::ClientError;
use crate::workspaces::at;

/// Which repositories are to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryQuery {
    /// Which part of the list, counted from 1.
    pub page: Option<u32>,
    /// How many are in a part, from 1 to 100.
    pub per_page: Option<u32>,
    /// Whose repositories.
    pub owner: Option<String>,
    /// The stored credential with a token for GitHub.
    pub credential: Option<String>,
}

impl WorkspaceClient {
    /// Lists a part of the repositories that a workspace can reach.
    pub async fn repositories(
        &self,
        workspace: WorkspaceId,
        request: &RepositoryQuery,
    ) -> Result<RepositoryList, ClientError> {
        let pairs = [
            ("page", request.page.map(|page| page.to_string())),
            ("per_page", request.per_page.map(|size| size.to_string())),
            ("owner", request.owner.clone()),
            ("credential", request.credential.clone()),
        ];
        let query: Vec<_> =
            pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        self.get(&at(workspace, "/github/repos"), &query).await
    }

    /// Queues a task that brings a repository into the workspace, with a stored credential if one is
    /// named.
    pub async fn clone_repository(
        &self,
        workspace: WorkspaceId,
        url: &str,
        branch: Option<&str>,
        credential: Option<&str>,
    ) -> Result<Accepted, ClientError> {
        let body = json!({ "repo_url": url, "branch": branch, "credential": credential });
        self.post(&at(workspace, "/github/clone"), &body).await
    }
}
