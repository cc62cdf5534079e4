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
    answer::{self, Refused, SESSION_HEADER},
    endpoint::{Endpoint, owner},
    envelope::{Envelope, Lifecycle},
    log::Opening,
    media,
    options::Replies,
    routes::{NotOpened, Stream},
    session::{Gone, NotStarted, Session},
    sessions::Sessions,
    sse,
};
use crate::{
    limits::{HANDSHAKE_TIMEOUT, JSON_PATIENCE},
    rpc::{self, Malformed},
};

impl Endpoint {
    pub(super) async fn post(&self, parts: Parts, body: Body) -> Result<Response, Refused> {
        media::check_message(&parts.headers)?;
        let body = self.read(body).await?;
        let envelope = Envelope::read(&body, &parts.headers).map_err(Malformed::Syntax)?;
        match envelope.lifecycle {
            Lifecycle::Stateless => Ok(self.stateless.post(parts, body, envelope.identifier).await),
            Lifecycle::Handshake => self.initialize(parts, &body).await,
            Lifecycle::Session => self.message(parts, &body).await,
        }
    }

    async fn read(&self, body: Body) -> Result<Bytes, Refused> {
        let limit = self.options.max_body_bytes;
        let too_large = || {
            let message = format!("a body may have {limit} bytes");
            answer::invalid(StatusCode::PAYLOAD_TOO_LARGE, message)
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
                Err(answer::invalid(StatusCode::REQUEST_TIMEOUT, message).into())
            }
        }
    }

    async fn initialize(&self, parts: Parts, body: &[u8]) -> Result<Response, Refused> {
        let request = match rpc::parse(body)? {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Response(_)
            | JsonRpcMessage::Error(_) => {
                return Ok(answer::invalid(StatusCode::BAD_REQUEST, "initialize is a request"));
            }
        };
        // The SDK reads parameters that do not fit as another, unknown request.
        if !matches!(request.request, ClientRequest::InitializeRequest(_)) {
            let error = ErrorData::invalid_params("the parameters do not fit initialize", None);
            return Ok(answer::refusal(StatusCode::BAD_REQUEST, Some(request.id), error));
        }
        let Ok(session) = self.sessions.open(&owner(&parts)) else {
            return Ok(answer::try_again(request.id, "too many sessions are open"));
        };
        let handshake = Handshake { sessions: &self.sessions, session, agreed: false };
        let identifier = request.id.clone();
        let stream = self.start(&handshake.session, parts, request).await?;
        // The name of the session travels with the reply, so there is no stream to fall back to.
        match timeout(HANDSHAKE_TIMEOUT, stream.log.opening()).await {
            Ok(Opening::Reply(reply)) => Ok(handshake.conclude(reply)),
            Ok(Opening::Events | Opening::Ended) | Err(_) => {
                Ok(answer::try_again(identifier, "the handshake did not come to an end"))
            }
        }
    }

    async fn message(&self, parts: Parts, body: &[u8]) -> Result<Response, Refused> {
        media::check_version(&parts.headers)?;
        let message = match rpc::parse(body) {
            Err(Malformed::UnknownNotification) => return Ok(answer::empty(StatusCode::ACCEPTED)),
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
                    Ok(()) => Ok(answer::empty(StatusCode::ACCEPTED)),
                    Err(Gone) => Err(self.bury(&session)),
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
    ) -> Result<Response, Refused> {
        let stream = self.start(session, parts, request).await?;
        if self.options.replies == Replies::Streamed {
            session.keep(&stream);
            return Ok(sse::follow(session, stream, 0));
        }
        match timeout(JSON_PATIENCE, stream.log.opening()).await {
            Ok(Opening::Reply(reply)) => Ok(answer::json(StatusCode::OK, reply)),
            Ok(Opening::Ended) => Ok(sse::nothing()),
            Ok(Opening::Events) | Err(_) => {
                session.keep(&stream);
                Ok(sse::follow(session, stream, 0))
            }
        }
    }

    /// Hands a call to its session. Handlers find the head of the request among the extensions.
    async fn start(
        &self,
        session: &Session,
        parts: Parts,
        mut request: JsonRpcRequest<ClientRequest>,
    ) -> Result<Stream, Refused> {
        let identifier = request.id.clone();
        request.request.extensions_mut().insert(parts);
        session.start(request).await.map_err(|why| match why {
            NotStarted::Gone => self.bury(session),
            NotStarted::Refused(why) => not_opened(identifier, why).into(),
        })
    }
}

/// A session whose handshake is under way. It ends again unless the handshake succeeds, also when
/// the client goes away in the middle.
struct Handshake<'a> {
    sessions: &'a Sessions,
    session: Arc<Session>,
    agreed: bool,
}

impl Handshake<'_> {
    /// Answers with the reply, and with the name of the session if the handler agreed to it.
    fn conclude(mut self, reply: Bytes) -> Response {
        let mut response = answer::json(StatusCode::OK, reply);
        self.agreed = self.session.agreed();
        if self.agreed {
            let id = HeaderValue::from_str(self.session.id().as_str())
                .expect("the name of a session is made of hexadecimal digits");
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        response
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        if !self.agreed {
            self.sessions.close(self.session.id().as_str());
        }
    }
}

fn not_opened(identifier: RequestId, why: NotOpened) -> Response {
    match why {
        NotOpened::Full => answer::try_again(identifier, "too many calls are running"),
        NotOpened::InUse => {
            let error = ErrorData::invalid_request("the identifier is already in use", None);
            answer::refusal(StatusCode::BAD_REQUEST, Some(identifier), error)
        }
    }
}
