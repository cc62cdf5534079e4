//! `/snapshots` of a workspace: thin routes over the tools of the group `snapshot`.

use carrel_domain::TokenScope;
use carrel_wire::{
    CreatedSnapshot, DeletedSnapshot, NewSnapshot, RestoredSnapshot, SnapshotDiffQuery,
    SnapshotDiffReply, SnapshotList, SnapshotListQuery, SnapshotRestoreRequest,
};
use serde_json::json;

use crate::extract::{Json, QueryParams, WorkspaceRequest};
use crate::openapi::{Header, Route};
use crate::response::{RouteResult, ok};
use crate::routes::commands::check_relative;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workspaces/{workspace_id}/snapshots", list)
            .name("list_snapshots", "List snapshots", TokenScope::Read)
            .description("Lists the snapshots of a workspace, the newest first.")
            .query::<SnapshotListQuery>()
            .json::<SnapshotList>(200, "The snapshots."),
        Route::post("/api/workspaces/{workspace_id}/snapshots", create)
            .name("create_snapshot", "Take a snapshot", TokenScope::Write)
            .description(
                "Records all files that ignore rules do not exclude. What ignore rules exclude, and what cannot be \
                 recorded, is listed in the reply.",
            )
            .header(Header::IdempotencyKey)
            .body::<NewSnapshot>()
            .json::<CreatedSnapshot>(200, "The snapshot was taken, and survives a power loss."),
        Route::get("/api/workspaces/{workspace_id}/snapshots/{snapshot}/diff", diff)
            .name("diff_snapshot", "Compare with a snapshot", TokenScope::Read)
            .description("Returns the changes from a snapshot to another one, or to the present files.")
            .query::<SnapshotDiffQuery>()
            .json::<SnapshotDiffReply>(200, "The changes."),
        Route::post("/api/workspaces/{workspace_id}/snapshots/{snapshot}/restore", restore)
            .name("restore_snapshot", "Restore a snapshot", TokenScope::Write)
            .description(
                "Makes the files as they were in a snapshot. The present state becomes a snapshot first. What ignore \
                 rules exclude is left alone.",
            )
            .header(Header::IdempotencyKey)
            .body::<SnapshotRestoreRequest>()
            .json::<RestoredSnapshot>(200, "The files are restored."),
        Route::delete("/api/workspaces/{workspace_id}/snapshots/{snapshot}", delete)
            .name("delete_snapshot", "Delete a snapshot", TokenScope::Write)
            .description("Deletes a snapshot for good.")
            .json::<DeletedSnapshot>(200, "The snapshot is deleted."),
    ]
}

async fn list(
    request: WorkspaceRequest,
    QueryParams(query): QueryParams<SnapshotListQuery>,
) -> RouteResult {
    Ok(ok(&request.call_tool("snapshot_list", json!(query), None).await?))
}

async fn create(request: WorkspaceRequest, Json(snapshot, body): Json<NewSnapshot>) -> RouteResult {
    request.caller.check(TokenScope::Write, request.id)?;
    let work = request.call_tool("snapshot_create", json!(snapshot), None);
    request.run_once("create_snapshot", &body, work).await
}

async fn diff(
    request: WorkspaceRequest,
    QueryParams(query): QueryParams<SnapshotDiffQuery>,
) -> RouteResult {
    check_relative("path", query.path.as_deref())?;
    let SnapshotDiffQuery { to, path, max_bytes } = query;
    let arguments = json!({ "name": request.name, "to": to, "path": path, "max_bytes": max_bytes });
    Ok(ok(&request.call_tool("snapshot_diff", arguments, None).await?))
}

async fn restore(
    request: WorkspaceRequest,
    Json(restore, body): Json<SnapshotRestoreRequest>,
) -> RouteResult {
    request.caller.check(TokenScope::Write, request.id)?;
    for path in &restore.paths {
        check_relative("paths", Some(path))?;
    }
    let SnapshotRestoreRequest { paths, dry_run } = restore;
    let arguments = json!({ "name": request.name, "paths": paths, "dry_run": dry_run });
    let work = request.call_tool("snapshot_restore", arguments, None);
    request.run_once("restore_snapshot", &body, work).await
}

async fn delete(request: WorkspaceRequest) -> RouteResult {
    let arguments = json!({ "name": request.name });
    Ok(ok(&request.call_tool("snapshot_delete", arguments, None).await?))
}
