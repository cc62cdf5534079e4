//! The tools as a handler of the protocol.

mod audience;
mod encode;
mod handles;
mod offer;
mod progress;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carrel_domain::Code;
use carrel_tools::{CallOptions, Interface, Registry, Session};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::http::Scope;
use audience::Audience;
pub use audience::{Facts, content_for, plain_tool};
use handles::Handles;
pub use offer::{Offer, OfferHandler, OfferServer};

/// The field of `_meta` in which a client of the revision without sessions names its own.
const HANDLE: &str = "dev.carrel/session";

/// How long the first call waits for a client that has roots to say which.
const ROOTS_PATIENCE: Duration = Duration::from_secs(1);

/// Serves the tools of a registry. Makes a handler for each session.
#[derive(Clone, Debug)]
pub struct ToolServer {
    registry: Arc<Registry>,
    tools: Arc<Vec<Tool>>,
    handles: Arc<Handles>,
    facts: Facts,
}

/// Serves the calls of one session, or one call of the revision without.
#[derive(Debug)]
pub struct ToolHandler {
    server: ToolServer,
    interface: Interface,
    /// None if each call says which session it belongs to.
    session: Option<Own>,
}

/// A session that ends with its handler.
#[derive(Debug)]
struct Own {
    session: Arc<Session>,
    registry: Arc<Registry>,
    /// Whether the client has said what it has open, or need not be waited for.
    settled: watch::Sender<bool>,
}

impl ToolServer {
    /// Prepares to serve the tools of a registry.
    pub fn new(registry: Arc<Registry>, facts: Facts) -> Self {
        let tools = registry.definitions().map(encode::tool).collect();
        Self { registry, tools: Arc::new(tools), handles: Arc::default(), facts }
    }

    /// Makes the handler for the one client of stdin and stdout.
    pub fn for_stdio(&self) -> ToolHandler {
        self.handler(Interface::Stdio, Some("stdio".to_owned()))
    }

    /// Makes the handler for a session over HTTP, or for one request.
    pub fn for_http(&self, scope: &Scope) -> ToolHandler {
        match scope {
            Scope::Session(id) => self.handler(Interface::Http, Some(encode::short(id.as_str()))),
            Scope::Request => self.handler(Interface::Http, None),
        }
    }

    fn handler(&self, interface: Interface, session: Option<String>) -> ToolHandler {
        let session = session.map(|id| Own {
            session: Session::new(id),
            registry: Arc::clone(&self.registry),
            settled: watch::Sender::new(false),
        });
        ToolHandler { server: self.clone(), interface, session }
    }
}

impl Drop for Own {
    /// Ends what the session left running.
    fn drop(&mut self) {
        let (registry, owner) = (Arc::clone(&self.registry), self.session.owner());
        if registry.toolbox().jobs.list_of(&owner).is_empty() {
            return;
        }
        // Without a runtime the server itself ends, and everything with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { registry.toolbox().jobs.stop_owner(&owner).await });
        }
    }
}

impl ToolHandler {
    fn session(&self, context: &RequestContext<RoleServer>) -> Arc<Session> {
        if let Some(own) = &self.session {
            return Arc::clone(&own.session);
        }
        let handle = context.meta.get(HANDLE).and_then(serde_json::Value::as_str);
        self.server.handles.session(handle)
    }

    /// Shows the session no more than what its client has open.
    #[expect(deprecated, reason = "clients of the revisions with sessions still have roots")]
    async fn narrow(&self, context: NotificationContext<RoleServer>) {
        let Some(own) = &self.session else { return };
        if !has_roots(&context.peer) {
            return;
        }
        match context.peer.list_roots().await {
            Ok(listed) => {
                let paths = listed.roots.iter().filter_map(|root| path_of(&root.uri));
                let roots: Vec<_> = paths.collect();
                debug!(?roots, "the client has roots");
                own.session.narrow(&self.server.registry.toolbox().workspaces, &roots);
            }
            Err(error) => warn!(%error, "the client did not say its roots"),
        }
        own.settled.send_replace(true);
    }

    /// Waits for what the client has open, so that no call sees more than that.
    async fn settled(&self, context: &RequestContext<RoleServer>) {
        let Some(own) = &self.session else { return };
        if !has_roots(&context.peer) {
            return;
        }
        let mut settled = own.settled.subscribe();
        let waited = tokio::time::timeout(ROOTS_PATIENCE, settled.wait_for(|settled| *settled));
        if waited.await.is_err() {
            own.settled.send_replace(true);
        }
    }
}

fn has_roots(peer: &Peer<RoleServer>) -> bool {
    peer.peer_info().is_some_and(|info| info.capabilities.roots.is_some())
}

/// Reads a `file:` address.
fn path_of(address: &str) -> Option<PathBuf> {
    let encoded = address.strip_prefix("file://")?;
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
            .with_instructions(encode::instructions(&self.server.registry))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let audience = Audience::of(self.server.facts, &context);
        let tools = self.server.tools.iter().map(|tool| audience.tool(tool.clone()));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.settled(&context).await;
        let session = self.session(&context);
        let (progress, news) = progress::channel(&context);
        let cancel = context.ct.clone();
        let options = CallOptions { cancel, progress, ..CallOptions::new(self.interface) };
        let arguments = request.arguments.unwrap_or_default();
        let call = self.server.registry.call(&session, &request.name, arguments, options);
        let answer = progress::while_telling(call, news, &context.peer).await;
        let code = answer.structured["error"]["code"].as_str();
        if answer.is_error && code == Some(Code::UnknownTool.name()) {
            return Err(ErrorData::invalid_params(answer.text(), Some(answer.structured)));
        }
        Ok(Audience::of(self.server.facts, &context).result(encode::result(answer)).into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.narrow(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.narrow(context).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_file_is_its_path() {
        assert_eq!(path_of("file:///a%20b/c"), Some(PathBuf::from("/a b/c")));
        assert_eq!(path_of("file://host/a"), None);
        assert_eq!(path_of("https://a"), None);
        assert_eq!(path_of("file:///a%2"), None);
    }
}
