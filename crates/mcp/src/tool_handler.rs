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
//!
//! A provider with a registry of its own also has [`tasks`], [`resources`] with [`subscriptions`], and
//! [`prompts`].

mod definition_view;
mod encode;
mod progress;
mod prompts;
mod reply_view;
mod resource_uri;
mod resources;
mod roots_question;
mod stateless_sessions;
mod subscriptions;
mod tasks;
mod tool_provider;

use std::sync::Arc;

use crate::http::{HandlerScope, SessionOwner};
use axum::http::Extensions;
use axum::http::request::Parts;
use carrel_domain::Code;
use carrel_tools::{CallOptions, Interface, Registry, Session, SessionEnd, Workspaces};
pub use definition_view::DefinitionDetail;
use reply_view::ReplyView;
pub use reply_view::{FactsMode, reply_for_client, tool_for_one_workspace};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
pub use roots_question::RootsMode;
use roots_question::{RootsQuestion, can_be_asked};
use stateless_sessions::StatelessSessions;
use subscriptions::{Observer, SessionSubscriptions, SubscriptionCount};
use tasks::{LongCall, TaskTable};
use tokio_util::sync::CancellationToken;
use tool_provider::RegistryTools;
pub use tool_provider::ToolProvider;

/// The field of `_meta` in which a client of the revision without sessions names its own session.
const SESSION_HANDLE: &str = "dev.carrel/session";

/// Makes the handlers through which clients call the tools of one provider. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ToolServer {
    provider: Arc<dyn ToolProvider>,
    stateless: Arc<StatelessSessions>,
    tasks: Arc<TaskTable>,
    subscriptions: SubscriptionCount,
    facts: FactsMode,
    detail: DefinitionDetail,
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
    end: SessionEnd,
    /// Cancelled with the session, and with it the tasks that it started.
    tasks: CancellationToken,
    subscriptions: SessionSubscriptions,
}

impl ToolServer {
    /// Serves the tools of a provider.
    pub fn new(provider: Arc<dyn ToolProvider>, facts: FactsMode) -> Self {
        let (detail, roots) = (DefinitionDetail::default(), RootsMode::default());
        let (stateless, tasks) = (Arc::default(), Arc::default());
        let subscriptions = SubscriptionCount::default();
        Self { provider, stateless, tasks, subscriptions, facts, detail, roots }
    }

    /// Sets how much definitions say.
    #[must_use]
    pub fn with_definitions(self, detail: DefinitionDetail) -> Self {
        Self { detail, ..self }
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
        self.handler(Interface::Stdio, Some(Session::of_process("stdio")))
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
            let end = match interface {
                Interface::Stdio => SessionEnd::Server,
                _ => SessionEnd::Session,
            };
            let (tasks, subscriptions) =
                (CancellationToken::new(), SessionSubscriptions::default());
            OwnedSession { session, roots, end, tasks, subscriptions }
        });
        ToolHandler { server: self.clone(), interface, session }
    }
}

