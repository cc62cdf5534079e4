//! Resources: files of the workspaces, logs of jobs, and pages of the documentation.
//!
//! `resources/list` has pages: first the documentation and the jobs that the session itself started, then the
//! files by path. A page begins where the one before ended, so that a file which appears or vanishes
//! meanwhile may be listed twice or not at all. Reading goes through the registry, with the rules of `Read`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use carrel_domain::{Code, Failure};
use carrel_tools::{
    CallOptions, MAX_LISTED_RESOURCES, Registry, Session, ToolContent, ToolResponse,
};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::resource_uri::ResourceUri;

/// Resources on one page.
const PAGE_SIZE: usize = 200;

/// Bytes of a log that one read returns: its end. `BashOutput` reads the rest.
const MAX_LOG_BYTES: u64 = 256 * 1024;

/// The prefix of cursors, before the number of files on earlier pages.
const CURSOR_PREFIX: &str = "files:";

const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// The pages of the documentation that are part of the program: name and title.
const PAGES: [(&str, &str); 5] = [
    ("mcp.md", "Agents: carrel mcp and carrel tool"),
    ("tools.md", "The tools"),
    ("commands.md", "Commands in the sandbox"),
    ("projects.md", "Tests, linters and formatters of a project"),
    ("policy.md", "The operator's policy"),
];

fn page(name: &str) -> Option<String> {
    let text = match name {
        "mcp.md" => include_str!("../../../../docs/mcp.md"),
        "tools.md" => include_str!("../../../../docs/tools.md"),
        "commands.md" => include_str!("../../../../docs/commands.md"),
        "projects.md" => include_str!("../../../../docs/projects.md"),
        "policy.md" => include_str!("../../../../docs/policy.md"),
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns the number of files before a page.
fn offset(page: Option<PaginatedRequestParams>) -> Result<Option<usize>, ErrorData> {
    let Some(cursor) = page.and_then(|page| page.cursor) else { return Ok(None) };
    let offset = cursor.strip_prefix(CURSOR_PREFIX).and_then(|digits| {
        let offset: usize = digits.parse().ok()?;
        // One spelling for each, so that no other text passes.
        (offset.to_string() == digits && offset <= MAX_LISTED_RESOURCES).then_some(offset)
    });
    let message = "unknown cursor: take nextCursor of the page before, or leave the cursor out";
    offset.map(Some).ok_or_else(|| ErrorData::invalid_params(message, None))
}

/// Refuses a cursor for a list that has one page.
pub(super) fn only_page(
    method: &str,
    page: Option<&PaginatedRequestParams>,
) -> Result<(), ErrorData> {
    if page.is_none_or(|page| page.cursor.is_none()) {
        return Ok(());
    }
    let message = format!("unknown cursor: {method} has one page, leave the cursor out");
    Err(ErrorData::invalid_params(message, None))
}

pub(super) async fn list(
    registry: &Registry,
    session: &Arc<Session>,
    page: Option<PaginatedRequestParams>,
    options: CallOptions,
) -> Result<ListResourcesResult, ErrorData> {
    let offset = offset(page)?;
    let mut resources = match offset {
        None => first_of_list(registry, session).await,
        Some(_) => Vec::new(),
    };
    let offset = offset.unwrap_or_default();
    // One more tells whether there is another page.
    let wanted = offset + PAGE_SIZE - resources.len() + 1;
    let files =
        registry.list_resources(session, wanted, options).await.map_err(|error| refused(&error))?;
    let has_more = files.len() == wanted;
    let shown = wanted - 1 - offset;
    let file = |(workspace, path): (String, String)| {
        let name = path.clone();
        Resource::new(ResourceUri::File { workspace, path }.to_string(), name)
    };
    resources.extend(files.into_iter().skip(offset).take(shown).map(file));
    let mut listed = ListResourcesResult::with_all_items(resources);
    listed.next_cursor = has_more.then(|| format!("{CURSOR_PREFIX}{}", offset + shown));
    Ok(listed)
}

/// Returns the resources that come before the files. They fit on the first page.
async fn first_of_list(registry: &Registry, session: &Arc<Session>) -> Vec<Resource> {
    let pages = PAGES.into_iter().map(|(name, title)| {
        let uri = ResourceUri::Page { name: name.to_owned() };
        Resource::new(uri.to_string(), name).with_title(title).with_mime_type(MARKDOWN)
    });
    let jobs = registry.jobs_of(session).await.into_iter().map(|job| {
        let uri = ResourceUri::JobLog { id: job.id };
        let name = format!("output of {}", job.command);
        Resource::new(uri.to_string(), name).with_mime_type(PLAIN).with_size(job.log_bytes)
    });
    pages.chain(jobs).collect()
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_description(description)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template(
            "carrel://files/{workspace}/{+path}",
            "file",
            "A file of a workspace; the path is relative to it",
        ),
        template(
            "carrel://jobs/{shell_id}/log",
            "job log",
            "The end of the output of a command, by the shell_id that its call returned",
        ),
        template("carrel://docs/{page}", "page", "A page of the documentation"),
    ])
}

