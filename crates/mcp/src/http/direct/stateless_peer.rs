//! The client of a request that stands alone, as the SDK shows it to a handler.

use std::{convert::Infallible, io, sync::OnceLock};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        ClientCapabilities, ClientJsonRpcMessage, Implementation, InitializeRequestParams,
        ProtocolVersion, ServerJsonRpcMessage,
    },
    service::{Peer, RunningService, serve_directly_with_ct},
    transport::{Transport, TransportAdapterIdentity},
};
use tokio_util::sync::CancellationToken;
use tracing::error;

/// One peer for all requests that take the short way. The SDK makes a peer only together with a service loop, so
/// there is one loop whose transport carries nothing.
pub(crate) struct StatelessPeer {
    running: OnceLock<RunningService<RoleServer, NoHandler>>,
    stop: CancellationToken,
}

impl StatelessPeer {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { running: OnceLock::new(), stop }
    }

    /// Returns the peer. The first call starts the loop, on the runtime of the caller.
    pub(crate) fn get(&self) -> Peer<RoleServer> {
        let running = self.running.get_or_init(|| {
            // As the SDK describes the client of a stateless request.
            let client = InitializeRequestParams::new(
                ClientCapabilities::default(),
                Implementation::default(),
            )
            .with_protocol_version(ProtocolVersion::V_2026_07_28);
            serve_directly_with_ct::<_, _, _, _, TransportAdapterIdentity>(
                NoHandler,
                NoTransport,
                Some(client),
                // Not the token itself: the loop cancels its own when it is dropped.
                self.stop.child_token(),
            )
        });
        running.peer().clone()
    }
}

struct NoHandler;

impl ServerHandler for NoHandler {}

struct NoTransport;

impl Transport<RoleServer> for NoTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        _: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        error!("a handler sent a message of its own in a request that takes the short way");
        std::future::ready(Err(io::ErrorKind::NotConnected.into()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let never: Infallible = std::future::pending().await;
        match never {}
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn dropping_the_peer_does_not_stop_the_server() {
        let stop = CancellationToken::new();
        let peer = StatelessPeer::new(stop.clone());
        assert!(peer.get().peer_info().is_some());
        drop(peer);
        assert!(!stop.is_cancelled());
    }

    #[tokio::test]
    async fn stopping_the_server_ends_the_loop() {
        let stop = CancellationToken::new();
        let peer = StatelessPeer::new(stop.clone()).get();
        stop.cancel();
        while !peer.is_transport_closed() {
            tokio::task::yield_now().await;
        }
    }
}
