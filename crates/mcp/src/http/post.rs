//! `POST /mcp`: one message from a client.
//!
//! A request in a session is first given a stream, then handed to the SDK. Only when the first event
//! arrives is the form of the response chosen: plain JSON if that event is the reply and comes within
//! [`JSON_REPLY_TIMEOUT`], an event stream otherwise. The call does not depend on the connection, so it
//! goes on if the client goes away.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes, HttpBody as _},
    http::{HeaderValue, StatusCode, request::Parts},
    response::Response,
};
use rmcp::{
    ErrorData,
    model::{ClientRequest, GetExtensions as _, JsonRpcMessage, JsonRpcRequest, RequestId},
};
use tokio::time::timeout;

use super::{
    direct::{PlainRequest, ResultShape, SessionHandler},
    endpoint::{Endpoint, owner},
    envelope::{Envelope, Lifecycle},
    error_response::{self, Result, SESSION_HEADER},
    event_log::StreamOpening,
    event_stream, header_checks,
    options::{CallPath, ReplyFormat},
    session::{Session, SessionClosed, StartError},
    session_streams::{CallRejected, Stream},
    session_table::SessionTable,
};
use crate::{
    json_rpc::{self, MessageError},
    limits::{HANDSHAKE_TIMEOUT, JSON_REPLY_TIMEOUT},
};

impl Endpoint {
    pub(super) async fn post(&self, parts: Parts, body: Body) -> Result<Response> {
        header_checks::check_message(&parts.headers)?;
        let body = self.read(body).await?;
        let envelope = Envelope::read(&body, &parts.headers).map_err(MessageError::Syntax)?;
        match envelope.lifecycle {
            Lifecycle::Stateless => Ok(self.stateless.post(parts, body, envelope.identifier).await),
            Lifecycle::Handshake => self.initialize(parts, &body).await,
            Lifecycle::Session => self.message(parts, body).await,
        }
    }

