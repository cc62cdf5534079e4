//! `/github` of a workspace.

use axum::extract::State;
use axum::http::HeaderMap;
use carrel_domain::{Code, WorkspaceId};
use carrel_service::repository::{ADDRESS_PATTERN, BRANCH_PATTERN};
use carrel_service::{ServiceError, TaskRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::answer::{Answered, Failed, ok};
use crate::auth::Scope;
use crate::extract::{Id, Json, Who};
use crate::openapi::{Header, Route, STORE};
use crate::repeat;
use crate::routes::tasks::Accepted;
use crate::state::Api;

/// Every route of this module.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/workspaces/{workspace_id}/github/clone", clone)
            .called("clone_repository", "Clone a repository")
            .says("Queues a task that brings a repository into `repos/`, or up to date if it is there.")
            .needs(Scope::Exec)
            .header(Header::IdempotencyKey)
            .body::<CloneBody>()
            .json::<Accepted>(200, "The task is queued.")
            .fails(STORE)
            .fails(&[Code::WorkspaceNotFound, Code::Overloaded]),
    ]
}

/// A repository that is to be brought.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CloneBody {
    /// Its address: `https`, an allowed machine, an owner and a name.
    #[schemars(regex(pattern = ADDRESS_PATTERN))]
    repo_url: String,
    /// The branch; the usual one if none.
    #[schemars(length(max = 255), regex(pattern = BRANCH_PATTERN))]
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
    Ok(ok(&Accepted::new(&receipt.task, 1)))
}
