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
    access_control, envelope,
    error_response::{self, ErrorResponse, LAST_EVENT_HEADER, SESSION_HEADER},
    event_stream::{self, EventId},
    handler_scope::SessionOwner,
    header_checks,
    options::HttpOptions,
    session::Session,
    session_streams::STANDALONE,
    session_table::SessionTable,
    stateless::Stateless,
};

/// Everything a request can reach.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) options: Arc<HttpOptions>,
    pub(super) sessions: Arc<SessionTable>,
    pub(super) stateless: Stateless,
}

impl Endpoint {
    pub(crate) fn new(
        options: Arc<HttpOptions>,
        sessions: Arc<SessionTable>,
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
        let health = async || error_response::json(StatusCode::OK, r#"{"status":"ok"}"#);
        Router::new().route("/mcp", any(serve)).route("/healthz", get(health)).with_state(self)
    }

    async fn serve(&self, request: Request) -> Result<Response, ErrorResponse> {
        access_control::check(&self.options, request.uri(), request.headers())?;
        self.dispatch(request).await
    }

    /// Serves a request of somebody who may ask.
    pub(super) async fn dispatch(&self, request: Request) -> Result<Response, ErrorResponse> {
        let (parts, body) = request.into_parts();
        match parts.method {
            Method::POST => self.post(parts, body).await,
            Method::GET => self.get(&parts),
            Method::DELETE => self.delete(&parts),
            _ => Ok(error_response::method_not_allowed("GET, POST, DELETE")),
        }
    }

    /// Opens a stream: the standalone one of a session, or the one of the last event that was seen.
    fn get(&self, parts: &Parts) -> Result<Response, ErrorResponse> {
        let headers = &parts.headers;
        header_checks::check_listener(headers)?;
        if envelope::is_stateless(headers) {
            return Ok(error_response::method_not_allowed("POST"));
        }
        header_checks::check_version(headers)?;
        let session = self.session(parts)?;
        let Some(last) = headers.get(LAST_EVENT_HEADER) else {
            let standalone = session.find(STANDALONE).ok_or_else(error_response::no_session)?;
            let place = standalone.log.last_read();
            return Ok(event_stream::follow(&session, standalone, place));
        };
        let last = last.to_str().ok().and_then(EventId::parse);
        let found = last.and_then(|last| Some((session.find(last.stream)?, last.place)));
        let Some((stream, place)) = found else {
            let message = "the stream of that Last-Event-ID is not kept any more";
            return Ok(error_response::invalid(StatusCode::BAD_REQUEST, message));
        };
        Ok(event_stream::follow(&session, stream, place))
    }

    /// Ends a session and cancels its calls.
    fn delete(&self, parts: &Parts) -> Result<Response, ErrorResponse> {
        let headers = &parts.headers;
        if envelope::is_stateless(headers) {
            return Ok(error_response::method_not_allowed("POST"));
        }
        header_checks::check_version(headers)?;
        let session = self.session(parts)?;
        self.sessions.close(session.id().as_str());
        Ok(error_response::empty(StatusCode::NO_CONTENT))
    }

    /// Finds the session that a request names.
    pub(super) fn session(&self, parts: &Parts) -> Result<Arc<Session>, ErrorResponse> {
        let Some(id) = parts.headers.get(SESSION_HEADER) else {
            let message = "a session is required: send initialize, then Mcp-Session-Id";
            return Err(error_response::invalid(StatusCode::BAD_REQUEST, message).into());
        };
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id, &owner(parts)));
        found.ok_or_else(|| error_response::no_session().into())
    }

    /// Removes a session whose service has ended by itself.
    pub(super) fn remove_closed(&self, session: &Session) -> ErrorResponse {
        self.sessions.close(session.id().as_str());
        error_response::no_session().into()
    }
}

/// Returns whose a request is. Where nobody says, all are the same one's.
pub(super) fn owner(parts: &Parts) -> SessionOwner {
    parts.extensions.get().cloned().unwrap_or_default()
}
