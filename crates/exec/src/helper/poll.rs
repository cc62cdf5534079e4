//! Waits for descriptors with `poll`.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until a descriptor is readable or its peer has ended, or until the deadline. Returns which are
/// ready.
pub(super) fn wait<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    until: Option<Instant>,
) -> io::Result<[bool; N]> {
    wait_with(descriptors, None, until).map(|(ready, _)| ready)
}

/// Waits as [`wait`] does for one more descriptor, if there is one, and returns its events.
pub(super) fn wait_with<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    another: Option<BorrowedFd<'_>>,
    until: Option<Instant>,
) -> io::Result<([bool; N], PollFlags)> {
    let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut watched: Vec<PollFd<'_>> = descriptors.into_iter().chain(another).map(watch).collect();
    poll(&mut watched, until.map(time_left).as_ref())?;
    let mut ready = [false; N];
    for (ready, descriptor) in ready.iter_mut().zip(&watched) {
        *ready = !descriptor.revents().is_empty();
    }
    Ok((ready, watched.get(N).map_or(PollFlags::empty(), PollFd::revents)))
}

fn time_left(until: Instant) -> Timespec {
    let left = until.saturating_duration_since(Instant::now());
    // A wait too long to express never ends.
    Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
