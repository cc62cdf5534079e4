//! The trace span of a request. Like an audit event, it has the route pattern and not the path.

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use carrel_traces::TraceParent;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::audit::method_name;

/// The header of W3C Trace Context that names the parent span.
pub(crate) const TRACE_PARENT: &str = "traceparent";

/// Middleware that runs a request in a span.
///
/// The span context is also an extension of the request, for handlers that continue in another task (`/mcp`).
pub(crate) async fn span_request(mut request: Request, next: Next) -> Response {
    let span = begin(&request);
    if let Some(here) = span.in_scope(carrel_traces::current_context) {
        request.extensions_mut().insert(here);
    }
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", status.as_str());
    }
    response
}

fn begin(request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let method = method_name(request.method());
    // OpenTelemetry prescribes `_OTHER` for unknown methods, and the span name `HTTP`.
    let (method, verb) = if method == "OTHER" { ("_OTHER", "HTTP") } else { (method, method) };
    carrel_traces::span!(
        parent(request.headers()),
        "request",
        otel.name = %route.map_or_else(|| verb.to_owned(), |route| format!("{verb} {route}")),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        url.scheme = "http",
        client.address = Empty,
        carrel.request.id = Empty,
        carrel.workspace.id = Empty,
        carrel.task.id = Empty,
        "error.type" = Empty,
    )
}

/// Returns the parent span of a request. A missing, repeated or malformed header means none.
fn parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut named = headers.get_all(TRACE_PARENT).iter();
    let (first, None) = (named.next()?, named.next()) else { return None };
    first.to_str().ok()?.trim().parse().ok()
}
