//! `/github` of a workspace.

use axum::extract::State;
use axum::http::HeaderMap;
use carrel_domain::{Code, Coded as _, Secret, WorkspaceId};
use carrel_github::{GitHubError, MAX_PER_PAGE, PageRequest, Repository, TokenRequest};
use carrel_service::credentials::{CREDENTIAL_NAME, check_credential_name};
use carrel_service::repository::{ADDRESS_PATTERN, BRANCH_PATTERN};
use carrel_service::{ServiceError, TaskRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::auth::Scope;
use crate::extract::{Authenticated, Json, PathId, QueryParams};
use crate::idempotency;
use crate::openapi::{Header, Route, STORE};
use crate::response::{ErrorResponse, RouteResult, ok};
use crate::routes::tasks::Accepted;
use crate::state::Api;

/// Every route of this module.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workspaces/{workspace_id}/github/repos", repositories)
            .name("list_repositories", "List repositories on GitHub")
            .description(
                "Lists the repositories that the workspace can reach, with the token in the request, with a \
                 stored credential, or with what the operator has set up.",
            )
            .scope(Scope::Read)
            .header(Header::GitHubToken)
            .query::<RepositoryParams>()
            .json::<RepositoryList>(200, "A part of the list.")
            .errors(STORE)
            .errors(&[
                Code::WorkspaceNotFound,
                Code::Overloaded,
                Code::SecretUnknown,
                Code::NotConfigured,
                Code::NotConnected,
                Code::UpstreamFailed,
                Code::UpstreamLimited,
            ]),
        Route::post("/api/workspaces/{workspace_id}/github/clone", clone)
            .name("clone_repository", "Clone a repository")
            .description("Queues a task that brings a repository into `repos/`, or up to date if it is there.")
            .scope(Scope::Exec)
            .header(Header::IdempotencyKey)
            .body::<CloneBody>()
            .json::<Accepted>(200, "The task is queued.")
            .errors(STORE)
            .errors(&[Code::WorkspaceNotFound, Code::Overloaded, Code::QueueUnavailable]),
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
    /// The stored credential with a token for the machine, if it needs one.
    #[schemars(regex(pattern = CREDENTIAL_NAME))]
    credential: Option<String>,
}

/// Queues a task that brings a repository.
pub(super) async fn clone(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    headers: HeaderMap,
    Json(asked, _): Json<CloneBody>,
) -> RouteResult {
    let workspace = api.workspace(&caller, Scope::Exec, Some(workspace)).await?.id;
    let branch = asked.branch.filter(|branch| !branch.trim().is_empty());
    let description = format!("Clone {}", asked.repo_url);
    let mut request: TaskRequest = serde_json::from_value(json!({ "steps": [{
        "action": "git_clone",
        "repo": asked.repo_url,
        "branch": branch,
        "timeout": 300,
        "credentials": asked.credential.as_slice(),
        "description": description,
    }]}))
    .map_err(|error| ErrorResponse::field("body", &error.to_string()))?;
    request.idempotency_key = idempotency::key(&headers)?;
    let submit = request.check(workspace, &api.inner.hosts).map_err(ServiceError::from)?;
    let receipt = api.inner.tasks.submit(submit, "clone").await?;
    Ok(ok(&Accepted::new(&receipt.task, 1)))
}

/// The header with a token for GitHub.
const TOKEN: &str = "x-github-token";

/// How many repositories a part of the list has, if the request does not say.
const USUAL_PER_PAGE: u32 = 30;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RepositoryParams {
    /// IssueQuery part of the list, counted from 1.
    #[schemars(range(min = 1, max = u32::MAX), extend("default" = 1))]
    page: Option<u32>,
    /// How many are in a part.
    #[schemars(range(min = 1, max = MAX_PER_PAGE), extend("default" = USUAL_PER_PAGE))]
    per_page: Option<u32>,
    /// Whose repositories, where an app of the operator knows those of several.
    #[schemars(length(min = 1, max = 100))]
    owner: Option<String>,
    /// The stored credential with a token for GitHub.
    #[schemars(regex(pattern = CREDENTIAL_NAME))]
    credential: Option<String>,
}

/// A part of the repositories that a workspace can reach.
#[derive(Serialize, JsonSchema)]
struct RepositoryList {
    repos: Vec<Repository>,
    /// IssueQuery part it is, counted from 1.
    page: u32,
    /// How many are in a part; fewer mean that it is the last.
    per_page: u32,
}

/// Lists repositories.
pub(super) async fn repositories(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    headers: HeaderMap,
    QueryParams(params): QueryParams<RepositoryParams>,
) -> RouteResult {
    let (page, per_page) = (params.page.unwrap_or(1), params.per_page.unwrap_or(USUAL_PER_PAGE));
    if page == 0 {
        return Err(ErrorResponse::field("page", "is a number from 1"));
    }
    if !(1..=MAX_PER_PAGE).contains(&per_page) {
        return Err(ErrorResponse::field(
            "per_page",
            &format!("is a number from 1 to {MAX_PER_PAGE}"),
        ));
    }
    let workspace = api.workspace(&caller, Scope::Read, Some(workspace)).await?.id;
    let part = PageRequest { number: page, size: per_page };
    let github = &api.inner.github;
    let brought = token(&api, workspace, &headers, params.credential).await?;
    let listed = if let Some(token) = brought {
        github.list_with(&token, part).await
    } else {
        let request = TokenRequest { workspace, owner: params.owner, repository: None };
        github.list(&request, part).await
    };
    let repos = listed.map_err(|error| failed(&error))?;
    Ok(ok(&RepositoryList { repos, page, per_page }))
}

/// Finds the token that a request brings along, or the credential that it names.
async fn token(
    api: &Api,
    workspace: WorkspaceId,
    headers: &HeaderMap,
    credential: Option<String>,
) -> Result<Option<Secret>, ErrorResponse> {
    if let Some(value) = headers.get(TOKEN) {
        let plain =
            |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let text = value.to_str().ok().map(str::trim).filter(plain);
        let text = text.ok_or_else(|| ErrorResponse::field(TOKEN, "is a token of plain text"))?;
        return Ok(Some(Secret::new(text)));
    }
    let Some(name) = credential else { return Ok(None) };
    check_credential_name("credential", &name).map_err(ServiceError::from)?;
    let host = api.inner.github.host();
    let found = api.vault()?.git_token(workspace, &name, host).await?;
    let rule = format!("has no git_token for {host}");
    found.map(Some).ok_or_else(|| ErrorResponse::field("credential", &rule))
}

fn failed(error: &GitHubError) -> ErrorResponse {
    let failed = ErrorResponse::new(error.code(), carrel_domain::message_of(error), error.detail());
    match error {
        GitHubError::RateLimited { retry_after } => failed.after(retry_after.as_secs().max(1)),
        GitHubError::NotConfigured
        | GitHubError::NotConnected { .. }
        | GitHubError::OwnerNotChosen { .. }
        | GitHubError::Refused { .. }
        | GitHubError::UnexpectedReply { .. }
        | GitHubError::Unreachable { .. } => failed,
    }
}
