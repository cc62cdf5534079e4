//! A workspace that is open for tools and uploads.

use std::sync::{Arc, Mutex};

use carrel_domain::{Timestamp, WorkspaceKey, sync};
use carrel_exec::JobStatus;
use carrel_store::Workspace;
use carrel_tools::{
    CallOptions, Failure, NamedWorkspace, Registry, Session, ToolResponse, ToolSelection, Toolbox,
    Upload, UploadedFile,
};
use serde_json::{Map, Value};

use crate::usage_cache::UsageCache;

/// A workspace that is open in this process: its row, its files, its tools and its cached usage.
#[derive(Debug)]
pub struct OpenWorkspace {
    /// The row, as it was when the workspace was opened.
    pub workspace: Workspace,
    /// The name of its directory.
    pub key: WorkspaceKey,
    usage: UsageCache,
    /// The time at which it was last handed out for a request.
    used: Mutex<Timestamp>,
    named: Arc<NamedWorkspace>,
    pub(crate) tools: Registry,
}

impl OpenWorkspace {
    pub(crate) fn new(
        workspace: Workspace,
        key: WorkspaceKey,
        usage: UsageCache,
        named: Arc<NamedWorkspace>,
        toolbox: Arc<Toolbox>,
        now: Timestamp,
    ) -> Self {
        let tools = Registry::new(toolbox, ToolSelection::ALL).without_operator_tools();
        Self { workspace, key, usage, used: Mutex::new(now), named, tools }
    }

    /// Calls a tool by name.
    pub async fn call(
        &self,
        session: &Arc<Session>,
        tool: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        self.tools.call(session, tool, arguments, options).await
    }

    /// Begins the upload of a file that arrives in parts. `expected` is its size, if the client sent it.
    pub async fn upload(&self, path: &str, expected: Option<u64>) -> Result<Upload, Failure> {
        Upload::begin(self.tools.toolbox(), &self.named, path, expected).await
    }

    /// Moves a complete upload to its path.
    pub async fn finish(&self, upload: Upload) -> Result<UploadedFile, Failure> {
        upload.finish(self.tools.toolbox()).await
    }

    /// Marks the cached usage as outdated: a write may have happened.
    pub fn expect_changes(&self) {
        self.usage.expect_changes();
    }

    /// Returns the workspace as its tools see it.
    pub fn named_workspace(&self) -> &Arc<NamedWorkspace> {
        &self.named
    }

    pub(crate) fn note_use(&self, now: Timestamp) {
        *sync::lock(&self.used) = now;
    }

    pub(crate) fn last_used(&self) -> Timestamp {
        *sync::lock(&self.used)
    }

    pub(crate) fn usage(&self) -> &UsageCache {
        &self.usage
    }

    pub(crate) fn toolbox(&self) -> &Arc<Toolbox> {
        self.tools.toolbox()
    }

    /// Returns whether a background job runs.
    pub(crate) fn is_busy(&self) -> bool {
        let jobs = self.tools.toolbox().jobs.list();
        jobs.iter().any(|job| matches!(job.status(), JobStatus::Running))
    }
}
