//! The revision 2026-07-28, where every request stands alone.
//!
//! The SDK's own streamable HTTP service serves these requests, with a handler made for each one. There is
//! no session, no resumption, and a client that closes its response cancels the call: in this revision
//! that is how HTTP clients cancel. Its own checks of hosts, origins and accepted types are off, since
//! access control and the header checks have done them for every request.

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

/// The SDK compares the header literally; the real one has been checked with its wildcards.
const ACCEPT: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The SDK's service for requests without a session.
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
    /// Prepares the service. Running calls are counted in `calls`; cancelling `stop` cancels them.
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

    /// Serves one message that is known to be JSON.
    pub(crate) async fn post(
        &self,
        mut parts: Parts,
        body: Bytes,
        identifier: Option<RequestId>,
    ) -> Response {
        parts.headers.insert(header::ACCEPT, ACCEPT);
        let response = (self.serve)(Request::from_parts(parts, Body::from(body))).await;
        // The SDK reports JSON of the wrong shape as a wrong media type, which has been checked already.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            let error = ErrorData::invalid_request("not a JSON-RPC 2.0 message", None);
            return error_response::error(StatusCode::BAD_REQUEST, identifier, error);
        }
        response
    }
}
