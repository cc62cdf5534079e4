//! Connections: accepted, served one task each, and shut down within a deadline.
//!
//! The server speaks HTTP/1.1 with hyper directly rather than through `axum::serve`, which has
//! neither a bound on connections nor timeouts. A slot of a semaphore is taken *before* `accept`, so
//! that connections past the limit wait in the kernel's backlog and cost this process nothing.
//!
//! Shutdown has two phases. [`HttpServer::close`] first requests a graceful end: hyper finishes the
//! response that is in progress and closes a connection that is idle. At the deadline the remaining
//! connections are dropped in the middle of their responses; event streams end this way unless their
//! producers ended them earlier.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::inline_wake::with_inline_wake;
use crate::lingering_close::LingeringClose;
use crate::stall_timeout::StallTimeout;
use crate::trusted_proxies::ConnectionEnds;

/// Bytes of one connection that are buffered while the head of a request is read. A larger head is
/// answered with 431.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The wait after a failed `accept`. Most failures are a lack of file descriptors, which an immediate
/// retry would meet again in a busy loop.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Bounds on what connections may cost.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The time in which the head of a request must arrive. It also ends idle connections.
    pub header_read_timeout: Duration,
    /// The time for which a peer may leave the server unable to write.
    pub write_stall: Duration,
    /// Connections that are open at once; further ones wait in the kernel's backlog.
    pub max_connections: usize,
}

/// A router served on every connection of a listener. Requests have [`ConnectionEnds`] among their extensions.
#[derive(Debug)]
pub struct HttpServer {
    router: Router,
    builder: http1::Builder,
    write_stall: Duration,
    slots: Arc<Semaphore>,
    tasks: TaskTracker,
    graceful_stop: CancellationToken,
    abort: CancellationToken,
}

impl HttpServer {
    /// Prepares to serve a router. Nothing is accepted before [`HttpServer::accept`].
    pub fn new(limits: ConnectionLimits, router: Router) -> Self {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_read_timeout)
            .max_buf_size(MAX_HEAD_BYTES);
        Self {
            router,
            builder,
            write_stall: limits.write_stall,
            slots: Arc::new(Semaphore::new(limits.max_connections)),
            tasks: TaskTracker::new(),
            graceful_stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }

    /// Accepts connections until the future is dropped. Dropping it ends no connection; that is for
    /// [`HttpServer::close`].
    pub async fn accept(&self, listener: &TcpListener) {
        loop {
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => self.serve(stream, peer, slot),
                Err(error) => {
                    warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, peer: SocketAddr, slot: OwnedSemaphorePermit) {
        // Nagle's algorithm would delay small replies by up to 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "could not set TCP_NODELAY");
        }
        // Without a local address the peer is gone already.
        let ends = stream.local_addr().ok();
        let ends = ends.map(|local| ConnectionEnds { peer: peer.ip(), reached: local.ip() });
        let stream = TokioIo::new(LingeringClose::new(StallTimeout::new(stream, self.write_stall)));
        let routes = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            if let Some(ends) = ends {
                request.extensions_mut().insert(ends);
            }
            routes.call(request)
        });
        let connection = self.builder.serve_connection(stream, service);
        let graceful_stop = self.graceful_stop.clone();
        let abort = self.abort.clone();
        self.tasks.spawn(async move {
            let _slot = slot;
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = with_inline_wake(connection.as_mut()) => ended,
                () = graceful_stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection => ended,
                        () = abort.cancelled() => return,
                    }
                }
            };
            if let Err(error) = ended {
                debug!(%error, "a connection ended early");
            }
        });
    }

    /// Shuts connections down gracefully until `deadline` and then drops the rest. Returns whether all
    /// of them ended in time.
    pub async fn close(&self, deadline: Instant) -> bool {
        self.graceful_stop.cancel();
        self.tasks.close();
        let in_time = timeout_at(deadline, self.tasks.wait()).await.is_ok();
        self.abort.cancel();
        self.tasks.wait().await;
        in_time
    }
}
