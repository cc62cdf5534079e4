//! Tools for callers of different rights: each request is served for whoever sent it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::http::Extensions;
use axum::http::request::Parts;
use carrel_domain::Code;
use carrel_tools::{CallOptions, Definition, Interface, Session, ToolResponse};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};

use super::audience::{Audience, Facts};
use super::handles::Handles;
use super::{HANDLE, encode, progress};
use crate::http::{Scope, SessionOwner};

/// Decides what a caller is offered and runs it. `head` are the extensions of the request, where whoever
/// let it in has put who asks.
#[async_trait]
pub trait Offer: fmt::Debug + Send + Sync + 'static {
    /// Returns the tools that the caller may use.
    fn tools(&self, head: &Extensions) -> Vec<Definition>;

    /// Calls a tool for the caller.
    async fn call(
        &self,
        head: &Extensions,
        session: &Arc<Session>,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse;

    /// Ends what a session left running.
    fn ended(&self, session: &Arc<Session>);

    /// Tells an agent what it has before it.
    fn instructions(&self) -> String;
}

/// Serves an offer. Makes a handler for each session.
#[derive(Clone, Debug)]
pub struct OfferServer {
    offer: Arc<dyn Offer>,
    handles: Arc<Handles>,
}

/// Serves the calls of one session, or one call of the revision without.
#[derive(Debug)]
pub struct OfferHandler {
    server: OfferServer,
    /// None if each call says which session it belongs to.
    session: Option<Arc<Session>>,
}

impl OfferServer {
    /// Prepares to serve.
    pub fn new(offer: Arc<dyn Offer>) -> Self {
        Self { offer, handles: Arc::default() }
    }

    /// Makes the handler for a session, or for one request.
    pub fn for_http(&self, scope: &Scope) -> OfferHandler {
        let session = match scope {
            Scope::Session(id) => Some(Session::new(format!("mcp:{}", encode::short(id.as_str())))),
            Scope::Request => None,
        };
        OfferHandler { server: self.clone(), session }
    }
}

impl Drop for OfferHandler {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            self.server.offer.ended(session);
        }
    }
}

impl OfferHandler {
    fn session(&self, head: &Extensions, context: &RequestContext<RoleServer>) -> Arc<Session> {
        if let Some(session) = &self.session {
            return Arc::clone(session);
        }
        // The same word of another caller is another session.
        let owner = head.get::<SessionOwner>().cloned().unwrap_or_default();
        let handle = context.meta.get(HANDLE).and_then(Value::as_str).unwrap_or_default();
        self.server.handles.session(Some(&format!("{} {handle}", owner.0)))
    }
}

/// Finds the head of a request.
fn head(context: &RequestContext<RoleServer>) -> Result<&Extensions, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let missing = || ErrorData::internal_error("the head of the request is missing", None);
    parts.map(|parts| &parts.extensions).ok_or_else(missing)
}

impl ServerHandler for OfferHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("carrel", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.server.offer.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let audience = Audience::of(Facts::Auto, &context);
        let tools = self.server.offer.tools(head(&context)?);
        let tools: Vec<Tool> = tools.iter().map(|tool| audience.tool(encode::tool(tool))).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let head = head(&context)?;
        let session = self.session(head, &context);
        let (progress, news) = progress::channel(&context);
        let cancel = context.ct.clone();
        let options = CallOptions { cancel, progress, ..CallOptions::new(Interface::Http) };
        let arguments = request.arguments.unwrap_or_default();
        let call = self.server.offer.call(head, &session, &request.name, arguments, options);
        let answer = progress::while_telling(call, news, &context.peer).await;
        let code = answer.structured["error"]["code"].as_str();
        if answer.is_error && code == Some(Code::UnknownTool.name()) {
            return Err(ErrorData::invalid_params(answer.text(), Some(answer.structured)));
        }
        Ok(Audience::of(Facts::Auto, &context).result(encode::result(answer)).into())
    }
}
