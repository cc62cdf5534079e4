//! `/github` of a workspace.

use carrel_domain::WorkspaceId;
use carrel_wire::{CloneRequest, RepositoryList, RepositoryQuery, TaskAccepted};

use crate::client::WorkspaceClient;
use crate::error::Result;
use crate::workspaces::at;

impl WorkspaceClient {
    /// Returns a page of the repositories that a workspace can reach.
    pub async fn repositories(
        &self,
        workspace: WorkspaceId,
        request: &RepositoryQuery,
    ) -> Result<RepositoryList> {
        self.get(&at(workspace, "/github/repos"), request).await
    }

    /// Queues a task that clones a repository into `repos/`, or updates the clone that is there.
    pub async fn clone_repository(
        &self,
        workspace: WorkspaceId,
        request: &CloneRequest,
    ) -> Result<TaskAccepted> {
        self.post(&at(workspace, "/github/clone"), request).await
    }
}
