//! Packets with descriptors between processes, over `SOCK_SEQPACKET` pairs.
//!
//! Sequenced packets keep message boundaries, so no framing is needed, and report the peer's death as
//! end of file, on which the whole crate relies.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::{Errno, Result, ioctl_fionread};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

/// The most descriptors of a packet. A request has five and a few that are inherited.
const MAX_DESCRIPTORS: usize = 16;

#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) payload: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// A non-blocking end of a pair, inside a tokio runtime.
#[derive(Debug)]
pub(crate) struct AsyncSocket(UnixDatagram);

impl AsyncSocket {
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (near, far) = pair()?;
        Ok((Self::new(near)?, far))
    }

    pub(crate) fn new(near: OwnedFd) -> io::Result<Self> {
        // Used for readiness only, which works for any socket.
        let near = std::os::unix::net::UnixDatagram::from(near);
        near.set_nonblocking(true)?;
        Ok(Self(UnixDatagram::from_std(near)?))
    }

    /// Sends one packet, waiting while the socket is full.
    pub(crate) async fn send(
        &self,
        payload: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let send = || send(&self.0, payload, descriptors).map_err(io::Error::from);
        // Nearly always possible at once, and the reactor does not know yet that a new socket is writable.
        match send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.0.async_io(Interest::WRITABLE, send).await
            }
            done => done,
        }
    }

    /// Sends one small packet without waiting. It is lost if the peer has ended or the socket is full.
    pub(crate) fn send_now(&self, payload: &[u8]) {
        let _ = send(&self.0, payload, &[]);
    }

    /// Waits for one packet; `None` when the peer has ended. Cancel-safe.
    pub(crate) async fn receive(&self, capacity: usize) -> io::Result<Option<Packet>> {
        let receive = || Ok(receive(&self.0, capacity)?);
        self.0.async_io(Interest::READABLE, receive).await
    }
}

pub(crate) fn send(
    socket: impl AsFd,
    payload: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::MSGSIZE);
    }
    sendmsg(socket, &[IoSlice::new(payload)], &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}

/// Receives one packet of at most `capacity` bytes; `None` when the peer has ended.
pub(crate) fn receive(socket: impl AsFd, capacity: usize) -> Result<Option<Packet>> {
    // Most packets are far smaller than the largest: zeroing 64 KiB for each would fault 16 pages in.
    let waiting = ioctl_fionread(&socket)?.try_into().unwrap_or(usize::MAX);
    let mut payload = vec![0; if waiting == 0 { capacity } else { capacity.min(waiting) }];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let iov = &mut [IoSliceMut::new(&mut payload)];
    let received = match recvmsg(socket, iov, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
        Ok(received) => received,
        // The peer died with packets unread.
        Err(Errno::CONNRESET) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(Errno::MSGSIZE);
    }
    let descriptors = ancillary.drain().flat_map(descriptors_of).collect();
    payload.truncate(received.bytes);
    Ok((received.bytes > 0).then_some(Packet { payload, descriptors }))
}

fn descriptors_of(message: RecvAncillaryMessage<'_>) -> Vec<OwnedFd> {
    match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_arrives_whole_with_its_descriptors_and_then_the_end() {
        let (near, far) = pair().unwrap();
        send(&near, b"one", &[near.as_fd(), far.as_fd()]).unwrap();
        send(&near, b"two", &[]).unwrap();
        drop(near);
        let first = receive(&far, 16).unwrap().unwrap();
        assert_eq!((first.payload.as_slice(), first.descriptors.len()), (&b"one"[..], 2));
        drop(first);
        assert_eq!(receive(&far, 16).unwrap().unwrap().payload, b"two");
        assert!(receive(&far, 16).unwrap().is_none());
    }

    #[test]
    fn a_packet_that_does_not_fit_is_an_error() {
        let (near, far) = pair().unwrap();
        send(&near, b"too long", &[]).unwrap();
        assert_eq!(receive(&far, 4).unwrap_err(), Errno::MSGSIZE);
    }
}
