//! A way to a server that loses what it should carry.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// How long the server may take to do what it was sent.
const DONE: Duration = Duration::from_millis(100);

/// A way to a server. Each so many messages with a certain text, the connection ends: by turns before
/// the message arrives, and after it has been done but before the answer is seen.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    lost: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl FaultProxy {
    /// Opens the way.
    pub async fn open(port: u16, text: &'static [u8], each: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let told = Arc::clone(&lost);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (seen, lost) = (Arc::clone(&seen), Arc::clone(&lost));
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
                        return;
                    };
                    // Either side may be gone.
                    let _ = carry(client, server, text, each, &seen, &lost).await;
                });
            }
        });
        Self { address, lost: told, accepting: accepting.abort_handle() }
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns how often something was lost.
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    text: &[u8],
    each: usize,
    seen: &AtomicUsize,
    lost: &AtomicUsize,
) -> io::Result<()> {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let message = &asked[..read?];
                if message.is_empty() {
                    return Ok(());
                }
                let matches = message.windows(text.len()).any(|window| window == text);
                if matches && seen.fetch_add(1, Ordering::Relaxed) % each == each - 1 {
                    if lost.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                        server.write_all(message).await?;
                        tokio::time::timeout(DONE, server.read(&mut answered)).await??;
                        tokio::time::sleep(DONE / 10).await;
                    }
                    return Ok(());
                }
                server.write_all(message).await?;
            }
            read = server.read(&mut answered) => {
                let answer = &answered[..read?];
                if answer.is_empty() {
                    return Ok(());
                }
                client.write_all(answer).await?;
            }
        }
    }
}
