//! One client over the standard streams: one message a line, nothing else on the output.

mod line_reader;
mod line_transport;

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

/// Why the standard streams could not be served to their end.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The handler refused the client's `initialize`; the client has been told.
    #[error("could not agree with the client on a session")]
    Handshake(#[source] Box<ServerInitializeError>),
}

/// Serves one client over standard input and output until it closes its end or `cancel` fires.
///
/// After the end of the input, running calls have [`EOF_GRACE`] to finish and are then cancelled;
/// what still runs after [`SHUTDOWN_GRACE`] is left behind. Standard input may be read by a thread
/// that cannot be interrupted, so the caller should leave its runtime with `shutdown_background`.
pub async fn serve_stdio<H: ServerHandler>(
    handler: H,
    cancel: CancellationToken,
) -> Result<(), StdioError> {
    let (reader, writer) = stdio_pipes();
    serve_lines(handler, reader, writer, cancel).await
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
    let stop = cancel.child_token();
    let calls = TaskTracker::new();
    let (transport, ends) = LineTransport::start(reader, writer);
    let service = PanicShield::new(handler, calls.clone());
    // The SDK's handshake is a future of many kilobytes; callers should not have to carry it.
    let starting = Box::pin(serve_server_with_ct::<_, _, _, TransportAdapterIdentity>(
        service,
        transport,
        stop.clone(),
    ));
    let outcome = match starting.await {
        Ok(running) => Ok(wait(running, &ends.input_ended, &stop).await),
        Err(error) => handshake_outcome(error).map(|()| Instant::now() + SHUTDOWN_GRACE),
    };
    let deadline = *outcome.as_ref().unwrap_or(&(Instant::now() + SHUTDOWN_GRACE));
    calls.close();
    if timeout_at(deadline, calls.wait()).await.is_err() {
        warn!("a call did not end after it was cancelled");
    }
    if timeout_at(deadline, ends.writer).await.is_err() {
        debug!("the client does not read what is left for it");
    }
    outcome.map(|_| ())
}

fn handshake_outcome(error: ServerInitializeError) -> Result<(), StdioError> {
    match error {
        // The client went away or the server stops: both are ends, not failures.
        ServerInitializeError::ConnectionClosed(_)
        | ServerInitializeError::Cancelled
        | ServerInitializeError::TransportError { .. } => Ok(()),
        other => Err(StdioError::Handshake(Box::new(other))),
    }
}

/// Waits for the end of the service, however it comes, and sees to it that calls are cancelled.
/// Returns the moment by which everything else should have ended too.
async fn wait<H: ServerHandler>(
    running: RunningService<RoleServer, PanicShield<H>>,
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
    // The SDK's own wait for cancelled calls may be longer; the caller looks at the calls next.
    let _ = timeout_at(deadline, waiting).await;
    deadline
}
