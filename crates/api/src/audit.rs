//! Request ids, request counts and audit events.
//!
//! The middleware [`audit`] wraps every route. It gives a request an id (the client's `X-Request-ID`, or a
//! new one), counts it by method, route and status for `/metrics`, and adds an audit event for each mutation
//! and each refusal (401, 403, 429). A refusal at a boundary that no tool has recorded is another event,
//! `lifecycle.sandbox.violation`: every error reply hands its violation on in the response, so that no route
//! can forget it. Handlers report what only they learn, the caller and the workspace,
//! through a task-local value.
//!
//! The event is written when the guard [`ObservedRequest`] is dropped, so that a request whose client
//! disconnects is counted as well, with status 499. Events contain the route pattern, never the path, the
//! query, the body or a token.
//!
//! Refusals are rate limited for each caller: an attacker can cause them without end, and must not push the
//! events of others out of the log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use carrel_domain::{WorkspaceId, hex, sync};
use carrel_http::ConnectionEnds;
use carrel_tools::{AuditEvent, AuditedCall, Interface, Mask, Violation};
use tracing::Span;
use tracing::field::display;

use crate::auth::{Caller, random};
use crate::response::ErrorResponse;
use crate::state::Api;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of a client's request id; a longer one is replaced.
const MAX_REQUEST_ID: usize = 64;

/// The label of requests that no route matches. Their paths would make the labels unbounded.
const NO_ROUTE: &str = "none";

/// The labels of a caller without valid credentials, and of one whose token has no subject.
const NOBODY: &str = "nobody";
const UNNAMED: &str = "unnamed";

/// The part of a route before the id of its workspace, in the public API and in that of a worker.
const WORKSPACE_ROUTES: &str = "/workspaces/";

/// The status of a request whose client disconnected before the response; nginx uses the same.
const CLIENT_CLOSED_REQUEST: u16 = 499;

tokio::task_local! {
    static REQUEST_FACTS: Arc<RequestFacts>;
}

#[derive(Debug, Default)]
struct RequestFacts {
    subject: OnceLock<Option<String>>,
    workspace: OnceLock<WorkspaceId>,
}

pub(crate) fn record_caller(caller: &Caller) {
    // Outside of a request there is nothing to record.
    let _ = REQUEST_FACTS.try_with(|facts| facts.subject.set(caller.subject.clone()));
}

pub(crate) fn record_workspace(workspace: WorkspaceId) {
    let _ = REQUEST_FACTS.try_with(|facts| facts.workspace.set(workspace));
}

