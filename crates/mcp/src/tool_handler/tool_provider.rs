//! The source of the tools that a server offers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::http::Extensions;
use carrel_tools::{
    CallOptions, Definition, Registry, Session, ToolResponse, WorkspaceCount, Workspaces,
};
use serde_json::{Map, Value};

use super::encode;

/// Decides which tools a caller has, and runs them.
///
/// `request` are the extensions of the HTTP request, where the server that authenticated it has put
/// the caller; they are empty over stdio.
#[async_trait]
pub trait ToolProvider: fmt::Debug + Send + Sync + 'static {
    /// Returns the tools that the caller may use.
    fn tools(&self, request: &Extensions) -> Vec<Definition>;

    /// Calls a tool for the caller. A failure is a reply with `is_error`, and the code
    /// `E_UNKNOWN_TOOL` becomes an error of the protocol.
    async fn call(
        &self,
        request: &Extensions,
        session: &Arc<Session>,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse;

    /// Returns whether the caller has to choose from several workspaces.
    fn workspace_count(&self, request: &Extensions) -> WorkspaceCount;

    /// Returns the text that the client shows its model before the first call.
    fn instructions(&self) -> String;

    /// Returns the workspaces that a client's roots narrow; `None` if roots do not matter and clients
    /// are not asked for them.
    fn workspaces(&self) -> Option<&Workspaces> {
        None
    }

    /// Returns the registry of a provider that offers one registry to every caller. Such a provider also has
    /// tasks, resources and prompts, which are about the jobs and workspaces of the registry.
    fn registry(&self) -> Option<&Arc<Registry>> {
        None
    }
}

/// Offers every tool of a registry to every caller.
#[derive(Debug)]
pub(super) struct RegistryTools(pub(super) Arc<Registry>);

#[async_trait]
impl ToolProvider for RegistryTools {
    fn tools(&self, _: &Extensions) -> Vec<Definition> {
        self.0.definitions().cloned().collect()
    }

    async fn call(
        &self,
        _: &Extensions,
        session: &Arc<Session>,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        self.0.call(session, name, arguments, options).await
    }

    fn workspace_count(&self, _: &Extensions) -> WorkspaceCount {
        match self.0.toolbox().workspaces.len() {
            0 | 1 => WorkspaceCount::One,
            _ => WorkspaceCount::Several,
        }
    }

    fn instructions(&self) -> String {
        encode::instructions(&self.0)
    }

    fn workspaces(&self) -> Option<&Workspaces> {
        Some(&self.0.toolbox().workspaces)
    }

    fn registry(&self) -> Option<&Arc<Registry>> {
        Some(&self.0)
    }
}