    async fn read(&self, body: Body) -> Result<Bytes> {
        let limit = self.options.max_body_bytes;
        let too_large = || {
            let message = format!("a body may have {limit} bytes");
            error_response::invalid_request(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        // A declared length past the limit is rejected before a byte is read.
        if usize::try_from(body.size_hint().lower()).map_or(true, |length| length > limit) {
            return Err(too_large().into());
        }
        let reading = axum::body::to_bytes(body, limit);
        match timeout(self.options.body_read_timeout, reading).await {
            Ok(Ok(bytes)) => Ok(bytes),
            // A broken connection ends here too; its response goes nowhere.
            Ok(Err(_)) => Err(too_large().into()),
            Err(_) => {
                let message = "the body did not arrive in time";
                Err(error_response::reject(StatusCode::REQUEST_TIMEOUT, message))
            }
        }
    }

    async fn initialize(&self, parts: Parts, body: &[u8]) -> Result<Response> {
        let request = match json_rpc::parse(body)? {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Response(_)
            | JsonRpcMessage::Error(_) => {
                return Ok(error_response::invalid_request(
                    StatusCode::BAD_REQUEST,
                    "initialize is a request",
                ));
            }
        };
        // The SDK parses an `initialize` with unfitting parameters as an unknown request.
        if !matches!(request.request, ClientRequest::InitializeRequest(_)) {
            let error = ErrorData::invalid_params("invalid parameters for initialize", None);
            return Ok(error_response::error(StatusCode::BAD_REQUEST, Some(request.id), error));
        }
        let Ok(session) = self.sessions.open(&owner(&parts)) else {
            return Ok(error_response::overloaded(request.id, "too many sessions are open"));
        };
        let handshake = PendingHandshake { sessions: &self.sessions, session, initialized: false };
        let identifier = request.id.clone();
        let stream = self.start(&handshake.session, parts, request).await?;
        // The session id is a header of the reply, so an event stream is no alternative here.
        match timeout(HANDSHAKE_TIMEOUT, stream.log.opening()).await {
            Ok(StreamOpening::Reply(reply)) => Ok(handshake.into_response(reply)),
            Ok(StreamOpening::Events | StreamOpening::Ended) | Err(_) => {
                Ok(error_response::overloaded(identifier, "the handshake did not complete in time"))
            }
        }
    }

    async fn message(&self, parts: Parts, body: Bytes) -> Result<Response> {
        header_checks::check_version(&parts.headers)?;
        if self.options.call_path == CallPath::Direct
            && let Some(request) = PlainRequest::read(&body)
        {
            let session = self.session(&parts)?;
            if let Some(handler) = session.direct_handler() {
                return self.call_directly(&session, handler, parts, request).await;
            }
        }
        let message = match json_rpc::parse(&body) {
            Err(MessageError::UnknownNotification) => {
                return Ok(error_response::empty(StatusCode::ACCEPTED));
            }
            parsed => parsed?,
        };
        let session = self.session(&parts)?;
        match message {
            JsonRpcMessage::Request(request) => self.call(&session, parts, request).await,
            mut other => {
                if let JsonRpcMessage::Notification(notification) = &mut other {
                    notification.notification.extensions_mut().insert(parts);
                }
                match session.accept(other).await {
                    Ok(()) => Ok(error_response::empty(StatusCode::ACCEPTED)),
                    Err(SessionClosed) => Err(self.remove_closed(&session)),
                }
            }
        }
    }

    async fn call(
        &self,
        session: &Arc<Session>,
        parts: Parts,
        request: JsonRpcRequest<ClientRequest>,
    ) -> Result<Response> {
        let stream = self.start(session, parts, request).await?;
        self.respond(session, stream, std::future::pending()).await
    }

    async fn call_directly(
        &self,
        session: &Arc<Session>,
        handler: (SessionHandler, ResultShape),
        parts: Parts,
        request: PlainRequest,
    ) -> Result<Response> {
        let identifier = request.identifier.clone();
        let (stream, call) = session
            .start_directly(handler, request, parts)
            .map_err(|rejection| call_rejected(identifier, rejection))?;
        self.respond(session, stream, call).await
    }

    /// Chooses the form of the response. A call that takes the short way is polled meanwhile, and goes on in a
    /// task of its own if the response becomes an event stream.
    async fn respond(
        &self,
        session: &Arc<Session>,
        stream: Stream,
        call: impl Future<Output = ()>,
    ) -> Result<Response> {
        if self.options.reply_format == ReplyFormat::EventStream {
            session.retain(&stream);
            return Ok(event_stream::follow(session, stream, 0));
        }
        let opening = async {
            tokio::select! {
                biased;
                () = call => stream.log.opening().await,
                opening = stream.log.opening() => opening,
            }
        };
        match timeout(JSON_REPLY_TIMEOUT, opening).await {
            Ok(StreamOpening::Reply(reply)) => Ok(error_response::json(StatusCode::OK, reply)),
            Ok(StreamOpening::Ended) => Ok(event_stream::empty()),
            Ok(StreamOpening::Events) | Err(_) => {
                session.retain(&stream);
                Ok(event_stream::follow(session, stream, 0))
            }
        }
    }

    /// Hands a call to its session, with the head of the HTTP request among its extensions.
    async fn start(
        &self,
        session: &Session,
        parts: Parts,
        mut request: JsonRpcRequest<ClientRequest>,
    ) -> Result<Stream> {
        let identifier = request.id.clone();
        request.request.extensions_mut().insert(parts);
        session.start(request).await.map_err(|error| match error {
            StartError::SessionClosed => self.remove_closed(session),
            StartError::Rejected(rejection) => call_rejected(identifier, rejection).into(),
        })
    }
}

/// A session during its handshake. Dropping it ends the session unless the handshake succeeded, which
/// also covers a client that disconnects in between.
struct PendingHandshake<'a> {
    sessions: &'a SessionTable,
    session: Arc<Session>,
    initialized: bool,
}

impl PendingHandshake<'_> {
    /// Builds the response, with the session id if the handler accepted the handshake.
    fn into_response(mut self, reply: Bytes) -> Response {
        let mut response = error_response::json(StatusCode::OK, reply);
        self.initialized = self.session.initialized();
        if self.initialized {
            let id = HeaderValue::from_str(self.session.id.as_str())
                .expect("a session id consists of hexadecimal digits and dashes");
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        response
    }
}

impl Drop for PendingHandshake<'_> {
    fn drop(&mut self) {
        if !self.initialized {
            self.sessions.close(self.session.id.as_str());
        }
    }
}

fn call_rejected(identifier: RequestId, rejection: CallRejected) -> Response {
    match rejection {
        CallRejected::Full => error_response::overloaded(identifier, "too many calls are running"),
        CallRejected::InUse => {
            let error = ErrorData::invalid_request("the identifier is already in use", None);
            error_response::error(StatusCode::BAD_REQUEST, Some(identifier), error)
        }
    }
}