#[derive(Debug, Default)]
pub(crate) struct RequestCounts(Mutex<BTreeMap<(&'static str, String, u16), u64>>);

impl RequestCounts {
    fn count(&self, method: &'static str, route: &str, status: u16) {
        let mut counts = sync::lock(&self.0);
        *counts.entry((method, route.to_owned(), status)).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<(&'static str, String, u16), u64> {
        sync::lock(&self.0).clone()
    }
}

/// Middleware that observes a request from its start to its end.
pub(crate) async fn audit(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let mut watched = ObservedRequest {
        api,
        method: method_name(request.method()),
        route: route.map_or(NO_ROUTE, MatchedPath::as_str).to_owned(),
        id: request_id(request.headers()),
        facts: Arc::default(),
        started: Instant::now(),
        status: CLIENT_CLOSED_REQUEST,
        violation: None,
    };
    request.extensions_mut().insert(RequestId(watched.id.as_str().into()));
    record_client(&watched.api, &request);
    let facts = Arc::clone(&watched.facts);
    if watched.route.contains(WORKSPACE_ROUTES)
        && let Some((_, rest)) = request.uri().path().split_once(WORKSPACE_ROUTES)
        && let Some(Ok(id)) = rest.split('/').next().map(str::parse)
    {
        let _ = facts.workspace.set(id);
    }
    let mut response = REQUEST_FACTS.scope(facts, next.run(request)).await;
    watched.record_span();
    watched.status = response.status().as_u16();
    watched.violation = response.extensions_mut().remove();
    if let Ok(id) = HeaderValue::from_str(&watched.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Records the address of the client: the peer of the connection, or what a trusted proxy says about it.
fn record_client(api: &Api, request: &Request) {
    let forwarded = api.options.host_rules.forwarded(request.extensions(), request.headers());
    let peer = request.extensions().get::<ConnectionEnds>().map(|ends| ends.peer);
    Span::current().record("client.address", forwarded.client.or(peer).map(display));
}

/// A guard that counts and audits a request when it is dropped, also when the client disconnects.
struct ObservedRequest {
    api: Api,
    method: &'static str,
    route: String,
    id: String,
    facts: Arc<RequestFacts>,
    started: Instant,
    status: u16,
    /// The violation that the response is about.
    violation: Option<Violation>,
}

impl ObservedRequest {
    fn record_span(&self) {
        let span = Span::current();
        span.record("carrel.request.id", &self.id);
        span.record("carrel.workspace.id", self.facts.workspace.get().map(display));
    }

    /// Returns `true` for mutations and refusals. Tool calls over `/mcp` have audit events of their own.
    fn is_audited(&self) -> bool {
        let changes = !matches!(self.method, "GET" | "HEAD" | "OPTIONS") && self.route != "/mcp";
        changes || is_refusal(self.status)
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        self.api.inner.requests.count(self.method, &self.route, self.status);
        if !self.is_audited() {
            return;
        }
        let caller = self.facts.subject.get().map(|name| name.as_deref().unwrap_or(UNNAMED));
        ApiCall {
            api: &self.api,
            caller,
            interface: Interface::Rest,
            method: self.method,
            route: &self.route,
            workspace: self.facts.workspace.get().copied(),
            status: self.status,
            request_id: &self.id,
            started: self.started,
        }
        .audit(self.violation.take());
    }
}

#[derive(Clone, Debug)]
struct RequestId(Arc<str>);

/// A tool call over `/mcp`. The HTTP response is 200 even if the call is refused, so that a refusal is
/// audited here.
pub(crate) struct McpToolCall<'a> {
    pub(crate) head: &'a Extensions,
    pub(crate) caller: &'a Caller,
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) started: Instant,
}

impl McpToolCall<'_> {
    pub(crate) fn audit_refusal(&self, api: &Api, failed: &ErrorResponse) {
        let status = failed.status().as_u16();
        if !is_refusal(status) {
            return;
        }
        ApiCall {
            api,
            caller: Some(self.caller.subject.as_deref().unwrap_or(UNNAMED)),
            interface: Interface::Http,
            method: "POST",
            route: "/mcp",
            workspace: self.workspace,
            status,
            request_id: self.head.get::<RequestId>().map_or("", |id| &id.0),
            started: self.started,
        }
        .audit(failed.violation());
    }
}

fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403 | 429)
}

/// A call of the API that has ended, with the facts of its audit events.
struct ApiCall<'a> {
    api: &'a Api,
    /// None without valid credentials.
    caller: Option<&'a str>,
    interface: Interface,
    method: &'static str,
    route: &'a str,
    workspace: Option<WorkspaceId>,
    status: u16,
    request_id: &'a str,
    started: Instant,
}

impl ApiCall<'_> {
    /// Adds the audit events of the call, unless the caller has exhausted its rate of refusals.
    fn audit(self, violation: Option<Violation>) {
        let name = self.caller.unwrap_or(NOBODY);
        let is_rate_limited =
            is_refusal(self.status) || (self.caller.is_none() && self.status >= 400);
        let refusals = &self.api.inner.refusals;
        if is_rate_limited && refusals.check(name.to_owned(), self.api.now()).is_err() {
            return;
        }
        let workspace = self.workspace.map(|id| id.to_string());
        let events = &self.api.options.events;
        if let Some(violation) = violation {
            let audited_call = AuditedCall {
                session: name.to_owned(),
                interface: self.interface,
                tool: format!("{} {}", self.method, self.route),
                workspace: workspace.clone(),
                mask: Mask::default(),
            };
            events.add_violation(&audited_call, violation);
        }
        let event = AuditEvent::ApiCall {
            method: self.method.to_owned(),
            route: self.route.to_owned(),
            workspace,
            status: self.status,
            request_id: self.request_id.to_owned(),
            duration_ms: self.started.elapsed().as_secs_f64() * 1e3,
        };
        events.add(name, self.interface, event);
    }
}

/// Returns the method as a label. Unknown methods share one, since clients can invent them.
pub(crate) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| method == known).unwrap_or("OTHER")
}

/// Returns the client's request id if it is short and plain, or a random one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let usable = |id: &&str| (1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(plain);
    given.filter(usable).map_or_else(|| hex::encode(&random::<16>()), str::to_owned)
}