impl Drop for OwnedSession {
    fn drop(&mut self) {
        let session = Arc::clone(&self.session);
        session.note_end(self.end);
        self.tasks.cancel();
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

    /// Returns the registry and the session of a request, once the client's roots are known; a refusal of the
    /// method if the provider has no registry of its own.
    async fn registry_and_session(
        &self,
        context: &RequestContext<RoleServer>,
        (method, capability): (&str, &str),
    ) -> Result<(Arc<Registry>, Arc<Session>), ErrorData> {
        let Some(registry) = self.server.provider.registry() else {
            return not_offered(method, capability);
        };
        self.wait_for_roots(context).await;
        Ok((Arc::clone(registry), self.session(context, &request_extensions(context))))
    }

    fn options(&self, context: &RequestContext<RoleServer>) -> CallOptions {
        CallOptions { cancel: context.ct.clone(), ..CallOptions::new(self.interface) }
    }

    async fn wait_for_roots(&self, context: &RequestContext<RoleServer>) {
        if let Some((roots, workspaces)) = self.roots(&context.peer) {
            roots.wait(workspaces).await;
        }
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

/// Encodes the reply of a call. An unknown tool is an error of the protocol.
fn answer(
    view: ReplyView,
    reply: carrel_tools::ToolResponse,
) -> Result<CallToolResponse, ErrorData> {
    let code = reply.structured["error"]["code"].as_str();
    if reply.is_error && code == Some(Code::UnknownTool.name()) {
        return Err(ErrorData::invalid_params(reply.text(), Some(reply.structured)));
    }
    Ok(view.result(encode::result(reply)).into())
}

/// Refuses a method of a capability that the server does not declare. The SDK answers some of them with an
/// empty list, as if there were the capability.
fn not_offered<T>(method: &str, capability: &str) -> Result<T, ErrorData> {
    let message = format!("{method}: this server offers no {capability}");
    Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
}

impl ServerHandler for ToolHandler {
    fn get_info(&self) -> ServerConfig {
        let offered = ServerCapabilities::builder().enable_tools();
        let capabilities = match self.server.provider.registry() {
            Some(_) => offered
                .enable_tasks()
                .enable_resources()
                .enable_resources_subscribe()
                .enable_prompts()
                .build(),
            None => offered.build(),
        };
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
        let (provider, extensions) = (&self.server.provider, request_extensions(&context));
        let workspaces = provider.workspace_count(&extensions);
        let tools = self.server.detail.tools(&provider.tools(&extensions), workspaces);
        let tools = tools.into_iter().map(|tool| view.tool(tool)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.wait_for_roots(&context).await;
        let extensions = request_extensions(&context);
        let session = self.session(&context, &extensions);
        if let Some(registry) = self.server.provider.registry()
            && let Some(kind) = LongCall::of(&request, &context)
        {
            let server = (registry, &session);
            return self.call_as_task(kind, request, server, &context, extensions).await;
        }
        let (progress, notifications) = progress::channel(&context);
        let cancel = context.ct.clone();
        let options = CallOptions { cancel, progress, ..CallOptions::new(self.interface) };
        let arguments = request.arguments.unwrap_or_default();
        let provider = &self.server.provider;
        let call = provider.call(&extensions, &session, &request.name, arguments, options);
        let reply = progress::forward_during(call, notifications, &context.peer).await;
        answer(ReplyView::for_request(self.server.facts, &context), reply)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let (registry, session) =
            self.registry_and_session(&context, ("tasks/get", "tasks")).await?;
        let view = ReplyView::for_request(self.server.facts, &context);
        self.task_state(&request.task_id, (&registry, &session), view).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (registry, session) =
            self.registry_and_session(&context, ("tasks/update", "tasks")).await?;
        // No task asks for input, so there is nothing to answer, which is no error.
        let job = registry.job(&session, &request.task_id).await;
        job.map(|_| ()).map_err(|_| tasks::unknown(&request.task_id))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (registry, session) =
            self.registry_and_session(&context, ("tasks/cancel", "tasks")).await?;
        self.end_task(&request.task_id, (&registry, &session)).await
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
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (registry, _) = self.registry_and_session(&context, ("prompts/get", "prompts")).await?;
        prompts::get(&registry, &request).map(GetPromptResponse::from)
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (registry, _) =
            self.registry_and_session(&context, ("prompts/list", "prompts")).await?;
        resources::only_page("prompts/list", page.as_ref())?;
        Ok(prompts::list(&registry))
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (registry, session) =
            self.registry_and_session(&context, ("resources/list", "resources")).await?;
        resources::list(&registry, &session, page, self.options(&context)).await
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        const METHOD: &str = "resources/templates/list";
        self.registry_and_session(&context, (METHOD, "resources")).await?;
        resources::only_page(METHOD, page.as_ref())?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (registry, session) =
            self.registry_and_session(&context, ("resources/read", "resources")).await?;
        let options = self.options(&context);
        let read = resources::read(&registry, &session, &request.uri, options).await;
        read.map(ReadResourceResponse::from)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        const METHOD: (&str, &str) = ("resources/subscribe", "subscriptions");
        let (registry, session) = self.registry_and_session(&context, METHOD).await?;
        let Some(owned) = &self.session else { return not_offered(METHOD.0, METHOD.1) };
        let (options, count) = (self.options(&context), &self.server.subscriptions);
        let client = (&context.peer, &owned.tasks);
        let observer = Observer { registry, session };
        owned.subscriptions.add(request.uri, observer, count, options, client).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        const METHOD: (&str, &str) = ("resources/unsubscribe", "subscriptions");
        self.registry_and_session(&context, METHOD).await?;
        let Some(owned) = &self.session else { return not_offered(METHOD.0, METHOD.1) };
        owned.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.server.provider.registry().map(|_| subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let (registry, session) =
            self.registry_and_session(request, ("subscriptions/listen", "subscriptions")).await?;
        let observer = Observer { registry, session };
        let options = self.options(request);
        subscriptions::listen(&context, observer, &self.server.subscriptions, options).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.ask_for_roots(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.ask_for_roots(context).await;
    }
}
