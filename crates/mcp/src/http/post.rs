//! Messages from clients.

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
    endpoint::{Endpoint, owner},
    envelope::{Envelope, Lifecycle},
    error_response::{self, ErrorResponse, SESSION_HEADER},
    event_log::StreamOpening,
    event_stream, header_checks,
    options::ReplyFormat,
    session::{Session, SessionClosed, StartError},
    session_streams::{CallRejected, Stream},
    session_table::SessionTable,
};
use crate::{
    json_rpc::{self, MessageError},
    limits::{HANDSHAKE_TIMEOUT, JSON_REPLY_TIMEOUT},
};

impl Endpoint {
    pub(super) async fn post(&self, parts: Parts, body: Body) -> Result<Response, ErrorResponse> {
        header_checks::check_message(&parts.headers)?;
        let body = self.read(body).await?;
        let envelope = Envelope::read(&body, &parts.headers).map_err(MessageError::Syntax)?;
        match envelope.lifecycle {
            Lifecycle::Stateless => Ok(self.stateless.post(parts, body, envelope.identifier).await),
            Lifecycle::Handshake => self.initialize(parts, &body).await,
            Lifecycle::Session => self.message(parts, &body).await,
        }
    }

    async fn read(&self, body: Body) -> Result<Bytes, ErrorResponse> {
        let limit = self.options.max_body_bytes;
        let too_large = || {
            let message = format!("a body may have {limit} bytes");
            error_response::invalid(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        // A length that is only claimed is enough to refuse it.
        if usize::try_from(body.size_hint().lower()).map_or(true, |length| length > limit) {
            return Err(too_large().into());
        }
        let reading = axum::body::to_bytes(body, limit);
        match timeout(self.options.body_read_timeout, reading).await {
            Ok(Ok(bytes)) => Ok(bytes),
            // A connection that broke fails here too, but then nobody reads the answer.
            Ok(Err(_)) => Err(too_large().into()),
            Err(_) => {
                let message = "the body did not arrive in time";
                Err(error_response::invalid(StatusCode::REQUEST_TIMEOUT, message).into())
            }
        }
    }

    async fn initialize(&self, parts: Parts, body: &[u8]) -> Result<Response, ErrorResponse> {
        let request = match json_rpc::parse(body)? {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Response(_)
            | JsonRpcMessage::Error(_) => {
                return Ok(error_response::invalid(
                    StatusCode::BAD_REQUEST,
                    "initialize is a request",
                ));
            }
        };
        // The SDK reads parameters that do not fit as another, unknown request.
        if !matches!(request.request, ClientRequest::InitializeRequest(_)) {
            let error = ErrorData::invalid_params("the parameters do not fit initialize", None);
            return Ok(error_response::refusal(StatusCode::BAD_REQUEST, Some(request.id), error));
        }
        let Ok(session) = self.sessions.open(&owner(&parts)) else {
            return Ok(error_response::try_again(request.id, "too many sessions are open"));
        };
        let handshake = Handshake { sessions: &self.sessions, session, initialized: false };
        let identifier = request.id.clone();
        let stream = self.start(&handshake.session, parts, request).await?;
        // The name of the session travels with the reply, so there is no stream to fall back to.
        match timeout(HANDSHAKE_TIMEOUT, stream.log.opening()).await {
            Ok(StreamOpening::Reply(reply)) => Ok(handshake.conclude(reply)),
            Ok(StreamOpening::Events | StreamOpening::Ended) | Err(_) => {
                Ok(error_response::try_again(identifier, "the handshake did not come to an end"))
            }
        }
    }

    async fn message(&self, parts: Parts, body: &[u8]) -> Result<Response, ErrorResponse> {
        header_checks::check_version(&parts.headers)?;
        let message = match json_rpc::parse(body) {
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

    /// Runs a call in a session and answers it: in JSON if the reply is all there is and comes
    /// soon, with a stream otherwise. If the client goes away, the call goes on.
    async fn call(
        &self,
        session: &Arc<Session>,
        parts: Parts,
        request: JsonRpcRequest<ClientRequest>,
    ) -> Result<Response, ErrorResponse> {
        let stream = self.start(session, parts, request).await?;
        if self.options.reply_format == ReplyFormat::EventStream {
            session.keep(&stream);
            return Ok(event_stream::follow(session, stream, 0));
        }
        match timeout(JSON_REPLY_TIMEOUT, stream.log.opening()).await {
            Ok(StreamOpening::Reply(reply)) => Ok(error_response::json(StatusCode::OK, reply)),
            Ok(StreamOpening::Ended) => Ok(event_stream::empty()),
            Ok(StreamOpening::Events) | Err(_) => {
                session.keep(&stream);
                Ok(event_stream::follow(session, stream, 0))
            }
        }
    }

    /// Hands a call to its session. Handlers find the head of the request among the extensions.
    async fn start(
        &self,
        session: &Session,
        parts: Parts,
        mut request: JsonRpcRequest<ClientRequest>,
    ) -> Result<Stream, ErrorResponse> {
        let identifier = request.id.clone();
        request.request.extensions_mut().insert(parts);
        session.start(request).await.map_err(|why| match why {
            StartError::SessionClosed => self.remove_closed(session),
            StartError::Rejected(why) => not_opened(identifier, why).into(),
        })
    }
}

/// A session whose handshake is under way. It ends again unless the handshake succeeds, also when
/// the client goes away in the middle.
struct Handshake<'a> {
    sessions: &'a SessionTable,
    session: Arc<Session>,
    initialized: bool,
}

impl Handshake<'_> {
    /// Answers with the reply, and with the name of the session if the handler initialized to it.
    fn conclude(mut self, reply: Bytes) -> Response {
        let mut response = error_response::json(StatusCode::OK, reply);
        self.initialized = self.session.initialized();
        if self.initialized {
            let id = HeaderValue::from_str(self.session.id().as_str())
                .expect("the name of a session is made of hexadecimal digits");
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        response
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        if !self.initialized {
            self.sessions.close(self.session.id().as_str());
        }
    }
}

fn not_opened(identifier: RequestId, why: CallRejected) -> Response {
    match why {
        CallRejected::Full => error_response::try_again(identifier, "too many calls are running"),
        CallRejected::InUse => {
            let error = ErrorData::invalid_request("the identifier is already in use", None);
            error_response::refusal(StatusCode::BAD_REQUEST, Some(identifier), error)
        }
    }
}
