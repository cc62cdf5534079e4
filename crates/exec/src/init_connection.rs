//! The server's end of the socket to an init.

use std::io;
use std::os::fd::OwnedFd;

use crate::protocol::{MAX_CONTROL_BYTES, Order, Report, to_json};
use crate::socket::AsyncSocket;

/// The connection to an init. Closing it makes the init kill its tree.
#[derive(Debug)]
pub(crate) struct InitConnection(AsyncSocket);

impl InitConnection {
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let (near, far) = AsyncSocket::pair()?;
        Ok((Self(near), far))
    }

    /// Waits for the next report; `None` when the init has ended. Cancel-safe.
    pub(crate) async fn report(&self) -> Option<Report> {
        Some(self.report_with_descriptors().await?.0)
    }

    /// Waits for the next report and its descriptors. Cancel-safe.
    pub(crate) async fn report_with_descriptors(&self) -> Option<(Report, Vec<OwnedFd>)> {
        let packet = self.0.receive(MAX_CONTROL_BYTES).await.ok()??;
        Some((serde_json::from_slice(&packet.payload).ok()?, packet.descriptors))
    }

    /// Sends an order without waiting. If the init has ended, the next report is `None`.
    pub(crate) fn order(&self, order: &Order) {
        self.0.send_now(&to_json(order));
    }
}
