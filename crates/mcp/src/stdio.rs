//! The stdio transport: one client, one JSON message in each line, nothing else on the output.
//!
//! The end of the input is the client's way to say goodbye. Calls that are running then have [`EOF_GRACE`]
//! to finish, are cancelled, and have [`SHUTDOWN_GRACE`] to clean up. Both together stay below the two
//! seconds after which clients kill a server that does not exit.

mod line_reader;
mod line_transport;

use futures_util::future::BoxFuture;
use rmcp::{
    RoleServer, ServerHandler,
    service::{RunningService, ServerInitializeError, serve_server_with_ct},
    transport::{TransportAdapterIdentity, stdio_pipes},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use crate::{
    limits::{EOF_GRACE, SHUTDOWN_GRACE},
    panic_shield::PanicShield,
};
use line_transport::LineTransport;

/// A session over stdio that failed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The handler rejected `initialize`; the client has received the error.
    #[error("the handshake with the client failed")]
    Handshake(#[source] Box<ServerInitializeError>),
}

/// Serves one client over standard input and output until it closes its end or `cancel` fires.
///
/// After the end of the input, running calls have [`EOF_GRACE`] to finish and are then cancelled;
/// calls that still run after [`SHUTDOWN_GRACE`] are abandoned. Standard input may be read by a thread
/// that cannot be interrupted, so the caller should leave its runtime with `shutdown_background`.
pub async fn serve_stdio<H: ServerHandler>(
    handler: H,
    cancel: CancellationToken,
) -> Result<(), StdioError> {
    let calls = TaskTracker::new();
    serve_pipes(PanicShield::new(handler, calls.clone()), calls, cancel).await
}

fn serve_pipes(
    service: PanicShield,
    calls: TaskTracker,
    cancel: CancellationToken,
) -> BoxFuture<'static, Result<(), StdioError>> {
    let (reader, writer) = stdio_pipes();
    Box::pin(serve(service, calls, reader, writer, cancel))
}

/// Serves one client over any pair of byte streams, by the rules of [`serve_stdio`].
pub async fn serve_lines<H, R, W>(
    handler: H,
    reader: R,
    writer: W,
    cancel: CancellationToken,
) -> Result<(), StdioError>
where
    H: ServerHandler,
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let calls = TaskTracker::new();
    serve(PanicShield::new(handler, calls.clone()), calls, reader, writer, cancel).await
}

async fn serve<R, W>(
    service: PanicShield,
    calls: TaskTracker,
    reader: R,
    writer: W,
    cancel: CancellationToken,
) -> Result<(), StdioError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let stop = cancel.child_token();
    let (transport, ends) = LineTransport::start(reader, writer);
    // Boxed, because the SDK's handshake is a future of many kilobytes that callers would carry along.
    let handshake = Box::pin(serve_server_with_ct::<_, _, _, TransportAdapterIdentity>(
        service,
        transport,
        stop.clone(),
    ));
    let outcome = match handshake.await {
        Ok(running) => Ok(wait(running, &ends.input_ended, &stop).await),
        Err(error) => handshake_outcome(error).map(|()| Instant::now() + SHUTDOWN_GRACE),
    };
    let deadline = *outcome.as_ref().unwrap_or(&(Instant::now() + SHUTDOWN_GRACE));
    calls.close();
    if timeout_at(deadline, calls.wait()).await.is_err() {
        warn!("a call did not end after it was cancelled");
    }
    if timeout_at(deadline, ends.writer).await.is_err() {
        debug!("the client does not read the last replies");
    }
    outcome.map(|_| ())
}

fn handshake_outcome(error: ServerInitializeError) -> Result<(), StdioError> {
    match error {
        // A client that disconnects and a server that stops are ends, not failures.
        ServerInitializeError::ConnectionClosed(_)
        | ServerInitializeError::Cancelled
        | ServerInitializeError::TransportError { .. } => Ok(()),
        other => Err(StdioError::Handshake(Box::new(other))),
    }
}

/// Waits until the service ends, the input ends or the server stops, and cancels the calls. Returns the
/// deadline for the rest of the shutdown.
async fn wait(
    running: RunningService<RoleServer, PanicShield>,
    input_ended: &CancellationToken,
    stop: &CancellationToken,
) -> Instant {
    let mut waiting = std::pin::pin!(running.waiting());
    tokio::select! {
        _ = &mut waiting => return Instant::now() + SHUTDOWN_GRACE,
        () = stop.cancelled() => {}
        () = input_ended.cancelled() => {
            if timeout(EOF_GRACE, &mut waiting).await.is_ok() {
                return Instant::now() + SHUTDOWN_GRACE;
            }
            stop.cancel();
        }
    }
    let deadline = Instant::now() + SHUTDOWN_GRACE;
    // The SDK may wait longer for cancelled calls than the grace allows; the caller waits for the calls.
    let _ = timeout_at(deadline, waiting).await;
    deadline
}
