//! `/forks`, `/changes` and `/promote` of a workspace.

use carrel_domain::{Code, MAX_FORKS, TokenScope};
use carrel_tools::OtherForks;
use carrel_wire::limits::{MAX_LISTED_CHANGES, MAX_PATCH_BYTES};
use carrel_wire::{
    AdoptedChanges, EndedFork, ForkChange, ForkChanges, ForkChangesQuery, ForkList, NewForks,
    Promoted, Promotion,
};
use serde_json::json;

use super::workspaces::describe;
use crate::extract::{Json, QueryParams, WorkspaceRequest};
use crate::openapi::{Header, Route};
use crate::response::{ErrorResponse, Result, RouteResult, ok};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/workspaces/{workspace_id}/forks", create)
            .name("create_forks", "Fork a workspace", TokenScope::Write)
            .description(
                "Makes workspaces that begin as this one, in milliseconds whatever its size. Nothing writes in this \
                 workspace until its forks are promoted or removed. A token for it covers its forks.",
            )
            .header(Header::IdempotencyKey)
            .body::<NewForks>()
            .json::<ForkList>(200, "The new forks."),
        Route::get("/api/workspaces/{workspace_id}/forks", list)
            .name("list_forks", "List the forks of a workspace", TokenScope::Read)
            .description("Lists the forks of a workspace.")
            .json::<ForkList>(200, "The forks."),
        Route::get("/api/workspaces/{workspace_id}/changes", changes)
            .name("list_fork_changes", "List what a fork changed", TokenScope::Read)
            .description("Compares a fork with its base, or with another fork of that base.")
            .query::<ForkChangesQuery>()
            .json::<ForkChanges>(200, "The changes."),
        Route::post("/api/workspaces/{workspace_id}/rebase", rebase)
            .name("rebase_fork", "Rebase a fork", TokenScope::Write)
            .description(
                "Lets this fork take over what was changed in its base by other programs, so that it can be promoted. \
                 Refused if the fork has changed the same files.",
            )
            .header(Header::IdempotencyKey)
            .json::<AdoptedChanges>(200, "The fork has what changed in the base."),
        Route::post("/api/workspaces/{workspace_id}/promote", promote)
            .name("promote_fork", "Promote a fork", TokenScope::Write)
            .description(
                "Makes the base what this fork is, and removes the forks of the base. The base as it was becomes a \
                 snapshot first, and so does the work of the other forks.",
            )
            .header(Header::IdempotencyKey)
            .body::<Promotion>()
            .json::<Promoted>(200, "The base is what the fork was."),
    ]
}

async fn create(request: WorkspaceRequest, Json(new, body): Json<NewForks>) -> RouteResult {
    let workspace = request.workspace(TokenScope::Write).await?;
    if !(1..=MAX_FORKS).contains(&new.count) {
        return Err(ErrorResponse::field("count", format!("is a number from 1 to {MAX_FORKS}")));
    }
    if new.from.is_some() && new.count != 1 {
        return Err(ErrorResponse::field("count", "is 1 where `from` is given"));
    }
    let work = async {
        let spaces = &request.api.options.spaces;
        let made = match &new.from {
            None => spaces.fork(workspace.id, new.count).await,
            Some(from) => spaces.fork_from(workspace.id, from).await.map(|fork| vec![fork]),
        };
        let made = made.map_err(ErrorResponse::of_failure)?;
        let mut forks = Vec::with_capacity(made.len());
        for fork in &made {
            forks.push(describe(&request.api, &request.caller, fork).await?);
        }
        Ok(json!(ForkList { forks, idle_seconds: idle_seconds(&request) }))
    };
    request.run_once("create_forks", &body, work).await
}

async fn list(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Read).await?;
    let rows = request
        .api
        .options
        .spaces
        .forks_of(workspace.id)
        .await
        .map_err(ErrorResponse::of_failure)?;
    let mut forks = Vec::with_capacity(rows.len());
    for fork in &rows {
        forks.push(describe(&request.api, &request.caller, fork).await?);
    }
    Ok(ok(&ForkList { forks, idle_seconds: idle_seconds(&request) }))
}

fn idle_seconds(request: &WorkspaceRequest) -> Option<u64> {
    request.api.options.spaces.fork_idle().map(|idle| idle.as_secs())
}

async fn changes(
    request: WorkspaceRequest,
    QueryParams(query): QueryParams<ForkChangesQuery>,
) -> RouteResult {
    let workspace = request.workspace(TokenScope::Read).await?;
    if let Some(other) = query.against {
        request.caller.check(TokenScope::Read, other)?;
    }
    let spaces = &request.api.options.spaces;
    let compared = spaces
        .fork_changes(workspace.id, query.against, query.patch.then_some(MAX_PATCH_BYTES))
        .await;
    let (changes, patch) = compared.map_err(ErrorResponse::of_failure)?;
    let (patch, not_shown) = patch.map(|patch| (patch.text, patch.not_shown.len())).unzip();
    Ok(ok(&ForkChanges { patch, not_shown, ..listed(&changes) }))
}

async fn rebase(request: WorkspaceRequest) -> RouteResult {
    let workspace = request.workspace(TokenScope::Write).await?;
    let base = base(&request)?;
    let work = async {
        let spaces = &request.api.options.spaces;
        let adopted = spaces.rebase(workspace.id).await.map_err(ErrorResponse::of_failure)?;
        let shown = adopted.paths.iter().take(MAX_LISTED_CHANGES);
        Ok(json!(AdoptedChanges {
            base,
            changed: shown.map(|path| path.to_string_lossy().into_owned()).collect(),
            total: adopted.paths.len(),
        }))
    };
    request.run_once("rebase_fork", b"", work).await
}

async fn promote(request: WorkspaceRequest, Json(promotion, body): Json<Promotion>) -> RouteResult {
    let workspace = request.workspace(TokenScope::Write).await?;
    let spaces = &request.api.options.spaces;
    let base = base(&request)?;
    request.caller.check(TokenScope::Write, base)?;
    let others = if promotion.discard_others { OtherForks::Discard } else { OtherForks::Record };
    let work = async {
        let promoted =
            spaces.promote(workspace.id, others).await.map_err(ErrorResponse::of_failure)?;
        let ended = promoted.ended.iter().map(|(key, snapshot)| EndedFork {
            id: key.to_string(),
            snapshot: snapshot.as_ref().map(ToString::to_string),
            only_ignored: promoted.only_ignored.contains(key),
        });
        Ok(json!(Promoted {
            base,
            changes: listed(&promoted.changes),
            before: promoted.before.map(|id| id.to_string()),
            ended: ended.collect(),
        }))
    };
    request.run_once("promote_fork", &body, work).await
}

fn base(request: &WorkspaceRequest) -> Result<carrel_domain::WorkspaceId> {
    request.api.options.spaces.base_of(request.id).map_err(ErrorResponse::of_failure)?.ok_or_else(
        || {
            let message = format!(
                "workspace {} is no fork; `POST /api/workspaces/{{workspace_id}}/forks` makes some",
                request.id
            );
            ErrorResponse::new(Code::ForkRefused, message, json!({ "workspace_id": request.id }))
        },
    )
}

fn listed(changes: &[carrel_tools::ForkChange]) -> ForkChanges {
    let shown = changes.iter().take(MAX_LISTED_CHANGES).map(|change| ForkChange {
        path: change.path.to_string_lossy().into_owned(),
        change: change.kind.as_str().to_owned(),
    });
    ForkChanges { changes: shown.collect(), total: changes.len(), patch: None, not_shown: None }
}
