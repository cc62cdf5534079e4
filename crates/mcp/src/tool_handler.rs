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
//! | HTTP, revision 2026-07-28, with a handle in `_meta` | one for each owner and handle, see [`stateless_sessions`] |
//! | HTTP, revision 2026-07-28, without a handle | one for each request |
//!
//! A session of a client that declares the capability `roots` is held to them ([`roots_question`]), so that
//! no call sees more of a workspace than the client has open.

mod encode;
mod progress;
mod reply_view;
mod roots_question;
mod stateless_sessions;
mod tool_provider;

use std::sync::Arc;

use crate::http::{HandlerScope, SessionOwner};
use axum::http::Extensions;
use axum::http::request::Parts;
use carrel_domain::Code;
use carrel_tools::{CallOptions, Interface, Registry, Session, Workspaces};
use reply_view::ReplyView;
pub use reply_view::{FactsMode, reply_for_client, text_only_tool};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
pub use roots_question::RootsMode;
use roots_question::{RootsQuestion, can_be_asked};
use stateless_sessions::StatelessSessions;
use tool_provider::RegistryTools;
pub use tool_provider::ToolProvider;

/// The field of `_meta` in which a client of the revision without sessions names its own session.
const SESSION_HANDLE: &str = "dev.carrel/session";

/// Makes the handlers through which clients call the tools of one provider. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ToolServer {
    provider: Arc<dyn ToolProvider>,
    stateless: Arc<StatelessSessions>,
    facts: FactsMode,
    roots: RootsMode,
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
    roots: RootsQuestion,
}

impl ToolServer {
    /// Serves the tools of a provider.
    pub fn new(provider: Arc<dyn ToolProvider>, facts: FactsMode) -> Self {
        Self { provider, stateless: Arc::default(), facts, roots: RootsMode::default() }
    }

    /// Sets the operator's choice for the roots of clients.
    #[must_use]
    pub fn with_roots(self, roots: RootsMode) -> Self {
        Self { roots, ..self }
    }

    /// Serves every tool of a registry to every client.
    pub fn for_registry(registry: Arc<Registry>, facts: FactsMode) -> Self {
        Self::new(Arc::new(RegistryTools(registry)), facts)
    }

    /// Makes the handler for the one client of standard input and output.
    pub fn for_stdio(&self) -> ToolHandler {
        self.handler(Interface::Stdio, Some(Session::new("stdio")))
    }

    /// Makes the handler for a session over HTTP, or for one request.
    pub fn for_http(&self, scope: &HandlerScope) -> ToolHandler {
        let session = match scope {
            HandlerScope::Session { id, owner } => {
                let id = format!("mcp:{}", encode::shortened_id(id.as_str()));
                Some(Session::of_owner(owner.into(), id))
            }
            HandlerScope::Request => None,
        };
        self.handler(Interface::Http, session)
    }

    fn handler(&self, interface: Interface, session: Option<Arc<Session>>) -> ToolHandler {
        let session = session.map(|session| {
            let roots = RootsQuestion::new(Arc::clone(&session));
            OwnedSession { session, roots }
        });
        ToolHandler { server: self.clone(), interface, session }
    }
}

impl Drop for OwnedSession {
    fn drop(&mut self) {
        let session = Arc::clone(&self.session);
        // Without a runtime the process itself is ending, and its commands with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { session.kill_jobs().await });
        }
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

    /// Returns the question for the client's roots, and the workspaces that they narrow; none if they do not
    /// matter or the client has none.
    fn roots(&self, peer: &Peer<RoleServer>) -> Option<(&RootsQuestion, &Workspaces)> {
        match self.server.roots {
            RootsMode::Ignore => None,
            RootsMode::Narrow => {
                let owned = self.session.as_ref().filter(|_| can_be_asked(peer))?;
                Some((&owned.roots, self.server.provider.workspaces()?))
            }
        }
    }

    async fn ask_for_roots(&self, context: NotificationContext<RoleServer>) {
        if let Some((roots, workspaces)) = self.roots(&context.peer) {
            roots.ask(&context.peer, workspaces).await;
        }
    }
}

/// Returns the extensions of the HTTP request that a message came in; stdio has none.
fn request_extensions(context: &RequestContext<RoleServer>) -> Extensions {
    context.extensions.get::<Parts>().map(|parts| parts.extensions.clone()).unwrap_or_default()
}

/// Refuses a method of a capability that the server does not declare. The SDK answers some of them with an
/// empty list, as if there were the capability.
fn not_offered<T>(method: &str, capability: &str) -> Result<T, ErrorData> {
    let message = format!("{method}: this server offers no {capability}; it offers tools");
    Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
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
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if page.is_some_and(|page| page.cursor.is_some()) {
            let message = "unknown cursor: tools/list has one page, leave the cursor out";
            return Err(ErrorData::invalid_params(message, None));
        }
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
        if let Some((roots, workspaces)) = self.roots(&context.peer) {
            roots.wait(workspaces).await;
        }
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

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        not_offered("completion/complete", "completions")
    }

    #[expect(deprecated, reason = "the older revisions still have this method")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        not_offered("logging/setLevel", "logging")
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        not_offered("prompts/get", "prompts")
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        not_offered("prompts/list", "prompts")
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        not_offered("resources/list", "resources")
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        not_offered("resources/templates/list", "resources")
    }

    async fn read_resource(
        &self,
        _: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        not_offered("resources/read", "resources")
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.ask_for_roots(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.ask_for_roots(context).await;
    }
}