pub(super) async fn read(
    registry: &Registry,
    session: &Arc<Session>,
    uri: &str,
    options: CallOptions,
) -> Result<ReadResourceResult, ErrorData> {
    let contents = match ResourceUri::parse(uri).ok_or_else(|| not_found(uri))? {
        ResourceUri::Page { name } => {
            let text = page(&name).ok_or_else(|| not_found(uri))?;
            ResourceContents::text(text, uri).with_mime_type(MARKDOWN)
        }
        ResourceUri::JobLog { id } => {
            let text = end_of_log(registry, session, &id)
                .await
                .map_err(|error| refused_at(uri, &error))?;
            ResourceContents::text(text, uri)
        }
        ResourceUri::File { workspace, path } => {
            let response = registry.read_resource(session, (&workspace, &path), options).await;
            contents(response.map_err(|error| refused_at(uri, &error))?, uri)
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn end_of_log(
    registry: &Registry,
    session: &Arc<Session>,
    id: &str,
) -> Result<String, Failure> {
    let end = registry.job_log(session, id, 0, 0).await?.log_bytes;
    let from = end.saturating_sub(MAX_LOG_BYTES);
    let at_most = usize::try_from(MAX_LOG_BYTES).unwrap_or(usize::MAX);
    let part = registry.job_log(session, id, from, at_most).await?;
    if from == 0 {
        return Ok(part.text);
    }
    Ok(format!(
        "[the first {from} bytes are left out; BashOutput with cursor 0 reads them]\n{}",
        part.text
    ))
}

fn contents(response: ToolResponse, uri: &str) -> ResourceContents {
    match response.content.into_iter().next() {
        Some(ToolContent::Image { mime, bytes }) => {
            ResourceContents::blob(STANDARD.encode(bytes), uri).with_mime_type(mime)
        }
        Some(ToolContent::Text(text)) => ResourceContents::text(text, uri),
        None => ResourceContents::text("", uri),
    }
}

pub(super) fn not_found(uri: &str) -> ErrorData {
    let message = "no such resource; resources/templates/list has the forms of URIs";
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

pub(super) fn refused_at(uri: &str, failure: &Failure) -> ErrorData {
    match failure.code {
        Code::NotFound | Code::JobNotFound | Code::UnknownWorkspace => {
            let data = json!({ "uri": uri, "error": failure.envelope().error });
            ErrorData::resource_not_found(failure.message.clone(), Some(data))
        }
        _ => refused(failure),
    }
}

fn refused(failure: &Failure) -> ErrorData {
    let data = Some(json!(failure.envelope()));
    match failure.code {
        Code::Io | Code::Internal => ErrorData::internal_error(failure.message.clone(), data),
        _ => ErrorData::invalid_params(failure.message.clone(), data),
    }
}
