//! Many clients over streamable HTTP at `/mcp`.
//!
//! Requests pass the gate (name, origin, token), then the endpoint decides by what they declare:
//!
//! - Revisions with a handshake (2024-11-05 to 2025-11-25) live in a session. A short call is
//!   answered in plain JSON; a call that streams or takes long gets an event stream whose events
//!   are kept for resumption. Losing the connection does not cancel a call; `notifications/cancelled`
//!   and `DELETE` do.
//! - The revision 2026-07-28 has neither sessions nor resumption: each request stands alone, and a
//!   client that closes its response cancels the call.

mod answer;
mod connections;
mod endpoint;
mod envelope;
mod gate;
mod log;
mod media;
mod mounted;
mod names;
mod options;
mod post;
mod routes;
mod scope;
mod session;
mod sessions;
mod sse;
mod stall;
mod stateless;
mod token;

use std::{io, sync::Arc};

use rmcp::ServerHandler;
use tokio::{
    net::TcpListener,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::warn;

use crate::limits::SHUTDOWN_GRACE;
pub use connections::{ConnectionOptions, Connections};
use endpoint::Endpoint;
pub use mounted::Mounted;
pub use options::{HttpOptions, OptionsError, Replies};
pub use scope::{ReplyConnection, Scope, SessionId, SessionOwner};
use sessions::Sessions;
use stateless::Stateless;
pub use token::{BearerToken, TokenError};

/// Why HTTP could not be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The listener is not usable.
    #[error("could not read the address of the listener")]
    Listener(#[source] io::Error),
    /// The listener is reachable from elsewhere than the options were made for.
    #[error(transparent)]
    Options(#[from] OptionsError),
}

/// Serves clients from `listener` until `cancel` fires.
///
/// `factory` makes the handler of a session, or of a single request of the stateless revision; it
/// should only clone what it needs. After `cancel`, calls are cancelled and streams end; whatever is
/// left after [`SHUTDOWN_GRACE`] is dropped, and the result is `Ok`.
pub async fn serve_http<H, F>(
    listener: TcpListener,
    options: HttpOptions,
    factory: F,
    cancel: CancellationToken,
) -> Result<(), HttpError>
where
    H: ServerHandler,
    F: Fn(Scope) -> H + Send + Sync + 'static,
{
    let address = listener.local_addr().map_err(HttpError::Listener)?;
    options.check_address(address)?;
    let options = Arc::new(options);
    let stop = cancel.child_token();
    let calls = TaskTracker::new();
    let factory = Arc::new(factory);
    let sessions = Sessions::new(&options, Arc::clone(&factory), calls.clone(), stop.clone());
    let stateless = Stateless::new(&options, factory, calls.clone(), stop.clone());
    let endpoint = Endpoint::new(Arc::clone(&options), Arc::clone(&sessions), stateless);
    let connections = Connections::new(options.connections(), endpoint.router());

    tokio::select! {
        () = connections.accept(&listener) => {}
        () = sessions.sweep_forever() => {}
        () = cancel.cancelled() => {}
    }
    drop(listener);
    stop.cancel();
    let deadline = Instant::now() + SHUTDOWN_GRACE;
    sessions.close_all();
    calls.close();
    let (quiet, closed) =
        tokio::join!(timeout_at(deadline, calls.wait()), connections.close(deadline));
    if quiet.is_err() || !closed {
        warn!(calls = calls.len(), closed, "stopped before everything had ended");
    }
    Ok(())
}
