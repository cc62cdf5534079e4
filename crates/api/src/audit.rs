//! What is seen of every request: its number, what is counted, and what an auditor is told.
//!
//! Bodies, addresses and tokens are nobody's business here: an event has the route, not what the caller
//! wrote into it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use carrel_domain::{WorkspaceId, hex, sync};
use carrel_tools::{AuditEvent, Interface};
use tracing::Span;
use tracing::field::display;

use crate::auth::{Caller, random};
use crate::state::Api;

/// The header with the name of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of a name that a caller gives a request.
const MAX_REQUEST_ID: usize = 64;

/// Stands for a route that is none.
const NO_ROUTE: &str = "none";

/// Stands for a caller that is not believed, and for one without a name.
const NOBODY: &str = "nobody";
const UNNAMED: &str = "unnamed";

/// How the routes begin that name their workspace.
const OF_WORKSPACE: &str = "/api/workspaces/{workspace_id}";

/// What is answered to a caller who is gone.
const GONE: u16 = 499;

tokio::task_local! {
    static ASKED: Arc<RequestFacts>;
}

/// What is found out about a request while it is served.
#[derive(Debug, Default)]
struct RequestFacts {
    subject: OnceLock<Option<String>>,
    workspace: OnceLock<WorkspaceId>,
}

/// Says who asks.
pub(crate) fn record_caller(caller: &Caller) {
    // Outside of a request there is nobody to be told.
    let _ = ASKED.try_with(|asked| asked.subject.set(caller.subject.clone()));
}

/// Says which workspace a request is about.
pub(crate) fn record_workspace(workspace: WorkspaceId) {
    let _ = ASKED.try_with(|asked| asked.workspace.set(workspace));
}

/// How often each route was answered how.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts(Mutex<BTreeMap<(&'static str, String, u16), u64>>);

impl RequestCounts {
    fn count(&self, method: &'static str, route: &str, status: u16) {
        let mut counts = sync::lock(&self.0);
        *counts.entry((method, route.to_owned(), status)).or_default() += 1;
    }

    /// Returns what was counted.
    pub(crate) fn counts(&self) -> BTreeMap<(&'static str, String, u16), u64> {
        sync::lock(&self.0).clone()
    }
}

/// Watches a request.
pub(crate) async fn audit(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let mut watched = ObservedRequest {
        api,
        method: method_name(request.method()),
        route: route.map_or(NO_ROUTE, MatchedPath::as_str).to_owned(),
        id: request_id(request.headers()),
        asked: Arc::default(),
        begun: Instant::now(),
        status: GONE,
    };
    request.extensions_mut().insert(RequestId(watched.id.as_str().into()));
    let asked = Arc::clone(&watched.asked);
    if watched.route.starts_with(OF_WORKSPACE)
        && let Some(Ok(id)) = request.uri().path().split('/').nth(3).map(str::parse)
    {
        let _ = asked.workspace.set(id);
    }
    let mut response = ASKED.scope(asked, next.run(request)).await;
    watched.tell_span();
    watched.status = response.status().as_u16();
    if let Ok(id) = HeaderValue::from_str(&watched.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// A request that is being served. It is told about when it is over, however that came.
struct ObservedRequest {
    api: Api,
    method: &'static str,
    route: String,
    id: String,
    asked: Arc<RequestFacts>,
    begun: Instant,
    status: u16,
}

impl ObservedRequest {
    fn tell_span(&self) {
        let span = Span::current();
        span.record("carrel.request.id", &self.id);
        span.record("carrel.workspace.id", self.asked.workspace.get().map(display));
    }

    /// Tells whether an auditor wants to know: something changed, or was refused. Of the tools that
    /// agents call, each has an event of its own.
    fn matters(&self) -> bool {
        let changes = !matches!(self.method, "GET" | "HEAD" | "OPTIONS") && self.route != "/mcp";
        changes || is_refusal(self.status)
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        self.api.inner.requests.count(self.method, &self.route, self.status);
        if !self.matters() {
            return;
        }
        let event = AuditEvent::ApiCall {
            method: self.method.to_owned(),
            route: std::mem::take(&mut self.route),
            workspace: self.asked.workspace.get().map(WorkspaceId::to_string),
            status: self.status,
            request_id: std::mem::take(&mut self.id),
            duration_ms: self.begun.elapsed().as_secs_f64() * 1e3,
        };
        let caller = self.asked.subject.get().map(|name| name.as_deref().unwrap_or(UNNAMED));
        write_down(&self.api, caller, Interface::Rest, self.status, event);
    }
}

/// The name of a request, for whoever serves it.
#[derive(Clone, Debug)]
struct RequestId(Arc<str>);

/// A tool that an agent asked for with a request that is itself answered.
pub(crate) struct McpToolCall<'a> {
    pub(crate) head: &'a Extensions,
    pub(crate) caller: &'a Caller,
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) begun: Instant,
}

impl McpToolCall<'_> {
    /// Tells an auditor of a refusal.
    pub(crate) fn ended(&self, api: &Api, status: u16) {
        if !is_refusal(status) {
            return;
        }
        let event = AuditEvent::ApiCall {
            method: "POST".to_owned(),
            route: "/mcp".to_owned(),
            workspace: self.workspace.map(|id| id.to_string()),
            status,
            request_id: self.head.get::<RequestId>().map_or("", |id| &id.0).to_owned(),
            duration_ms: self.begun.elapsed().as_secs_f64() * 1e3,
        };
        let caller = self.caller.subject.as_deref().unwrap_or(UNNAMED);
        write_down(api, Some(caller), Interface::Http, status, event);
    }
}

fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403 | 429)
}

/// Writes something down, unless too much of the same was: there is no end to what can be refused.
fn write_down(
    api: &Api,
    caller: Option<&str>,
    interface: Interface,
    status: u16,
    event: AuditEvent,
) {
    let (name, inner) = (caller.unwrap_or(NOBODY), &api.inner);
    let is_cheap = is_refusal(status) || (caller.is_none() && status >= 400);
    if !is_cheap || inner.refusals.check(name.to_owned(), api.now()).is_ok() {
        inner.events.add(name, interface, event);
    }
}

/// Returns a word for a method, of which there are few.
pub(crate) fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "OTHER",
    }
}

/// Returns the name that the caller gives the request, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let usable = |id: &&str| (1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(plain);
    given.filter(usable).map_or_else(|| hex::encode(&random::<16>()), str::to_owned)
}
