//! Tools as a handler of the Model Context Protocol.
//!
//! [`ToolServer`] is shared by all clients and makes one [`ToolHandler`] for each session, or for each
//! request of the revision without sessions. A handler translates: it picks the session of a call,
//! passes progress on, and encodes definitions and replies. Which tools exist, who may call them and
//! what a call does is decided by a [`ToolProvider`]; the registry of a local `carrel mcp` is one, the
//! API with its tokens is another.
//!
//! | client | session of a call |
//! |---|---|
//! | stdio | one, for the life of the process |
//! | HTTP, revisions with a handshake | one for each `Mcp-Session-Id`; ends with the handler |
//! | HTTP, revision 2026-07-28 | by the handle in `_meta`, see [`stateless_sessions`] |
//!
//! A client that declares the capability `roots` is asked for them once it is initialized, and its
//! first call waits up to a second for the reply, so that no call sees more of a workspace than the
//! client has open.

mod encode;
mod progress;
mod reply_view;
mod stateless_sessions;
mod tool_provider;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;
use axum::http::request::Parts;
use carrel_domain::Code;
use carrel_tools::{CallOptions, Interface, Registry, Session};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::http::{HandlerScope, SessionOwner};
use reply_view::ReplyView;
pub use reply_view::{FactsMode, reply_for_client, text_only_tool};
use stateless_sessions::StatelessSessions;
use tool_provider::RegistryTools;
pub use tool_provider::ToolProvider;

/// The field of `_meta` in which a client of the revision without sessions names its own session.
const SESSION_HANDLE: &str = "dev.carrel/session";

/// The longest that a call waits for the roots of a client that declared the capability. A client that
/// never replies would otherwise never be served.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes the handlers through which clients call the tools of one provider. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ToolServer {
    provider: Arc<dyn ToolProvider>,
    stateless: Arc<StatelessSessions>,
    facts: FactsMode,
}

/// Serves the calls of one session, or one request of the revision without sessions.
#[derive(Debug)]
pub struct ToolHandler {
    server: ToolServer,
    interface: Interface,
    /// `None` if each call names its session.
    session: Option<OwnedSession>,
}

/// A session that ends with its handler.
#[derive(Debug)]
struct OwnedSession {
    session: Arc<Session>,
    provider: Arc<dyn ToolProvider>,
    /// Becomes true when the client has named its roots, or took too long to.
    roots_settled: watch::Sender<bool>,
}

impl ToolServer {
    /// Serves the tools of a provider.
    pub fn new(provider: Arc<dyn ToolProvider>, facts: FactsMode) -> Self {
        Self { provider, stateless: Arc::default(), facts }
    }

    /// Serves every tool of a registry to every client.
    pub fn for_registry(registry: Arc<Registry>, facts: FactsMode) -> Self {
        Self::new(Arc::new(RegistryTools(registry)), facts)
    }

    /// Makes the handler for the one client of standard input and output.
    pub fn for_stdio(&self) -> ToolHandler {
        self.handler(Interface::Stdio, Some("stdio".to_owned()))
    }

    /// Makes the handler for a session over HTTP, or for one request.
    pub fn for_http(&self, scope: &HandlerScope) -> ToolHandler {
        let session = match scope {
            HandlerScope::Session(id) => Some(format!("mcp:{}", encode::shortened_id(id.as_str()))),
            HandlerScope::Request => None,
        };
        self.handler(Interface::Http, session)
    }

    fn handler(&self, interface: Interface, session: Option<String>) -> ToolHandler {
        let session = session.map(|id| OwnedSession {
            session: Session::new(id),
            provider: Arc::clone(&self.provider),
            roots_settled: watch::Sender::new(false),
        });
        ToolHandler { server: self.clone(), interface, session }
    }
}

impl Drop for OwnedSession {
    fn drop(&mut self) {
        self.provider.end_session(&self.session);
    }
}

