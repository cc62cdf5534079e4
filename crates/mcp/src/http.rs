//! The Model Context Protocol over HTTP, at `/mcp`.
//!
//! Access control (host, origin, token) comes first. The [envelope] of a message then decides which
//! lifecycle it has, and with it which half of the code serves it:
//!
//! - **Sessions**, for the revisions with a handshake (2024-11-05 to 2025-11-25). `initialize` opens a
//!   [session], and the SDK serves it over an in-memory transport. A short call is answered in
//!   plain JSON. A call that streams, or takes longer than half a second, gets an event stream whose
//!   events are [kept](event_log), so that a client which lost its connection resumes with
//!   `Last-Event-ID`. Losing the connection does not cancel a call; `notifications/cancelled` and
//!   `DELETE` do.
//! - **[Stateless](stateless)**, for the revision 2026-07-28. Every request stands alone and there is
//!   nothing to resume. A client that closes its response cancels the call.
//!
//! ```text
//! POST ─► access_control ─► header_checks ─► envelope ─┬─ initialize ──► session_table.open ──┐
//! GET, DELETE ─► … ─► session                          ├─ in a session ► session.start ───────┤► SDK ► handler
//!                                                      └─ 2026-07-28 ──► stateless.post ──────┘
//! ```
//!
//! Plain calls of tools may take a shorter way in both halves, see [`direct`].

mod access_control;
mod bearer_token;
mod direct;
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
mod reply_connection;
mod session;
mod session_id;
mod session_streams;
mod session_table;
mod stateless;

use std::io;

use carrel_http::HttpServer;
use futures_util::future::BoxFuture;
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
pub use handler_scope::HandlerScope;
use handler_scope::{MakeHandler, shielded};
pub use options::{Authentication, CallPath, HttpOptions, OptionsError, ReplyFormat};
pub use reply_connection::ReplyConnection;
pub use session_id::{SessionId, SessionOwner};

/// A listener that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The kernel did not say which address the listener has.
    #[error("could not read the address of the listener")]
    Listener(#[source] io::Error),
    /// The listener's address needs a token, which the options lack.
    #[error(transparent)]
    Options(#[from] OptionsError),
}

/// Serves clients from `listener` until `cancel` fires.
///
/// `factory` makes the handler of a session, or of a single request of the stateless revision; it runs
/// in the path of a request and should only clone what it needs. After `cancel`, calls are cancelled and
/// streams end; connections and calls that remain after [`SHUTDOWN_GRACE`] are dropped, and the result
/// is `Ok`.
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
    serve(listener, options, shielded(factory), cancel).await
}

fn serve(
    listener: TcpListener,
    options: HttpOptions,
    make: MakeHandler,
    cancel: CancellationToken,
) -> BoxFuture<'static, Result<(), HttpError>> {
    Box::pin(serve_until_cancelled(listener, options, make, cancel))
}

async fn serve_until_cancelled(
    listener: TcpListener,
    options: HttpOptions,
    make: MakeHandler,
    cancel: CancellationToken,
) -> Result<(), HttpError> {
    let address = listener.local_addr().map_err(HttpError::Listener)?;
    options.check_address(address)?;
    let stop = cancel.child_token();
    let calls = TaskTracker::new();
    let limits = options.connections;
    let endpoint = Endpoint::new(options, make, &calls, &stop);
    let server = HttpServer::new(limits, endpoint.router());

    tokio::select! {
        () = server.accept(&listener) => {}
        () = endpoint.sessions.expire_until_stopped() => {}
        () = cancel.cancelled() => {}
    }
    drop(listener);
    stop.cancel();
    let deadline = Instant::now() + SHUTDOWN_GRACE;
    endpoint.sessions.close_all();
    calls.close();
    let (calls_ended, connections_closed) =
        tokio::join!(timeout_at(deadline, calls.wait()), server.close(deadline));
    if calls_ended.is_err() || !connections_closed {
        warn!(
            calls = calls.len(),
            connections_closed, "stopped before all calls and connections had ended"
        );
    }
    Ok(())
}
