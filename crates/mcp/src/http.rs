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

mod access_control;
mod allowed_hosts;
mod bearer_token;
mod embedded;
mod endpoint;
mod envelope;
mod error_response;
mod event_log;
mod event_stream;
mod handler_scope;
mod header_checks;
mod options;
mod post;
mod session;
mod session_streams;
mod session_table;
mod stateless;

use std::{io, sync::Arc};

use carrel_http::HttpServer;
use rmcp::ServerHandler;
use tokio::{
    net::TcpListener,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::warn;

use crate::limits::SHUTDOWN_GRACE;
pub use bearer_token::{BearerToken, TokenError};
pub use embedded::EmbeddedEndpoint;
use endpoint::Endpoint;
pub use handler_scope::{HandlerScope, ReplyConnection, SessionId, SessionOwner};
pub use options::{HttpOptions, OptionsError, ReplyFormat};
use session_table::SessionTable;
use stateless::Stateless;

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
    F: Fn(HandlerScope) -> H + Send + Sync + 'static,
{
    let address = listener.local_addr().map_err(HttpError::Listener)?;
    options.check_address(address)?;
    let options = Arc::new(options);
    let stop = cancel.child_token();
    let calls = TaskTracker::new();
    let factory = Arc::new(factory);
    let sessions = SessionTable::new(&options, Arc::clone(&factory), calls.clone(), stop.clone());
    let stateless = Stateless::new(&options, factory, calls.clone(), stop.clone());
    let endpoint = Endpoint::new(Arc::clone(&options), Arc::clone(&sessions), stateless);
    let server = HttpServer::new(options.connection_limits(), endpoint.router());

    tokio::select! {
        () = server.accept(&listener) => {}
        () = sessions.expire_until_stopped() => {}
        () = cancel.cancelled() => {}
    }
    drop(listener);
    stop.cancel();
    let deadline = Instant::now() + SHUTDOWN_GRACE;
    sessions.close_all();
    calls.close();
    let (quiet, closed) = tokio::join!(timeout_at(deadline, calls.wait()), server.close(deadline));
    if quiet.is_err() || !closed {
        warn!(calls = calls.len(), closed, "stopped before everything had ended");
    }
    Ok(())
}
