//! The endpoint inside a server that has its own listener, routes and authentication.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use futures_util::future::BoxFuture;
use rmcp::ServerHandler;
use tokio::time::{Instant, timeout_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    endpoint::Endpoint,
    handler_scope::{HandlerScope, shielded},
    options::HttpOptions,
};
use crate::limits::SHUTDOWN_GRACE;

/// The `/mcp` endpoint without a listener.
///
/// The embedding server authenticates a request before it hands it over, and puts a
/// [`super::SessionOwner`] into its extensions; neither `Host` nor `Origin` nor a token is checked here.
/// [`EmbeddedEndpoint::run`] must be polled for sessions to expire.
#[derive(Clone, Debug)]
pub struct EmbeddedEndpoint {
    endpoint: Arc<Endpoint>,
    calls: TaskTracker,
    stop: CancellationToken,
}

impl EmbeddedEndpoint {
    /// Prepares the endpoint. `factory` makes the handler of a session, or of a single request of the
    /// stateless revision. Cancelling `stop` cancels every call.
    pub fn new<H, F>(options: HttpOptions, factory: F, stop: CancellationToken) -> Self
    where
        H: ServerHandler,
        F: Fn(HandlerScope) -> H + Send + Sync + 'static,
    {
        let calls = TaskTracker::new();
        let endpoint = Endpoint::new(options, shielded(factory), &calls, &stop);
        Self { endpoint, calls, stop }
    }

    /// Serves one authenticated request.
    pub fn serve(&self, request: Request) -> BoxFuture<'_, Response> {
        let serving =
            async { self.endpoint.dispatch(request).await.unwrap_or_else(Response::from) };
        Box::pin(serving)
    }

    /// Expires idle sessions until the server stops; then ends all of them and waits up to
    /// [`SHUTDOWN_GRACE`] for their calls.
    pub async fn run(&self) {
        self.endpoint.sessions.expire_until_stopped().await;
        self.stop.cancelled().await;
        self.endpoint.sessions.close_all();
        self.calls.close();
        // Calls that need longer are dropped with the runtime.
        let _ = timeout_at(Instant::now() + SHUTDOWN_GRACE, self.calls.wait()).await;
    }
}
