//! `/files` of a workspace: thin routes over the file tools.

mod byte_range;
mod download;
mod upload;

use carrel_domain::{Code, TokenScope};
use carrel_wire::{
    DirectoryListing, DirectoryQuery, FileQuery, ReadFileReply, SearchMatches, SearchQuery,
    WriteFileRequest, WrittenFile,
};
use serde_json::json;

use crate::extract::{Json, QueryParams, WorkspaceRequest};
use crate::openapi::{Header, Route, SEARCH};
use crate::response::{ErrorResponse, Result, RouteResult, ok};
use crate::routes::commands::check_relative;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/workspaces/{workspace_id}/files", list)
            .name("list_files", "List a directory", TokenScope::Read)
            .description("Lists a directory: directories first, then by name; 500 entries at most.")
            .query::<DirectoryQuery>()
            .json::<DirectoryListing>(200, "The entries."),
        Route::get("/api/workspaces/{workspace_id}/files/content", content)
            .name("read_file", "Read a text file", TokenScope::Read)
            .description("Returns a text file of at most 2 MiB.")
            .query::<FileQuery>()
            .json::<ReadFileReply>(200, "The file."),
        Route::get("/api/workspaces/{workspace_id}/files/raw", download::get)
            .name("read_raw_file", "Download a file", TokenScope::Read)
            .description(
                "Returns the bytes of a file of any size, or a part of them (`Range`). `ETag` changes with every \
                 write: with `If-Range` a client goes on where it was cut off, and never mixes two contents; with \
                 `If-None-Match` it asks only for news.",
            )
            .header(Header::Range)
            .header(Header::IfRange)
            .header(Header::IfNoneMatch)
            .query::<FileQuery>()
            .bytes("application/octet-stream", "The bytes.")
            .part("application/octet-stream", "The part of the bytes that `Content-Range` names.")
            .no_content(304, "The client has this content.")
            .errors(&[Code::RangeNotSatisfiable]),
        Route::put("/api/workspaces/{workspace_id}/files/raw", upload::put)
            .name("write_raw_file", "Upload a file", TokenScope::Write)
            .description(
                "Creates or replaces a file with the bytes of the body, as many as the quota allows. The file \
                 changes when all of the body has arrived. With an idempotency key, the body of a repeated \
                 request is read and compared.",
            )
            .header(Header::IdempotencyKey)
            .query::<FileQuery>()
            .stream("application/octet-stream")
            .json::<WrittenFile>(200, "The file is written."),
        Route::get("/api/workspaces/{workspace_id}/files/grep", grep)
            .name("search_files", "Search in files", TokenScope::Read)
            .description("Searches files with a regular expression, hidden and ignored ones included.")
            .query::<SearchQuery>()
            .json::<SearchMatches>(200, "The matching lines.")
            .errors(SEARCH),
        Route::post("/api/workspaces/{workspace_id}/files/write", write)
            .name("write_file", "Write a file", TokenScope::Write)
            .description("Creates a text file, or replaces its content. Missing directories are created.")
            .header(Header::IdempotencyKey)
            .body::<WriteFileRequest>()
            .json::<WrittenFile>(200, "The file is written."),
    ]
}

fn required_path(query: FileQuery) -> Result<String> {
    let path = query.path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| ErrorResponse::field("path", "is required"))?;
    check_relative("path", Some(&path))?;
    Ok(path)
}

async fn list(
    request: WorkspaceRequest,
    QueryParams(params): QueryParams<DirectoryQuery>,
) -> RouteResult {
    check_relative("path", params.path.as_deref())?;
    let arguments = json!({ "path": params.path.filter(|path| !path.is_empty()) });
    Ok(ok(&request.call_tool("workspace_list_dir", arguments, None).await?))
}

async fn content(
    request: WorkspaceRequest,
    QueryParams(params): QueryParams<FileQuery>,
) -> RouteResult {
    let arguments = json!({ "path": required_path(params)? });
    let mut file = request.call_tool("workspace_read_file", arguments, None).await?;
    file["success"] = json!(true);
    Ok(ok(&file))
}

async fn grep(
    request: WorkspaceRequest,
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
    Ok(ok(&request.call_tool("workspace_grep", arguments, None).await?))
}

async fn write(request: WorkspaceRequest, Json(file, body): Json<WriteFileRequest>) -> RouteResult {
    request.caller.check(TokenScope::Write, request.id)?;
    check_relative("path", Some(&file.path))?;
    let work = request.call_tool("workspace_write_file", json!(file), None);
    request.run_once("write", &body, work).await
}