impl ToolHandler {
    fn session(&self, context: &RequestContext<RoleServer>, request: &Extensions) -> Arc<Session> {
        if let Some(owned) = &self.session {
            return Arc::clone(&owned.session);
        }
        let owner = request.get::<SessionOwner>().cloned().unwrap_or_default();
        let handle = context.meta.get(SESSION_HANDLE).and_then(serde_json::Value::as_str);
        self.server.stateless.session(&owner, handle)
    }

    /// Asks the client for its roots and narrows the session to them.
    #[expect(deprecated, reason = "clients of the revisions with sessions still have roots")]
    async fn narrow_to_roots(&self, context: NotificationContext<RoleServer>) {
        let Some((owned, workspaces)) =
            self.session.as_ref().zip(self.server.provider.workspaces())
        else {
            return;
        };
        if !has_roots(&context.peer) {
            return;
        }
        match context.peer.list_roots().await {
            Ok(listed) => {
                let roots: Vec<_> =
                    listed.roots.iter().filter_map(|root| file_path(&root.uri)).collect();
                debug!(?roots, "the client has roots");
                owned.session.narrow(workspaces, &roots);
            }
            Err(error) => warn!(%error, "could not list the client's roots"),
        }
        owned.roots_settled.send_replace(true);
    }

    /// Waits for the client's roots, so that no call sees more than they cover.
    async fn wait_for_roots(&self, context: &RequestContext<RoleServer>) {
        let Some(owned) = &self.session else { return };
        if self.server.provider.workspaces().is_none() || !has_roots(&context.peer) {
            return;
        }
        let mut settled = owned.roots_settled.subscribe();
        let waited = tokio::time::timeout(ROOTS_TIMEOUT, settled.wait_for(|settled| *settled));
        if waited.await.is_err() {
            owned.roots_settled.send_replace(true);
        }
    }
}

fn has_roots(peer: &Peer<RoleServer>) -> bool {
    peer.peer_info().is_some_and(|info| info.capabilities.roots.is_some())
}

/// Returns the extensions of the HTTP request that a message came in; stdio has none.
fn request_extensions(context: &RequestContext<RoleServer>) -> Extensions {
    context.extensions.get::<Parts>().map(|parts| parts.extensions.clone()).unwrap_or_default()
}

/// Decodes a `file:` URI of this machine.
fn file_path(uri: &str) -> Option<PathBuf> {
    let encoded = uri.strip_prefix("file://")?;
    let mut path = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            path.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            path.push(byte);
        }
    }
    let path = PathBuf::from(String::from_utf8(path).ok()?);
    path.is_absolute().then_some(path)
}

impl ServerHandler for ToolHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("carrel", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.server.provider.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let view = ReplyView::for_request(self.server.facts, &context);
        let definitions = self.server.provider.tools(&request_extensions(&context));
        let tools = definitions.iter().map(|definition| view.tool(encode::tool(definition)));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.wait_for_roots(&context).await;
        let extensions = request_extensions(&context);
        let session = self.session(&context, &extensions);
        let (progress, notifications) = progress::channel(&context);
        let cancel = context.ct.clone();
        let options = CallOptions { cancel, progress, ..CallOptions::new(self.interface) };
        let arguments = request.arguments.unwrap_or_default();
        let provider = &self.server.provider;
        let call = provider.call(&extensions, &session, &request.name, arguments, options);
        let reply = progress::forward_during(call, notifications, &context.peer).await;
        let code = reply.structured["error"]["code"].as_str();
        if reply.is_error && code == Some(Code::UnknownTool.name()) {
            return Err(ErrorData::invalid_params(reply.text(), Some(reply.structured)));
        }
        let view = ReplyView::for_request(self.server.facts, &context);
        Ok(view.result(encode::result(reply)).into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.narrow_to_roots(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.narrow_to_roots(context).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uri_of_a_file_is_its_path() {
        assert_eq!(file_path("file:///a%20b/c"), Some(PathBuf::from("/a b/c")));
        assert_eq!(file_path("file://host/a"), None);
        assert_eq!(file_path("https://a"), None);
        assert_eq!(file_path("file:///a%2"), None);
    }
}
