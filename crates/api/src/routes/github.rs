//! `/github` of a workspace.

use axum::extract::State;
use axum::http::HeaderMap;
use carrel_domain::WorkspaceId;
use carrel_service::{ServiceError, TaskRequest};
use serde::Deserialize;
use serde_json::json;

use crate::answer::{Answered, Failed, ok};
use crate::auth::Scope;
use crate::extract::{Id, Json, Who};
use crate::repeat;
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
    Json(asked, _): Json<CloneBody>,
) -> Answered {
    let workspace = api.workspace(&caller, Scope::Exec, Some(workspace)).await?.id;
    let branch = asked.branch.filter(|branch| !branch.trim().is_empty());
    let description = format!("Clone {}", asked.repo_url);
    let mut request: TaskRequest = serde_json::from_value(json!({ "steps": [{
        "action": "git_clone",
        "repo": asked.repo_url,
        "branch": branch,
        "timeout": 300,
        "description": description,
    }]}))
    .map_err(|error| Failed::field("body", &error.to_string()))?;
    request.idempotency_key = repeat::key(&headers)?;
    let submit = request.check(workspace, &api.inner.hosts).map_err(ServiceError::from)?;
    let receipt = api.inner.tasks.submit(submit, "clone").await?;
    Ok(ok(&accepted(&receipt.task, 1)))
}
