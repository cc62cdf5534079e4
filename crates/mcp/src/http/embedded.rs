//! The endpoint alone, for a server that has connections and callers of its own.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use rmcp::ServerHandler;
use tokio::time::{Instant, timeout_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    endpoint::Endpoint, handler_scope::HandlerScope, options::HttpOptions,
    session_table::SessionTable, stateless::Stateless,
};
use crate::limits::SHUTDOWN_GRACE;

/// The endpoint alone. Whoever hands requests over has decided that they may be asked, and says with a
/// [`super::SessionOwner`] among their extensions whose they are.
#[derive(Clone, Debug)]
pub struct EmbeddedEndpoint {
    endpoint: Arc<Endpoint>,
    sessions: Arc<SessionTable>,
    calls: TaskTracker,
    stop: CancellationToken,
}

impl EmbeddedEndpoint {
    /// Prepares to serve. `factory` makes the handler of a session, or of a single request of the
    /// stateless revision.
    pub fn new<H, F>(options: HttpOptions, factory: F, stop: CancellationToken) -> Self
    where
        H: ServerHandler,
        F: Fn(HandlerScope) -> H + Send + Sync + 'static,
    {
        let (options, factory) = (Arc::new(options), Arc::new(factory));
        let calls = TaskTracker::new();
        let sessions =
            SessionTable::new(&options, Arc::clone(&factory), calls.clone(), stop.clone());
        let stateless = Stateless::new(&options, factory, calls.clone(), stop.clone());
        let endpoint = Endpoint::new(options, Arc::clone(&sessions), stateless);
        Self { endpoint, sessions, calls, stop }
    }

    /// Answers a request.
    pub async fn serve(&self, request: Request) -> Response {
        self.endpoint.dispatch(request).await.unwrap_or_else(Response::from)
    }

    /// Ends idle sessions until the server stops, and then all of them.
    pub async fn run(&self) {
        self.sessions.expire_until_stopped().await;
        self.stop.cancelled().await;
        self.sessions.close_all();
        self.calls.close();
        // What is left then is dropped with the runtime.
        let _ = timeout_at(Instant::now() + SHUTDOWN_GRACE, self.calls.wait()).await;
    }
}
