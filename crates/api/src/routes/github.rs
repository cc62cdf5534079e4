//! `/github` of a workspace: listing repositories, and cloning as a task.
//!
//! The token for a list comes from the request, from a stored credential, or from the operator's sources, in
//! this order.

use carrel_domain::{Code, Coded as _, Secret, TokenScope};
use carrel_github::{GitHubError, PageRequest, TokenRequest};
use carrel_service::credentials::check_credential_name;
use carrel_service::{ServiceError, TaskSubmission};
use carrel_wire::limits::{DEFAULT_REPOSITORIES, MAX_REPOSITORIES};
use carrel_wire::{
    CloneRequest, RepositoryList, RepositoryQuery, StepRequest, TaskAccepted, TaskRequest,
};

use crate::extract::{Json, QueryParams, WorkspaceRequest, page_size};
use crate::idempotency;
use crate::openapi::{Header, Route};
use crate::response::{ErrorResponse, Result, RouteResult, ok};
use crate::routes::tasks::accepted;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workspaces/{workspace_id}/github/repos", repositories)
            .name("list_repositories", "List repositories on GitHub", TokenScope::Read)
            .description(
                "Lists the repositories that the workspace can reach: with the token in the request, with a \
                 stored credential, or with a token source of the operator.",
            )
            .header(Header::GitHubToken)
            .query::<RepositoryQuery>()
            .json::<RepositoryList>(200, "A page of the repositories.")
            .errors(&[
                Code::SecretUnknown,
                Code::NotConfigured,
                Code::NotConnected,
                Code::UpstreamFailed,
                Code::UpstreamLimited,
            ]),
        Route::post("/api/workspaces/{workspace_id}/github/clone", clone)
            .name("clone_repository", "Clone a repository", TokenScope::Exec)
            .description("Queues a task that clones a repository into `repos/`, or updates the clone that is there.")
            .header(Header::IdempotencyKey)
            .body::<CloneRequest>()
            .json::<TaskAccepted>(200, "The task is queued.")
            .errors(&[Code::QueueUnavailable]),
    ]
}

const CLONE_SECONDS: u64 = 300;

async fn clone(request: WorkspaceRequest, Json(clone, _): Json<CloneRequest>) -> RouteResult {
    let workspace = request.workspace(TokenScope::Exec).await?.id;
    let step = StepRequest {
        action: "git_clone".to_owned(),
        description: Some(format!("Clone {}", clone.repo_url)),
        repo: Some(clone.repo_url),
        branch: clone.branch.filter(|branch| !branch.trim().is_empty()),
        timeout: Some(CLONE_SECONDS),
        credentials: clone.credential.into_iter().collect(),
        ..StepRequest::default()
    };
    let idempotency_key = idempotency::key(&request.headers)?;
    let task = TaskRequest { idempotency_key, ..TaskRequest::new(vec![step]) };
    let options = &request.api.options;
    let task =
        TaskSubmission::check(task, workspace, &options.hosts).map_err(ServiceError::from)?;
    let task = task.capped(request.caller.network_cap());
    let receipt = options.tasks.submit(task, "clone").await?;
    Ok(ok(&accepted(&receipt.task, 1)))
}

const TOKEN: &str = "x-github-token";

async fn repositories(
    request: WorkspaceRequest,
    QueryParams(params): QueryParams<RepositoryQuery>,
) -> RouteResult {
    let page = params.page.unwrap_or(1);
    if page == 0 {
        return Err(ErrorResponse::field("page", "is a number from 1"));
    }
    let per_page = page_size("per_page", params.per_page, DEFAULT_REPOSITORIES, MAX_REPOSITORIES)?;
    let workspace = request.workspace(TokenScope::Read).await?.id;
    let part = PageRequest { number: page, size: per_page };
    let github = &request.api.options.github;
    let own_token = token(&request, params.credential).await?;
    let listed = if let Some(token) = own_token {
        github.list_with(&token, part).await
    } else {
        let wanted = TokenRequest { workspace, owner: params.owner, repository: None };
        github.list(&wanted, part).await
    };
    let repos = listed.map_err(|error| failed(&error))?;
    Ok(ok(&RepositoryList { repos, page, per_page }))
}

/// Returns the token of the request, or of the credential that it names.
async fn token(request: &WorkspaceRequest, credential: Option<String>) -> Result<Option<Secret>> {
    if let Some(value) = request.headers.get(TOKEN) {
        let plain =
            |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let text = value.to_str().ok().map(str::trim).filter(plain);
        let text = text.ok_or_else(|| ErrorResponse::field(TOKEN, "is a token of plain text"))?;
        return Ok(Some(Secret::new(text)));
    }
    let Some(name) = credential else { return Ok(None) };
    check_credential_name("credential", &name).map_err(ServiceError::from)?;
    let host = request.api.options.github.host();
    let found = request.api.vault()?.git_token(request.id, &name, host).await?;
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
