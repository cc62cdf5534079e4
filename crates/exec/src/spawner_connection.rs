//! The server's end of the socket to the spawner or to a cell.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::error::SpawnError;
use crate::protocol::Request;
use crate::socket::{self, AsyncSocket};

/// The connection to the spawner or to a cell. When it is dropped, the process at the other end ends
/// every command and itself.
#[derive(Debug)]
pub(crate) struct SpawnerConnection {
    requests: AsyncSocket,
    null: OwnedFd,
    next_number: AtomicU64,
    /// For a cell, the connection to its spawner, which must outlive it.
    spawner: Option<Arc<Self>>,
}

impl SpawnerConnection {
    /// Returns the server's end and the other one. `spawner` is set for a cell.
    pub(crate) fn open(spawner: Option<Arc<Self>>) -> io::Result<(Self, OwnedFd)> {
        let (near, far) = socket::pair()?;
        Ok((Self { spawner, ..Self::over(near)? }, far))
    }

    pub(crate) fn over(socket: OwnedFd) -> io::Result<Self> {
        let requests = AsyncSocket::new(socket)?;
        let null = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { requests, null, next_number: AtomicU64::new(0), spawner: None })
    }

    /// Returns a request number that is unique on this connection.
    pub(crate) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn is_cell(&self) -> bool {
        self.spawner.is_some()
    }

    /// Returns `/dev/null`, the input of commands without one.
    pub(crate) fn null(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }

    /// Sends a request with descriptors, waiting while the socket is full.
    pub(crate) async fn send(
        &self,
        request: Request,
        mut descriptors: Vec<BorrowedFd<'_>>,
    ) -> Result<(), SpawnError> {
        let (payload, file) = request.into_payload().map_err(SpawnError::Resources)?;
        descriptors.extend(file.as_ref().map(AsFd::as_fd));
        self.requests.send(&payload, &descriptors).await.map_err(failure_of_sending)
    }

    /// Makes the spawner kill an init that does not respond. Not sent if the socket is full: then the
    /// spawner does not respond either.
    pub(crate) fn kill(&self, number: u64) {
        self.requests.send_now(&Request::Kill { number }.encode());
    }
}

fn failure_of_sending(error: io::Error) -> SpawnError {
    match Errno::from_io_error(&error) {
        Some(Errno::PIPE | Errno::CONNRESET) => SpawnError::SpawnerGone,
        _ => SpawnError::Resources(error),
    }
}
