//! Accepting connections, serving them, and letting go of them.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use super::stall::StallGuard;
use crate::limits::{ACCEPT_PAUSE, MAX_HEAD_BYTES};

/// What a server expects of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionOptions {
    /// How long a client may take to send the head of a request.
    pub header_read_timeout: Duration,
    /// How long a client may leave what it is sent unread.
    pub write_stall: Duration,
    /// How many there may be at once.
    pub max_connections: usize,
}

/// All connections of a server.
#[derive(Debug)]
pub struct Connections {
    router: Router,
    builder: http1::Builder,
    write_stall: Duration,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Asks connections to finish what they are at.
    finish: CancellationToken,
    /// Drops connections as they are.
    abandon: CancellationToken,
}

impl Connections {
    /// Prepares to serve a router.
    pub fn new(options: ConnectionOptions, router: Router) -> Self {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_read_timeout)
            .max_buf_size(MAX_HEAD_BYTES);
        Self {
            router,
            builder,
            write_stall: options.write_stall,
            places: Arc::new(Semaphore::new(options.max_connections)),
            tasks: TaskTracker::new(),
            finish: CancellationToken::new(),
            abandon: CancellationToken::new(),
        }
    }

    /// Accepts connections for ever. Each is served by a task of its own.
    pub async fn accept(&self, listener: &TcpListener) {
        loop {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => self.serve(stream, place),
                Err(error) => {
                    // The connection that failed is gone; a lack of descriptors passes.
                    warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, place: OwnedSemaphorePermit) {
        // Without it the kernel holds small replies back for up to 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "could not turn off the delay of small packets");
        }
        let stream = TokioIo::new(StallGuard::new(stream, self.write_stall));
        let service = TowerToHyperService::new(self.router.clone());
        let connection = self.builder.serve_connection(stream, service);
        let (finish, abandon) = (self.finish.clone(), self.abandon.clone());
        self.tasks.spawn(async move {
            let _place = place;
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = finish.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection => ended,
                        () = abandon.cancelled() => return,
                    }
                }
            };
            if let Err(error) = ended {
                debug!(%error, "a connection ended early");
            }
        });
    }

    /// Lets connections finish until `deadline` and then drops them. Says whether all finished.
    pub async fn close(&self, deadline: Instant) -> bool {
        self.finish.cancel();
        self.tasks.close();
        let finished = timeout_at(deadline, self.tasks.wait()).await.is_ok();
        self.abandon.cancel();
        self.tasks.wait().await;
        finished
    }
}
