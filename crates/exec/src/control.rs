//! The server's end of the socket to an init.

use std::io;
use std::os::fd::OwnedFd;

use crate::protocol::{MAX_CONTROL_BYTES, Order, Report, to_json};
use crate::socket::AsyncSocket;

/// The server's end. Closing it makes the init kill its tree.
#[derive(Debug)]
pub(crate) struct Control(AsyncSocket);

impl Control {
    /// Returns the server's end and the init's.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let (near, far) = AsyncSocket::pair()?;
        Ok((Self(near), far))
    }

    /// Waits for the next report; none when the init is gone. Nothing is lost if the wait is
    /// given up.
    pub(crate) async fn report(&self) -> Option<Report> {
        Some(self.report_with_descriptors().await?.0)
    }

    /// Waits as [`Control::report`] does, and also returns the descriptors that come along.
    pub(crate) async fn report_with_descriptors(&self) -> Option<(Report, Vec<OwnedFd>)> {
        let packet = self.0.receive(MAX_CONTROL_BYTES).await.ok()??;
        Some((serde_json::from_slice(&packet.payload).ok()?, packet.descriptors))
    }

    /// Tells the init something. If it is gone, the next report says so.
    pub(crate) fn order(&self, order: &Order) {
        self.0.send_now(&to_json(order));
    }
}
