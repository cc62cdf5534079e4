//! The revision 2026-07-28: every request stands alone, and the SDK serves it.

use std::{fmt, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, ServerHandler,
    model::RequestId,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::never::NeverSessionManager,
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    error_response,
    handler_scope::HandlerScope,
    options::{HttpOptions, ReplyFormat},
};
use crate::{limits::KEEP_ALIVE, panic_shield::PanicShield};

/// What the SDK insists on, word by word; the endpoint has already looked at what was really sent.
const ACCEPT: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Answers requests of the revision without sessions.
///
/// A reply is plain JSON unless something comes before it, or the operator wants streams. There is nothing to resume, and a client
/// that closes its response cancels the call: in this revision that is how HTTP clients cancel.
#[derive(Clone)]
pub(crate) struct Stateless {
    serve: Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>,
}

impl fmt::Debug for Stateless {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stateless")
    }
}

impl Stateless {
    /// Prepares the SDK's service. `calls` counts the running calls, `stop` ends all of them.
    pub(crate) fn new<H, F>(
        options: &HttpOptions,
        factory: Arc<F>,
        calls: TaskTracker,
        stop: CancellationToken,
    ) -> Self
    where
        H: ServerHandler,
        F: Fn(HandlerScope) -> H + Send + Sync + 'static,
    {
        // Names and origins have been checked by the gate, for this and every other path.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_legacy_session_mode(false)
            .with_json_response(options.reply_format == ReplyFormat::Json)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_max_request_body_bytes(options.max_body_bytes)
            .with_cancellation_token(stop);
        let make = move || Ok(PanicShield::new(factory(HandlerScope::Request), calls.clone()));
        let service =
            StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config);
        let serve = move |request: Request| -> BoxFuture<'static, Response> {
            let service = service.clone();
            Box::pin(async move { service.handle(request).await.map(Body::new) })
        };
        Self { serve: Arc::new(serve) }
    }

    /// Answers one message that is known to be JSON.
    pub(crate) async fn post(
        &self,
        mut parts: Parts,
        body: Bytes,
        identifier: Option<RequestId>,
    ) -> Response {
        parts.headers.insert(header::ACCEPT, ACCEPT);
        let response = (self.serve)(Request::from_parts(parts, Body::from(body))).await;
        // The SDK blames the media type for JSON of the wrong shape; the endpoint checked the type.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let error = ErrorData::invalid_request("not a JSON-RPC 2.0 message", None);
            return error_response::refusal(StatusCode::BAD_REQUEST, identifier, error);
        }
        response
    }
}
