//! `/files` of a workspace: thin routes over the file tools.

mod upload;

use std::path::PathBuf;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use carrel_domain::{Code, TokenScope, WorkspaceId};
use carrel_fsroot::MAX_READ_BYTES;
use carrel_wire::{
    DirectoryListing, DirectoryQuery, FileQuery, ReadFileReply, SearchMatches, SearchQuery,
    WriteFileRequest, WrittenFile,
};
use serde_json::{Value, json};

use crate::extract::{Authenticated, Json, PathId, QueryParams};
use crate::idempotency::{IdempotentRequest, KeyScope, WorkResult};
use crate::openapi::{FILES, Header, Route, SEARCH, STORE, WORKSPACES};
use crate::response::{ErrorResponse, RouteResult, bytes_response, ok};
use crate::routes::commands::{ToolCall, arguments, check_relative};
use crate::routes::tools::find;
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    let routes = vec![
        Route::get("/api/workspaces/{workspace_id}/files", list)
            .name("list_files", "List a directory")
            .description("Lists a directory: directories first, then by name; 500 entries at most.")
            .scope(TokenScope::Read)
            .query::<DirectoryQuery>()
            .json::<DirectoryListing>(200, "The entries."),
        Route::get("/api/workspaces/{workspace_id}/files/content", content)
            .name("read_file", "Read a text file")
            .description("Returns a text file of at most 2 MiB.")
            .scope(TokenScope::Read)
            .query::<FileQuery>()
            .json::<ReadFileReply>(200, "The file."),
        Route::get("/api/workspaces/{workspace_id}/files/raw", raw)
            .name("read_raw_file", "Read a file as bytes")
            .description("Returns the bytes of a file of at most 2 MiB.")
            .scope(TokenScope::Read)
            .query::<FileQuery>()
            .bytes("application/octet-stream", "The bytes."),
        Route::put("/api/workspaces/{workspace_id}/files/raw", upload::put)
            .name("write_raw_file", "Upload a file")
            .description(
                "Creates or replaces a file with the bytes of the body, as many as the quota allows. The file \
                 changes when all of the body has arrived. With an idempotency key, the body of a repeated \
                 request is read and compared.",
            )
            .scope(TokenScope::Write)
            .header(Header::IdempotencyKey)
            .query::<FileQuery>()
            .stream("application/octet-stream")
            .json::<WrittenFile>(200, "The file is written."),
        Route::get("/api/workspaces/{workspace_id}/files/grep", grep)
            .name("search_files", "Search in files")
            .description("Searches files with a regular expression, hidden and ignored ones included.")
            .scope(TokenScope::Read)
            .query::<SearchQuery>()
            .json::<SearchMatches>(200, "The matching lines.")
            .errors(SEARCH),
        Route::post("/api/workspaces/{workspace_id}/files/write", write)
            .name("write_file", "Write a file")
            .description("Creates a text file, or replaces its content. Missing directories are created.")
            .scope(TokenScope::Write)
            .header(Header::IdempotencyKey)
            .body::<WriteFileRequest>()
            .json::<WrittenFile>(200, "The file is written."),
    ];
    let with_errors = |route: Route| route.errors(STORE).errors(WORKSPACES).errors(FILES);
    routes.into_iter().map(with_errors).collect()
}

fn required_path(query: FileQuery) -> Result<String, ErrorResponse> {
    let path = query.path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| ErrorResponse::field("path", "is required"))?;
    check_relative("path", Some(&path))?;
    Ok(path)
}

async fn call_reader(
    api: &Api,
    caller: &crate::auth::Caller,
    workspace: WorkspaceId,
    tool: &str,
    requested: Value,
) -> Result<Value, ErrorResponse> {
    let arguments = arguments(requested);
    let tool = find(tool, "it is not offered here")?;
    ToolCall { caller, workspace, tool, arguments, network: None }.call(api).await
}

pub(super) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    QueryParams(params): QueryParams<DirectoryQuery>,
) -> RouteResult {
    check_relative("path", params.path.as_deref())?;
    let arguments = json!({ "path": params.path.filter(|path| !path.is_empty()) });
    Ok(ok(&call_reader(&api, &caller, workspace, "workspace_list_dir", arguments).await?))
}

pub(super) async fn content(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    QueryParams(params): QueryParams<FileQuery>,
) -> RouteResult {
    let arguments = json!({ "path": required_path(params)? });
    let mut file = call_reader(&api, &caller, workspace, "workspace_read_file", arguments).await?;
    file["success"] = json!(true);
    Ok(ok(&file))
}

pub(super) async fn grep(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    QueryParams(params): QueryParams<SearchQuery>,
) -> RouteResult {
    check_relative("path", params.path.as_deref())?;
    let pattern = params.pattern.filter(|pattern| !pattern.is_empty());
    let pattern = pattern.ok_or_else(|| ErrorResponse::field("pattern", "is required"))?;
    if params.max_results == Some(0) {
        return Err(ErrorResponse::field("max_results", "is a number from 1 to 200"));
    }
    let arguments = json!({
        "pattern": pattern,
        "path": params.path.filter(|path| !path.is_empty()),
        "include": params.include,
        "max_results": params.max_results,
    });
    Ok(ok(&call_reader(&api, &caller, workspace, "workspace_grep", arguments).await?))
}

pub(super) async fn write(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    headers: HeaderMap,
    Json(request_body, body): Json<WriteFileRequest>,
) -> RouteResult {
    caller.check(TokenScope::Write, workspace)?;
    check_relative("path", Some(&request_body.path))?;
    let request = IdempotentRequest {
        api: &api,
        scope: KeyScope::Workspace(workspace),
        route: "write",
        headers: &headers,
        body: &body,
    };
    let work = async {
        let call = ToolCall {
            caller: &caller,
            workspace,
            tool: find("workspace_write_file", "it is not offered here")?,
            arguments: arguments(
                json!({ "path": request_body.path, "content": request_body.content }),
            ),
            network: None,
        };
        WorkResult::Ok((StatusCode::OK, call.call(&api).await?))
    };
    request.run_once(work).await
}

pub(super) async fn raw(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(workspace): PathId<WorkspaceId>,
    QueryParams(params): QueryParams<FileQuery>,
) -> RouteResult {
    let path = PathBuf::from(required_path(params)?);
    let space = api.open_workspace(&caller, TokenScope::Read, workspace).await?;
    let _permit = api.read_permit().await?;
    let read = move || space.named_workspace().files().browse().read(&path, MAX_READ_BYTES);
    let bytes = blocking(read).await?;
    Ok(bytes_response(StatusCode::OK, "application/octet-stream", bytes))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, carrel_fsroot::Error> + Send + 'static,
) -> Result<T, ErrorResponse> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| ErrorResponse::of(&error)),
        Err(_) => {
            Err(ErrorResponse::new(Code::Internal, "the server could not do this", json!({})))
        }
    }
}
