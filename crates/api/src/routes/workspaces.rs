//! `/api/workspaces`: create, list, show, measure and remove workspaces.
//!
//! A workspace is a row of the store; its directory is created by the first request that needs it, on the
//! volume where the workspace is placed. That is why a workspace can be `new` (no directory), `ready`, or
//! `unreachable` (its volume has no live worker). Usage is measured by the process that has the volume, so
//! that a list asks the worker of each remote workspace; one that does not answer makes its workspace
//! `unreachable` and not the list fail.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use carrel_domain::{Code, TokenScope, WorkspaceId};
use carrel_service::{WorkspaceSpec, quota_from_gibibytes};
use carrel_store::Workspace as WorkspaceRow;
use carrel_wire::limits::{DEFAULT_PAGE, MAX_NAME_CHARS, MAX_PAGE, MAX_QUOTA_GB, MIN_QUOTA_GB};
use carrel_wire::{
    NewWorkspace, Workspace, WorkspaceList, WorkspaceQuery, WorkspaceState, WorkspaceUsage,
};
use serde_json::json;

use crate::auth::{Caller, Coverage};
use crate::extract::{Authenticated, Json, QueryParams, WorkspaceRequest, page_size};
use crate::idempotency::{IdempotentRequest, KeyScope};
use crate::openapi::{Header, Route};
use crate::response::{ErrorResponse, Result, RouteResult, ok};
use crate::routes::tasks::check_network;
use crate::state::Api;
use crate::worker_proxy::Location;
use crate::worker_proxy::forward::get_from_worker;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workspaces", list)
            .name("list_workspaces", "List workspaces", TokenScope::Read)
            .description("Lists the workspaces that the token covers.")
            .query::<WorkspaceQuery>()
            .json::<WorkspaceList>(200, "A page of the workspaces."),
        Route::post("/api/workspaces", create)
            .name("create_workspace", "Create a workspace", TokenScope::Write)
            .description(
                "Creates a workspace. A token that names its workspaces also needs the scope `admin`, and \
                 does not cover the new one.",
            )
            .header(Header::IdempotencyKey)
            .body::<NewWorkspace>()
            .json::<Workspace>(201, "The workspace.")
            .errors(&[Code::NetworkRefused]),
        Route::get("/api/workspaces/{workspace_id}", show)
            .name("show_workspace", "Show a workspace", TokenScope::Read)
            .description("Returns a workspace. One that the token names and that does not exist is created.")
            .json::<Workspace>(200, "The workspace."),
        Route::delete("/api/workspaces/{workspace_id}", remove)
            .name("remove_workspace", "Remove a workspace", TokenScope::Admin)
            .description("Removes a workspace with its files and tasks. None of its tasks may be waiting or running.")
            .no_content(204, "The workspace is removed.")
            .errors(&[Code::WorkspaceDirty]),
        Route::get("/api/workspaces/{workspace_id}/usage", usage)
            .name("show_usage", "Show the usage of a workspace", TokenScope::Read)
            .description("Returns the disk usage and the quota of a workspace.")
            .json::<WorkspaceUsage>(200, "The usage."),
    ]
}

pub(super) async fn create(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Json(new, body): Json<NewWorkspace>,
) -> RouteResult {
    caller.check_scope(TokenScope::Write)?;
    if caller.coverage != Coverage::All {
        caller.check_scope(TokenScope::Admin)?;
    }
    let fits = (1..=MAX_NAME_CHARS).contains(&new.name.chars().count());
    if !fits || new.name.contains(char::is_control) {
        let rule = format!("is 1 to {MAX_NAME_CHARS} characters without control characters");
        return Err(ErrorResponse::field("name", rule));
    }
    let quota = new.quota_gb.map(|number| {
        let rule = format!("is a number from {MIN_QUOTA_GB} (1 MiB) to {MAX_QUOTA_GB}");
        quota_from_gibibytes(number).ok_or_else(|| ErrorResponse::field("quota_gb", &rule))
    });
    let quota = quota.transpose()?;
    check_network(&caller, new.network)?;
    let request = IdempotentRequest {
        api: &api,
        scope: KeyScope::Caller(&caller),
        route: "create",
        headers: &headers,
        body: &body,
        status: StatusCode::CREATED,
    };
    let work = async {
        let space = WorkspaceSpec {
            id: WorkspaceId::generate(),
            name: new.name,
            layout: new.layout,
            quota,
            network: new.network,
        };
        let (created, _) = api.options.spaces.provision(space).await?;
        if api.options.worker_proxy.is_none() {
            api.options.spaces.open_workspace(created.id).await?;
        }
        Ok(json!(describe(&api, &caller, &created).await?))
    };
    request.run_once(work).await
}

