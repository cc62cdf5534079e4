//! The endpoint alone, for a server that has connections and callers of its own.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use rmcp::ServerHandler;
use tokio::time::{Instant, timeout_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    endpoint::Endpoint, options::HttpOptions, scope::Scope, sessions::Sessions,
    stateless::Stateless,
};
use crate::limits::SHUTDOWN_GRACE;

/// The endpoint alone. Whoever hands requests over has decided that they may be asked, and says with a
/// [`super::SessionOwner`] among their extensions whose they are.
#[derive(Clone, Debug)]
pub struct Mounted {
    endpoint: Arc<Endpoint>,
    sessions: Arc<Sessions>,
    calls: TaskTracker,
    stop: CancellationToken,
}

impl Mounted {
    /// Prepares to serve. `factory` makes the handler of a session, or of a single request of the
    /// stateless revision.
    pub fn new<H, F>(options: HttpOptions, factory: F, stop: CancellationToken) -> Self
    where
        H: ServerHandler,
        F: Fn(Scope) -> H + Send + Sync + 'static,
    {
        let (options, factory) = (Arc::new(options), Arc::new(factory));
        let calls = TaskTracker::new();
        let sessions = Sessions::new(&options, Arc::clone(&factory), calls.clone(), stop.clone());
        let stateless = Stateless::new(&options, factory, calls.clone(), stop.clone());
        let endpoint = Endpoint::new(options, Arc::clone(&sessions), stateless);
        Self { endpoint, sessions, calls, stop }
    }

    /// Answers a request.
    pub async fn serve(&self, request: Request) -> Response {
        self.endpoint.let_in(request).await.unwrap_or_else(Response::from)
    }

    /// Ends idle sessions until the server stops, and then all of them.
    pub async fn run(&self) {
        self.sessions.sweep_forever().await;
        self.stop.cancelled().await;
        self.sessions.close_all();
        self.calls.close();
        // What is left then is dropped with the runtime.
        let _ = timeout_at(Instant::now() + SHUTDOWN_GRACE, self.calls.wait()).await;
    }
}
