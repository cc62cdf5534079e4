//! `/github` of a workspace: listing repositories, and cloning as a task.
//!
//! The token for a list comes from the request, from a stored credential, or from the operator's sources, in
//! this order.

use axum::extract::State;
use axum::http::HeaderMap;
use carrel_domain::{Code, Coded as _, Secret, TokenScope, WorkspaceId};
use carrel_github::{GitHubError, PageRequest, TokenRequest};
use carrel_service::credentials::check_credential_name;
use carrel_service::{ServiceError, TaskSubmission};
use carrel_wire::limits::{DEFAULT_REPOSITORIES, MAX_REPOSITORIES};
use carrel_wire::{
    CloneRequest, RepositoryList, RepositoryQuery, StepRequest, TaskAccepted, TaskRequest,
};

use crate::extract::{Authenticated, Json, PathId, QueryParams};
use crate::idempotency;
use crate::openapi::{Header, Route, STORE};
use crate::response::{ErrorResponse, RouteResult, ok};
use crate::routes::tasks::accepted;
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workspaces/{workspace_id}/github/repos", repositories)
            .name("list_repositories", "List repositories on GitHub")
            .description(
                "Lists the repositories that the workspace can reach: with the token in the request, with a \
                 stored credential, or with a token source of the operator.",
            )
            .scope(TokenScope::Read)
            .header(Header::GitHubToken)
            .query::<RepositoryQuery>()
            .json::<RepositoryList>(200, "A page of the repositories.")
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
            .description("Queues a task that clones a repository into `repos/`, or updates the clone that is there.")
            .scope(TokenScope::Exec)
            .header(Header::IdempotencyKey)
            .body::<CloneRequest>()
            .json::<TaskAccepted>(200, "The task is queued.")
            .errors(STORE)
            .errors(&[Code::WorkspaceNotFound, Code::Overloaded, Code::QueueUnavailable]),
    ]
}

const CLONE_SECONDS: u64 = 300;

pub(super) async fn clone(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    headers: HeaderMap,
    Json(request_body, _): Json<CloneRequest>,
) -> RouteResult {
    let workspace = api.workspace(&caller, TokenScope::Exec, Some(workspace)).await?.id;
    let branch = request_body.branch.filter(|branch| !branch.trim().is_empty());
    let description = format!("Clone {}", request_body.repo_url);
    let step = StepRequest {
        action: "git_clone".to_owned(),
        repo: Some(request_body.repo_url),
        branch,
        timeout: Some(CLONE_SECONDS),
        credentials: request_body.credential.into_iter().collect(),
        description: Some(description),
        ..StepRequest::default()
    };
    let mut request = TaskRequest::new(vec![step]);
    request.idempotency_key = idempotency::key(&headers)?;
    let submit =
        TaskSubmission::check(request, workspace, &api.inner.hosts).map_err(ServiceError::from)?;
    let receipt = api.inner.tasks.submit(submit, "clone").await?;
    Ok(ok(&accepted(&receipt.task, 1)))
}

const TOKEN: &str = "x-github-token";

pub(super) async fn repositories(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    headers: HeaderMap,
    QueryParams(params): QueryParams<RepositoryQuery>,
) -> RouteResult {
    let (page, per_page) =
        (params.page.unwrap_or(1), params.per_page.unwrap_or(DEFAULT_REPOSITORIES));
    if page == 0 {
        return Err(ErrorResponse::field("page", "is a number from 1"));
    }
    if !(1..=MAX_REPOSITORIES).contains(&per_page) {
        return Err(ErrorResponse::field(
            "per_page",
            &format!("is a number from 1 to {MAX_REPOSITORIES}"),
        ));
    }
    let workspace = api.workspace(&caller, TokenScope::Read, Some(workspace)).await?.id;
    let part = PageRequest { number: page, size: per_page };
    let github = &api.inner.github;
    let own_token = token(&api, workspace, &headers, params.credential).await?;
    let listed = if let Some(token) = own_token {
        github.list_with(&token, part).await
    } else {
        let request = TokenRequest { workspace, owner: params.owner, repository: None };
        github.list(&request, part).await
    };
    let repos = listed.map_err(|error| failed(&error))?;
    Ok(ok(&RepositoryList { repos, page, per_page }))
}

/// Returns the token of the request, or of the credential that it names.
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