pub(super) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    QueryParams(params): QueryParams<WorkspaceQuery>,
) -> RouteResult {
    caller.check_scope(TokenScope::Read)?;
    let limit = page_size("limit", params.limit, DEFAULT_PAGE, MAX_PAGE)?;
    let found = match &caller.coverage {
        Coverage::All => api.options.tasks.store().workspaces(params.after, limit).await?,
        Coverage::Only(ids) => {
            let mut found = Vec::new();
            let following = ids.iter().filter(|id| params.after.is_none_or(|after| **id > after));
            for id in following.take(limit as usize) {
                found.extend(api.options.tasks.store().workspace(*id).await?);
            }
            found
        }
    };
    let mut workspaces = Vec::with_capacity(found.len());
    for workspace in &found {
        workspaces.push(describe(&api, &caller, workspace).await?);
    }
    let next_after =
        (found.len() == limit as usize).then(|| found.last().map(|last| last.id)).flatten();
    Ok(ok(&WorkspaceList { workspaces, next_after }))
}

async fn show(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Read).await?;
    Ok(ok(&describe(&request.api, &request.caller, &workspace).await?))
}

async fn usage(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Read).await?;
    let spaces = &request.api.options.spaces;
    let usage = spaces.usage(workspace.id).await?;
    let amount = usage.as_ref().map(|measured| measured.amount).unwrap_or_default();
    Ok(ok(&WorkspaceUsage {
        id: workspace.id,
        usage_bytes: amount.bytes,
        files: amount.files,
        quota_bytes: workspace.quota_bytes,
        quota_files: spaces.quota_files(),
        as_of: usage.map(|measured| measured.as_of),
    }))
}

async fn remove(request: WorkspaceRequest) -> RouteResult {
    request.caller.check(TokenScope::Admin, request.id)?;
    request.api.options.spaces.remove(request.id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Returns a workspace with its usage, which the server of its volume measures.
pub(super) async fn describe(
    api: &Api,
    caller: &Caller,
    workspace: &WorkspaceRow,
) -> Result<Workspace> {
    let location = match (&api.options.worker_proxy, workspace.volume) {
        (Some(worker_proxy), Some(_)) => worker_proxy.locate(workspace).await,
        (Some(_) | None, _) => return describe_local(api, workspace).await,
    };
    let usage = match location {
        Ok(Location::Local) => return describe_local(api, workspace).await,
        Ok(Location::Remote(remote)) => {
            get_from_worker(api, caller, &remote, &format!("{}/usage", workspace.id)).await
        }
        Err(failed) => Err(failed),
    };
    let (state, usage) = match &usage {
        Ok(usage) => (WorkspaceState::Ready, usage["usage_bytes"].as_u64().unwrap_or(0)),
        Err(_) => (WorkspaceState::Unreachable, 0),
    };
    Ok(reply(workspace, state, usage))
}

async fn describe_local(api: &Api, workspace: &WorkspaceRow) -> Result<Workspace> {
    let usage = api.options.spaces.usage(workspace.id).await?;
    let state = if usage.is_some() { WorkspaceState::Ready } else { WorkspaceState::New };
    Ok(reply(workspace, state, usage.map_or(0, |measured| measured.amount.bytes)))
}

fn reply(workspace: &WorkspaceRow, state: WorkspaceState, usage_bytes: u64) -> Workspace {
    Workspace {
        id: workspace.id,
        name: workspace.name.clone(),
        layout: workspace.layout,
        network: workspace.network,
        state,
        created_at: workspace.created_at,
        usage_bytes,
        quota_bytes: workspace.quota_bytes,
    }
}
