//! Files of workspaces as resources of MCP.
//!
//! A resource is read and listed through the registry, as by a tool that no interface offers: the workspace
//! is chosen from the session's view, known secrets are masked, and a refusal is an audit event. Sensitive
//! names are neither listed nor read, since a client may show resources unasked. Reading a resource does not
//! count as reading the file, because a client need not show it to its model.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use carrel_domain::{Code, Failure};
use carrel_edit::{Content, Document};
use carrel_fsroot::Identity;
use carrel_search::{Cancel, GlobRequest, Order, Scope, Sensitive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::files::{WorkspaceFiles, check_is_text, required_path, shown};
use crate::named_workspace::NamedWorkspace;
use crate::registry::Registry;
use crate::response::{Reply, ToolContent, ToolResponse};
use crate::session::Session;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::{CallOptions, ToolContext};

/// Larger files are refused, since a client gets the whole file; `Read` returns parts of it.
const MAX_RESOURCE_BYTES: u64 = 512 * 1024;

/// Files that all pages of a listing hold together; a client searches in larger workspaces.
pub const MAX_LISTED_RESOURCES: usize = 5000;

/// A state of a file, to be compared with a later one. It says nothing about the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp(Option<(Identity, u64, SystemTime)>);

impl FileStamp {
    /// Returns whether the file was changed at this time or later.
    pub fn is_changed_since(&self, time: SystemTime) -> bool {
        self.0.as_ref().is_some_and(|(_, _, changed)| *changed >= time)
    }
}

/// Reads one file.
struct ResourceFile;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct PathInput {
    path: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ResourceFacts {
    path: String,
}

impl Tool for ResourceFile {
    type Input = PathInput;
    type Facts = ResourceFacts;

    const ABOUT: About = About { name: "resources/read", title: "Read a resource", ..About::READ };

    async fn call(context: &ToolContext, input: PathInput) -> ToolResult<ResourceFacts> {
        let files = WorkspaceFiles::of(context);
        blocking(move || read(&files, &input.path)).await
    }
}

fn read(files: &WorkspaceFiles, path: &str) -> ToolResult<ResourceFacts> {
    let path = required_path(files, "path", path)?;
    let name = shown(&path);
    let (_, metadata) = files.root().browse().open_file(&path)?;
    if metadata.size > MAX_RESOURCE_BYTES {
        let message = format!(
            "{name} has {} bytes; a resource has at most {MAX_RESOURCE_BYTES}, Read returns parts",
            metadata.size
        );
        return Err(Failure::new(Code::TooLarge, message).with("path", name));
    }
    let bytes = files.root().browse().read(&path, MAX_RESOURCE_BYTES)?;
    let content = match Content::of(&bytes) {
        Content::Image(format) => ToolContent::Image { mime: format.mime_type(), bytes },
        Content::Text | Content::Binary => {
            check_is_text(&bytes, &name)?;
            ToolContent::Text(Document::decode(bytes).text().to_owned())
        }
    };
    Ok(Reply::new(vec![content], ResourceFacts { path: name }))
}

/// Checks one file without reading it.
struct WatchedFile;

impl Tool for WatchedFile {
    type Input = PathInput;
    type Facts = ResourceFacts;

    const ABOUT: About =
        About { name: "resources/subscribe", title: "Watch a resource", ..About::READ };

    async fn call(context: &ToolContext, input: PathInput) -> ToolResult<ResourceFacts> {
        let files = WorkspaceFiles::of(context);
        let check = move || {
            let path = required_path(&files, "path", &input.path)?;
            match files.root().browse().metadata(&path) {
                // A file may be watched before it exists.
                Err(error) if !error.is_not_found() => Err(error.into()),
                _ => Ok(Reply::text("", ResourceFacts { path: shown(&path) })),
            }
        };
        blocking(check).await
    }
}

/// Lists the files of a workspace by path.
struct ResourceFiles;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct ListInput {
    limit: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ListedFacts {
    paths: Vec<String>,
}

impl Tool for ResourceFiles {
    type Input = ListInput;
    type Facts = ListedFacts;

    const ABOUT: About = About { name: "resources/list", title: "List resources", ..About::READ };

    async fn call(context: &ToolContext, input: ListInput) -> ToolResult<ListedFacts> {
        let limit = input.limit;
        let found = crate::files::run_search(context, move |workspace, cancel| {
            glob(workspace, limit, cancel)
        });
        let paths = found.await?;
        Ok(Reply::text("", ListedFacts { paths }))
    }
}

fn glob(
    workspace: &NamedWorkspace,
    limit: usize,
    cancel: &Cancel,
) -> Result<Vec<String>, carrel_search::Error> {
    let scope = Scope { sensitive: Sensitive::Hidden, ..Scope::whole(workspace.files()) };
    let request = GlobRequest { order: Order::Path, limit, ..GlobRequest::new("*") };
    let report = carrel_search::glob(&scope, &request, cancel)?;
    // A name that is no text has no URI.
    let paths =
        report.files.into_iter().filter_map(|file| file.path.into_os_string().into_string().ok());
    Ok(paths.collect())
}

impl Registry {
    /// Reads a file as a resource: one block of content.
    pub async fn read_resource(
        &self,
        session: &Arc<Session>,
        (workspace, path): (&str, &str),
        options: CallOptions,
    ) -> Result<ToolResponse, Failure> {
        let input = PathInput { path: path.to_owned() };
        let called = self.call_typed_in::<ResourceFile>(session, Some(workspace), input, options);
        called.await.map(|(_, response)| response)
    }

    /// Checks that a file may be watched. One that does not exist may.
    pub async fn check_watchable(
        &self,
        session: &Arc<Session>,
        (workspace, path): (&str, &str),
        options: CallOptions,
    ) -> Result<(), Failure> {
        let input = PathInput { path: path.to_owned() };
        let called = self.call_typed_in::<WatchedFile>(session, Some(workspace), input, options);
        called.await.map(|_| ())
    }

    /// Lists at most `limit` files of the session's workspaces: the name of the workspace, and the path.
    /// Hidden and ignored files are left out.
    pub async fn list_resources(
        &self,
        session: &Arc<Session>,
        limit: usize,
        options: CallOptions,
    ) -> Result<Vec<(String, String)>, Failure> {
        let limit = limit.min(MAX_LISTED_RESOURCES);
        let workspaces = self.toolbox().workspaces_of(session)?;
        let mut files = Vec::new();
        for workspace in workspaces.iter() {
            let input = ListInput { limit: limit - files.len() };
            if input.limit == 0 {
                break;
            }
            let name = workspace.name();
            let listed =
                self.call_typed_in::<ResourceFiles>(session, Some(name), input, options.clone());
            let (facts, _) = listed.await?;
            files.extend(facts.paths.into_iter().map(|path| (name.to_owned(), path)));
        }
        Ok(files)
    }

    /// Returns the state of a file. One that is missing, or that the session may no longer see, has the same
    /// state. Polling it makes no audit events.
    pub async fn file_stamp(
        &self,
        session: &Arc<Session>,
        workspace: &str,
        path: &str,
    ) -> FileStamp {
        let found = self.toolbox().workspaces_of(session);
        let Ok(workspace) = found.and_then(|all| all.named(workspace)) else {
            return FileStamp(None);
        };
        let path = workspace.relative(path);
        let stamp = move || Ok(FileStamp(stamp(&workspace, &path)));
        blocking(stamp).await.unwrap_or(FileStamp(None))
    }
}

fn stamp(workspace: &NamedWorkspace, path: &Path) -> Option<(Identity, u64, SystemTime)> {
    let metadata = workspace.files().browse().metadata(path).ok()?;
    Some((metadata.identity, metadata.size, metadata.changed))
}
