//! The source of the tools that a server offers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::http::Extensions;
use carrel_tools::{CallOptions, Definition, Registry, Session, ToolResponse, Workspaces};
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

    /// Ends the background commands of a session whose handler is gone. Called from `drop`, so the
    /// work has to be spawned.
    fn end_session(&self, session: &Arc<Session>);

    /// Returns the text that the client shows its model before the first call.
    fn instructions(&self) -> String;

    /// Returns the workspaces that a client's roots narrow; `None` if roots do not matter and clients
    /// are not asked for them.
    fn workspaces(&self) -> Option<&Workspaces> {
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

    fn end_session(&self, session: &Arc<Session>) {
        let registry = Arc::clone(&self.0);
        let owner = session.owner();
        if registry.toolbox().jobs.list_of(&owner).is_empty() {
            return;
        }
        // Without a runtime the process itself is ending, and its commands with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { registry.toolbox().jobs.stop_owner(&owner).await });
        }
    }

    fn instructions(&self) -> String {
        encode::instructions(&self.0)
    }

    fn workspaces(&self) -> Option<&Workspaces> {
        Some(&self.0.toolbox().workspaces)
    }
}
