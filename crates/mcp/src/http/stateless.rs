//! The revision 2026-07-28, where every request stands alone.
//!
//! The SDK's own streamable HTTP service serves these requests, with a handler made for each one. There is
//! no session, no resumption, and a client that closes its response cancels the call: in this revision
//! that is how HTTP clients cancel. Its own checks of hosts, origins and accepted types are off, since
//! access control and the header checks have done them for every request.
//!
//! Plain requests may take the [short way](super::direct) instead.

use std::{fmt, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData,
    model::{ErrorCode, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage},
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::never::NeverSessionManager,
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    direct::{self, InlineCall, PlainRequest, ResultShape, StatelessPeer},
    error_response,
    handler_scope::{HandlerScope, MakeHandler},
    options::{CallPath, HttpOptions, ReplyFormat},
};
use crate::{limits::KEEP_ALIVE, panic_shield::PanicShield};

/// The SDK compares the header literally; the real one has been checked with its wildcards.
const ACCEPT: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The SDK's service for requests without a session, and the short way around it.
pub(crate) struct Stateless {
    serve: Box<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>,
    /// None if no request may take the short way.
    direct: Option<Direct>,
}

/// The short way: a handler for each request, and the peer that they share.
struct Direct {
    make: MakeHandler,
    peer: StatelessPeer,
    calls: TaskTracker,
    stop: CancellationToken,
}

impl fmt::Debug for Stateless {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stateless")
    }
}

impl Stateless {
    /// Prepares the service. Running calls are counted in `calls`; cancelling `stop` cancels them.
    pub(crate) fn new(
        options: &HttpOptions,
        make: MakeHandler,
        calls: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_legacy_session_mode(false)
            .with_json_response(options.reply_format == ReplyFormat::Json)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_max_request_body_bytes(options.max_body_bytes)
            .with_cancellation_token(stop.clone());
        let direct = match (options.call_path, options.reply_format) {
            (CallPath::Direct, ReplyFormat::Json) => {
                let (make, calls) = (Arc::clone(&make), calls.clone());
                let peer = StatelessPeer::new(stop.clone());
                Some(Direct { make, peer, calls, stop })
            }
            (CallPath::Service, _) | (_, ReplyFormat::EventStream) => None,
        };
        let make = move || Ok(make(HandlerScope::Request, &calls));
        let service =
            StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config);
        let serve = move |request: Request| -> BoxFuture<'static, Response> {
            let service = service.clone();
            Box::pin(async move { service.handle(request).await.map(Body::new) })
        };
        Self { serve: Box::new(serve), direct }
    }

    /// Serves one message that is known to be JSON.
    pub(crate) async fn post(
        &self,
        mut parts: Parts,
        body: Bytes,
        identifier: Option<RequestId>,
    ) -> Response {
        if let Some(direct) = &self.direct
            && let Some(request) = PlainRequest::read(&body)
            && request.stands_alone(&parts.headers)
        {
            let handler = (direct.make)(HandlerScope::Request, &direct.calls);
            if handler.speaks(&ProtocolVersion::V_2026_07_28)
                && !request.tool().is_some_and(|tool| handler.repeats_arguments(tool))
            {
                return direct.serve(handler, request, parts).await;
            }
        }
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

impl Direct {
    async fn serve(&self, handler: PanicShield, request: PlainRequest, parts: Parts) -> Response {
        let PlainRequest { identifier, method, meta } = request;
        let mut context = RequestContext::new(identifier.clone(), self.peer.get());
        context.meta = meta;
        context.extensions.insert(parts);
        let cancel = context.ct.clone();
        let work = handler.dispatch(method, context, ResultShape::Typed);
        let call = InlineCall::cancelled_by_drop(work, self.calls.clone(), cancel);
        tokio::select! {
            biased;
            result = call => respond(&direct::reply(identifier, result)),
            // The call is cancelled, and its client has no reply to wait for.
            () = self.stop.cancelled() => error_response::overloaded(identifier, "the server stops"),
        }
    }
}

/// Encodes a reply with the status that the SDK gives it.
fn respond(message: &ServerJsonRpcMessage) -> Response {
    let status = match message {
        JsonRpcMessage::Error(error) => match error.error.code {
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
            ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        },
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Request(_)
        | JsonRpcMessage::Notification(_) => StatusCode::OK,
    };
    let bytes = serde_json::to_vec(message).expect("a reply holds nothing that JSON cannot");
    error_response::json(status, bytes)
}
