//! The public server.

use carrel_http::{ConnectionLimits, HttpServer};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tracing::warn;

use crate::limits::{HEADER_READ_TIMEOUT, MAX_CONNECTIONS, SHUTDOWN_GRACE, WRITE_STALL};
use crate::routes::{mcp, router};
use crate::state::Api;

/// Serves the API until its `stop` is cancelled, then lets open requests end for [`SHUTDOWN_GRACE`].
pub async fn serve(listener: TcpListener, api: Api) {
    let options = ConnectionLimits {
        header_read_timeout: HEADER_READ_TIMEOUT,
        write_stall: WRITE_STALL,
        max_connections: MAX_CONNECTIONS,
    };
    let stop = api.inner.stop.clone();
    let mcp = mcp(&api);
    let connections = HttpServer::new(options, router(api, mcp.clone()));
    tokio::select! {
        () = connections.accept(&listener) => {}
        () = mcp.run() => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    let deadline = Instant::now() + SHUTDOWN_GRACE;
    let (closed, ()) = tokio::join!(connections.close(deadline), mcp.run());
    if !closed {
        warn!("stopped before every request had ended");
    }
}
