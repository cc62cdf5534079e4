//! `/github` of a workspace.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use carrel_domain::WorkspaceId;
use carrel_service::{ServiceError, TaskRequest};
use serde::Deserialize;
use serde_json::json;

use crate::answer::{Answered, Failed};
use crate::auth::Scope;
use crate::extract::{Id, Json, Who};
use crate::repeat::Change;
use crate::routes::tasks::accepted;
use crate::state::Api;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CloneBody {
    repo_url: String,
    branch: Option<String>,
}

/// Queues a task that brings a repository.
pub(super) async fn clone(
    State(api): State<Api>,
    Who(caller): Who,
    Id(workspace): Id<WorkspaceId>,
    headers: HeaderMap,
    Json(asked, body): Json<CloneBody>,
) -> Answered {
    let workspace = api.workspace(&caller, Scope::Exec, Some(workspace)).await?.id;
    let branch = asked.branch.filter(|branch| !branch.trim().is_empty());
    let description = format!("Clone {}", asked.repo_url);
    let request: TaskRequest = serde_json::from_value(json!({ "steps": [{
        "action": "git_clone",
        "repo": asked.repo_url,
        "branch": branch,
        "timeout": 300,
        "description": description,
    }]}))
    .map_err(|error| Failed::field("body", &error.to_string()))?;
    let submit = request.check(workspace, &api.inner.hosts).map_err(ServiceError::from)?;
    let change = Change {
        api: &api,
        workspace: Some(workspace),
        route: "clone",
        headers: &headers,
        body: &body,
    };
    let work = async {
        let receipt = api.inner.tasks.submit(submit, "clone").await?;
        Ok((StatusCode::OK, accepted(&receipt.task, 1)))
    };
    change.once(work).await
}
