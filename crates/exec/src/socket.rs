//! Packets that carry descriptors, between processes on one machine.

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

/// How many descriptors one packet may carry. A request has five and a few that are inherited.
const MAX_DESCRIPTORS: usize = 16;

/// One message with the descriptors that came along.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) payload: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Returns two connected sockets that keep message boundaries and report when the peer is gone.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// The end of a pair that is used inside a tokio runtime and never blocks.
#[derive(Debug)]
pub(crate) struct AsyncSocket(UnixDatagram);

impl AsyncSocket {
    /// Returns this process's end of a new pair, and the one to pass on.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (near, far) = pair()?;
        Ok((Self::new(near)?, far))
    }

    /// Takes an end of a pair as this process's own.
    pub(crate) fn new(near: OwnedFd) -> io::Result<Self> {
        // The type stands for any socket with message boundaries; it only tells when one is ready.
        let near = std::os::unix::net::UnixDatagram::from(near);
        near.set_nonblocking(true)?;
        Ok(Self(UnixDatagram::from_std(near)?))
    }

    /// Sends one packet, after waiting for room.
    pub(crate) async fn send(
        &self,
        payload: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let send = || send(&self.0, payload, descriptors).map_err(io::Error::from);
        // There nearly always is room, and the reactor has not heard of that yet from a new socket.
        match send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.0.async_io(Interest::WRITABLE, send).await
            }
            done => done,
        }
    }

    /// Sends one small packet without waiting. A peer that is gone, or that has not read for so
    /// long that there is no room, does not get it.
    pub(crate) fn send_now(&self, payload: &[u8]) {
        let _ = send(&self.0, payload, &[]);
    }

    /// Waits for one packet; none when the peer is gone. Nothing is lost if the wait is given up.
    pub(crate) async fn receive(&self, capacity: usize) -> io::Result<Option<Packet>> {
        let receive = || Ok(receive(&self.0, capacity)?);
        self.0.async_io(Interest::READABLE, receive).await
    }
}

/// Sends one packet.
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

/// Receives one packet of at most `capacity` bytes; none when the peer is gone.
pub(crate) fn receive(socket: impl AsFd, capacity: usize) -> Result<Option<Packet>> {
    // Most packets are much smaller than the largest, and memory that is touched has to be there.
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
