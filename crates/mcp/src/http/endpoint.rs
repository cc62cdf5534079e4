//! The methods of `/mcp`: `POST` carries messages, `GET` opens an event stream, `DELETE` ends a session.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode, request::Parts},
    response::Response,
    routing::{any, get},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    access_control, envelope,
    error_response::{self, ErrorResponse, LAST_EVENT_HEADER, Result, SESSION_HEADER},
    event_stream::{self, EventId},
    handler_scope::MakeHandler,
    header_checks,
    options::HttpOptions,
    session::Session,
    session_id::SessionOwner,
    session_streams::STANDALONE,
    session_table::SessionTable,
    stateless::Stateless,
};

/// The state behind `/mcp`, shared by all requests.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) options: HttpOptions,
    pub(super) sessions: Arc<SessionTable>,
    pub(super) stateless: Stateless,
}

impl Endpoint {
    /// Creates an endpoint without sessions. Calls run in `calls`; cancelling `stop` cancels them.
    pub(crate) fn new(
        options: HttpOptions,
        make: MakeHandler,
        calls: &TaskTracker,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let sessions = SessionTable::new(&options, Arc::clone(&make), calls.clone(), stop.clone());
        let stateless = Stateless::new(&options, make, calls.clone(), stop.clone());
        Arc::new(Self { options, sessions, stateless })
    }

    /// Returns the routes of a server of its own: `/mcp` behind access control, and `/healthz`.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        let serve = async |State(endpoint): State<Arc<Self>>, request: Request| {
            endpoint.serve(request).await.unwrap_or_else(Response::from)
        };
        // A probe needs neither token nor host name, and learns only that the server is alive.
        let health = async || error_response::json(StatusCode::OK, r#"{"status":"ok"}"#);
        let router = Router::new().route("/mcp", any(serve)).route("/healthz", get(health));
        router.with_state(Arc::clone(self))
    }

    async fn serve(&self, request: Request) -> Result<Response> {
        access_control::check(&self.options, request.uri(), request.headers())?;
        self.dispatch(request).await
    }

    /// Serves a request that passed access control.
    pub(super) async fn dispatch(&self, request: Request) -> Result<Response> {
        let (parts, body) = request.into_parts();
        match parts.method {
            Method::POST => self.post(parts, body).await,
            Method::GET => self.get(&parts),
            Method::DELETE => self.delete(&parts),
            _ => Ok(error_response::method_not_allowed("GET, POST, DELETE")),
        }
    }

    /// Opens an event stream: with `Last-Event-ID` the stream of that event, from there on; otherwise the
    /// session's standalone stream, which carries messages that belong to no call.
    fn get(&self, parts: &Parts) -> Result<Response> {
        let headers = &parts.headers;
        header_checks::check_listener(headers)?;
        let session = self.existing_session(parts)?;
        let Some(last) = headers.get(LAST_EVENT_HEADER) else {
            let standalone =
                session.find(STANDALONE).ok_or_else(error_response::session_not_found)?;
            let last_read = standalone.log.last_read();
            return Ok(event_stream::follow(&session, standalone, last_read));
        };
        let last = last.to_str().ok().and_then(EventId::parse);
        let resumed = last.and_then(|last| Some((session.find(last.stream)?, last.number)));
        let Some((stream, number)) = resumed else {
            let message = "the stream of that Last-Event-ID is no longer retained";
            return Ok(error_response::invalid_request(StatusCode::BAD_REQUEST, message));
        };
        Ok(event_stream::follow(&session, stream, number))
    }

    fn delete(&self, parts: &Parts) -> Result<Response> {
        let session = self.existing_session(parts)?;
        self.sessions.close(session.id.as_str());
        Ok(error_response::empty(StatusCode::NO_CONTENT))
    }

    /// Returns the session of a method that the stateless revision does not have.
    fn existing_session(&self, parts: &Parts) -> Result<Arc<Session>> {
        if envelope::is_stateless(&parts.headers) {
            return Err(error_response::method_not_allowed("POST").into());
        }
        header_checks::check_version(&parts.headers)?;
        self.session(parts)
    }

    pub(super) fn session(&self, parts: &Parts) -> Result<Arc<Session>> {
        let Some(id) = parts.headers.get(SESSION_HEADER) else {
            let message = "a session is required: send initialize, then its Mcp-Session-Id";
            return Err(error_response::reject(StatusCode::BAD_REQUEST, message));
        };
        let session = id.to_str().ok().and_then(|id| self.sessions.find(id, &owner(parts)));
        session.ok_or_else(|| error_response::session_not_found().into())
    }

    /// Removes a session whose service has ended on its own, and returns the response that says so.
    pub(super) fn remove_closed(&self, session: &Session) -> ErrorResponse {
        self.sessions.close(session.id.as_str());
        error_response::session_not_found().into()
    }
}

/// Returns the owner that the embedding server attached to a request, or the empty one.
pub(super) fn owner(parts: &Parts) -> SessionOwner {
    parts.extensions.get().cloned().unwrap_or_default()
}
