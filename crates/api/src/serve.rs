//! The public server, and the loop that it shares with the other two.

use axum::Router;
use carrel_http::{ConnectionLimits, HttpServer};
use carrel_mcp::EmbeddedEndpoint;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::limits::{HEADER_READ_TIMEOUT, MAX_CONNECTIONS, SHUTDOWN_GRACE, WRITE_STALL};
use crate::routes::{mcp, router};
use crate::state::Api;

const CONNECTION_LIMITS: ConnectionLimits = ConnectionLimits {
    header_read_timeout: HEADER_READ_TIMEOUT,
    write_stall: WRITE_STALL,
    max_connections: MAX_CONNECTIONS,
};

/// Serves the API until its `stop` is cancelled, then lets open requests end for [`SHUTDOWN_GRACE`].
pub async fn serve(listener: TcpListener, api: Api) {
    let (stop, mcp) = (api.options.stop.clone(), mcp(&api));
    serve_router(listener, router(api, mcp.clone()), &stop, Some(&mcp)).await;
}

/// Serves a router, and with it the sessions of `mcp`, until `stop` is cancelled, then lets open requests end
/// for [`SHUTDOWN_GRACE`].
pub(crate) async fn serve_router(
    listener: TcpListener,
    router: Router,
    stop: &CancellationToken,
    mcp: Option<&EmbeddedEndpoint>,
) {
    let connections = HttpServer::new(CONNECTION_LIMITS, router);
    let sessions = async || match mcp {
        Some(mcp) => mcp.run().await,
        None => stop.cancelled().await,
    };
    tokio::select! {
        () = connections.accept(&listener) => {}
        () = sessions() => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    let deadline = Instant::now() + SHUTDOWN_GRACE;
    let (closed, ()) = tokio::join!(connections.close(deadline), sessions());
    if !closed {
        warn!("stopped before every request had ended");
    }
}
