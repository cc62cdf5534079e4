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

    fn instructions(&self) -> String {
        encode::instructions(&self.0)
    }

    fn workspaces(&self) -> Option<&Workspaces> {
        Some(&self.0.toolbox().workspaces)
    }
}
