//! The routes, and what each method of `/mcp` does.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode, request::Parts},
    response::Response,
    routing::{any, get},
};

use super::{
    answer::{self, LAST_EVENT_HEADER, Refused, SESSION_HEADER},
    envelope, gate, media,
    options::HttpOptions,
    routes::COMMON,
    scope::SessionOwner,
    session::Session,
    sessions::Sessions,
    sse::{self, EventId},
    stateless::Stateless,
};

/// Everything a request can reach.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) options: Arc<HttpOptions>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) stateless: Stateless,
}

impl Endpoint {
    pub(crate) fn new(
        options: Arc<HttpOptions>,
        sessions: Arc<Sessions>,
        stateless: Stateless,
    ) -> Arc<Self> {
        Arc::new(Self { options, sessions, stateless })
    }

    /// The routes of the server.
    pub(crate) fn router(self: Arc<Self>) -> Router {
        let serve = async |State(endpoint): State<Arc<Self>>, request: Request| {
            endpoint.serve(request).await.unwrap_or_else(Response::from)
        };
        // A probe asks from anywhere and under any name, and learns only that the server lives.
        let health = async || answer::json(StatusCode::OK, r#"{"status":"ok"}"#);
        Router::new().route("/mcp", any(serve)).route("/healthz", get(health)).with_state(self)
    }

    async fn serve(&self, request: Request) -> Result<Response, Refused> {
        gate::check(&self.options, request.uri(), request.headers())?;
        self.let_in(request).await
    }

    /// Serves a request of somebody who may ask.
    pub(super) async fn let_in(&self, request: Request) -> Result<Response, Refused> {
        let (parts, body) = request.into_parts();
        match parts.method {
            Method::POST => self.post(parts, body).await,
            Method::GET => self.get(&parts),
            Method::DELETE => self.delete(&parts),
            _ => Ok(answer::method_not_allowed("GET, POST, DELETE")),
        }
    }

    /// Opens a stream: the common one of a session, or the one of the last event that was seen.
    fn get(&self, parts: &Parts) -> Result<Response, Refused> {
        let headers = &parts.headers;
        media::check_listener(headers)?;
        if envelope::is_stateless(headers) {
            return Ok(answer::method_not_allowed("POST"));
        }
        media::check_version(headers)?;
        let session = self.session(parts)?;
        let Some(last) = headers.get(LAST_EVENT_HEADER) else {
            let common = session.find(COMMON).ok_or_else(answer::no_session)?;
            let place = common.log.last_read();
            return Ok(sse::follow(&session, common, place));
        };
        let last = last.to_str().ok().and_then(EventId::parse);
        let found = last.and_then(|last| Some((session.find(last.stream)?, last.place)));
        let Some((stream, place)) = found else {
            let message = "the stream of that Last-Event-ID is not kept any more";
            return Ok(answer::invalid(StatusCode::BAD_REQUEST, message));
        };
        Ok(sse::follow(&session, stream, place))
    }

    /// Ends a session and cancels its calls.
    fn delete(&self, parts: &Parts) -> Result<Response, Refused> {
        let headers = &parts.headers;
        if envelope::is_stateless(headers) {
            return Ok(answer::method_not_allowed("POST"));
        }
        media::check_version(headers)?;
        let session = self.session(parts)?;
        self.sessions.close(session.id().as_str());
        Ok(answer::empty(StatusCode::NO_CONTENT))
    }

    /// Finds the session that a request names.
    pub(super) fn session(&self, parts: &Parts) -> Result<Arc<Session>, Refused> {
        let Some(id) = parts.headers.get(SESSION_HEADER) else {
            let message = "a session is required: send initialize, then Mcp-Session-Id";
            return Err(answer::invalid(StatusCode::BAD_REQUEST, message).into());
        };
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id, &owner(parts)));
        found.ok_or_else(|| answer::no_session().into())
    }

    /// Removes a session whose service has ended by itself.
    pub(super) fn bury(&self, session: &Session) -> Refused {
        self.sessions.close(session.id().as_str());
        answer::no_session().into()
    }
}

/// Returns whose a request is. Where nobody says, all are the same one's.
pub(super) fn owner(parts: &Parts) -> SessionOwner {
    parts.extensions.get().cloned().unwrap_or_default()
}
