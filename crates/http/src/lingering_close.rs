//! A close that lets the peer read the last response.
//!
//! A request can be answered before its body has arrived, as one is that is too large. If the socket were closed at
//! once, what still arrives would be answered with a reset, upon which many clients report a broken connection
//! instead of reading the response. So the sending side is closed first, and what the peer goes on sending is read
//! and dropped, until it stops or [`LONGEST`] has passed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The time without data after which the peer counts as done.
const QUIET: Duration = Duration::from_millis(250);

/// The time after which a peer that goes on sending is cut off.
const LONGEST: Duration = Duration::from_secs(5);

/// Bytes that are dropped in one piece.
const PIECE: usize = 64 * 1024;

/// A stream that reads what the peer still sends when it is shut down.
#[derive(Debug)]
pub(crate) struct LingeringClose<S> {
    inner: S,
    lingering: Option<Lingering>,
}

#[derive(Debug)]
struct Lingering {
    quiet: Pin<Box<Sleep>>,
    end: Instant,
    piece: Vec<u8>,
}

impl<S> LingeringClose<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, lingering: None }
    }
}

impl<S: AsyncRead + Unpin> LingeringClose<S> {
    /// Drops what arrives; ready when the peer is done, or its time is over.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Self { inner, lingering } = self;
        let Lingering { quiet, end, piece } = lingering.get_or_insert_with(|| Lingering {
            quiet: Box::pin(sleep(QUIET)),
            end: Instant::now() + LONGEST,
            piece: vec![0; PIECE],
        });
        loop {
            let mut buffer = ReadBuf::new(piece);
            match Pin::new(&mut *inner).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let now = Instant::now();
                    if now >= *end {
                        return Poll::Ready(());
                    }
                    quiet.as_mut().reset((now + QUIET).min(*end));
                }
                // The end, or a connection that is broken already.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return quiet.as_mut().poll(context),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LingeringClose<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringClose<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
        }
        self.poll_drain(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// More than both sockets buffer.
    const BODY: usize = 64 << 20;

    #[tokio::test]
    async fn a_peer_that_is_still_sending_gets_the_response() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let answering = tokio::spawn(async move {
            let mut stream = LingeringClose::new(stream);
            stream.read_exact(&mut [0; 10]).await.unwrap();
            stream.write_all(b"too large").await.unwrap();
            stream.shutdown().await.unwrap();
        });
        peer.write_all(&vec![b'x'; BODY]).await.expect("all of it is taken");
        peer.shutdown().await.unwrap();
        let mut response = String::new();
        peer.read_to_string(&mut response).await.unwrap();
        assert_eq!(response, "too large");
        answering.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_ends_is_cut_off() {
        let (mut peer, stream) = tokio::io::duplex(16);
        let mut stream = LingeringClose::new(stream);
        let sending = tokio::spawn(async move {
            while peer.write_all(b"more").await.is_ok() {
                sleep(Duration::from_millis(10)).await;
            }
        });
        let begun = Instant::now();
        stream.shutdown().await.unwrap();
        assert!((LONGEST..LONGEST * 2).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        drop(stream);
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_peer_is_not_waited_for() {
        let (_peer, stream) = tokio::io::duplex(16);
        let begun = Instant::now();
        LingeringClose::new(stream).shutdown().await.unwrap();
        assert!(begun.elapsed() < QUIET * 2, "{:?}", begun.elapsed());
    }
}
