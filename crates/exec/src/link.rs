//! The server's end of the socket to the spawner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::error::SpawnError;
use crate::protocol::Request;
use crate::socket::{self, AsyncSocket};

/// The connection to the spawner or a cell, which ends with it.
#[derive(Debug)]
pub(crate) struct Link {
    requests: AsyncSocket,
    null: OwnedFd,
    /// The number of the next request.
    next: AtomicU64,
    /// The connection to the spawner, which must last as long as its cells do.
    spawner: Option<Arc<Self>>,
}

impl Link {
    /// Returns the server's end and the other one. `spawner` is the connection over which a cell is
    /// asked for.
    pub(crate) fn open(spawner: Option<Arc<Self>>) -> io::Result<(Self, OwnedFd)> {
        let (near, far) = socket::pair()?;
        Ok((Self { spawner, ..Self::over(near)? }, far))
    }

    /// Connects to a spawner over the server's end of a pair of sockets.
    pub(crate) fn over(socket: OwnedFd) -> io::Result<Self> {
        let requests = AsyncSocket::new(socket)?;
        let null = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { requests, null, next: AtomicU64::new(0), spawner: None })
    }

    /// Returns a number for a request that no other one has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns whether what is at the other end is a cell.
    pub(crate) fn is_cell(&self) -> bool {
        self.spawner.is_some()
    }

    /// Returns what a command without input reads.
    pub(crate) fn null(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }

    /// Sends a request with descriptors, waiting for room if others send as well.
    pub(crate) async fn send(
        &self,
        request: Request,
        mut descriptors: Vec<BorrowedFd<'_>>,
    ) -> Result<(), SpawnError> {
        let (payload, file) = request.into_payload().map_err(SpawnError::Resources)?;
        descriptors.extend(file.as_ref().map(AsFd::as_fd));
        self.requests.send(&payload, &descriptors).await.map_err(failure_of_sending)
    }

    /// Asks for the end of an init that does not answer. If there is no room to send, the spawner
    /// does not answer either.
    pub(crate) fn end(&self, number: u64) {
        self.requests.send_now(&Request::End { number }.encode());
    }
}

fn failure_of_sending(error: io::Error) -> SpawnError {
    match Errno::from_io_error(&error) {
        Some(Errno::PIPE | Errno::CONNRESET) => SpawnError::SpawnerGone,
        _ => SpawnError::Resources(error),
    }
}
