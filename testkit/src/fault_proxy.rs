//! A TCP proxy that breaks connections at chosen messages, to test lost requests and lost replies.
//!
//! A client cannot tell a request that never arrived from one that was executed and whose reply was lost. Tests
//! put the proxy between a store and its server and break connections at `COMMIT`, in both ways by turns: every
//! operation must then take effect exactly once.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// The time for the server to execute a message whose reply is dropped.
const EXECUTION_TIME: Duration = Duration::from_millis(100);

/// A proxy that closes the connection at every n-th message with a certain text: alternately after the server
/// has executed it and before the client sees the reply, and before the server gets it.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    lost: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl FaultProxy {
    /// Starts a proxy to a port, which breaks every `every`-th message that contains `text`.
    pub async fn start(port: u16, text: &'static [u8], every: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(AtomicUsize::new(0));
        let lost = Arc::new(AtomicUsize::new(0));
        let lost_count = Arc::clone(&lost);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (seen, lost) = (Arc::clone(&seen), Arc::clone(&lost));
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
                        return;
                    };
                    // Either side may have closed the connection.
                    let _ = forward(client, server, text, every, &seen, &lost).await;
                });
            }
        });
        Self { address, lost: lost_count, accepting: accepting.abort_handle() }
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the number of broken connections.
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    text: &[u8],
    every: usize,
    seen: &AtomicUsize,
    lost: &AtomicUsize,
) -> io::Result<()> {
    let mut request = vec![0; 1 << 16];
    let mut reply = vec![0; 1 << 16];
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let message = &request[..read?];
                if message.is_empty() {
                    return Ok(());
                }
                let matches = message.windows(text.len()).any(|window| window == text);
                if matches && seen.fetch_add(1, Ordering::Relaxed) % every == every - 1 {
                    if lost.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                        server.write_all(message).await?;
                        tokio::time::timeout(EXECUTION_TIME, server.read(&mut reply)).await??;
                        tokio::time::sleep(EXECUTION_TIME / 10).await;
                    }
                    return Ok(());
                }
                server.write_all(message).await?;
            }
            read = server.read(&mut reply) => {
                let message = &reply[..read?];
                if message.is_empty() {
                    return Ok(());
                }
                client.write_all(message).await?;
            }
        }
    }
}
