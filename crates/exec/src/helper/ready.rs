//! Waiting for descriptors.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until a descriptor has something to read or its peer is gone, or until the time is over.
/// Says for each whether it is ready.
pub(super) fn wait<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    until: Option<Instant>,
) -> io::Result<[bool; N]> {
    let mut watched = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    poll(&mut watched, until.map(time_left).as_ref())?;
    Ok(watched.map(|descriptor| !descriptor.revents().is_empty()))
}

fn time_left(until: Instant) -> Timespec {
    let left = until.saturating_duration_since(Instant::now());
    // A wait too long to express is as good as one without end.
    Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
