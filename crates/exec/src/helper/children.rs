//! The children of a subreaper. Orphans become its children, so having none means that every descendant
//! has ended.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use carrel_sandbox::{SignalQueue, SignalScope};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};

use super::{poll, process_tree};

/// The pause between two sweeps of a tree that is being killed. Most trees need one sweep.
pub(super) const SWEEP_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause, so that a process that the kernel cannot end yet, such as one that waits for a dead
/// disk, does not keep a processor busy.
const MAX_SWEEP_PAUSE: Duration = Duration::from_millis(200);

/// The most children that are reaped at once, so that a tree that keeps forking does not keep its
/// supervisor from everything else.
const MAX_REAPED: usize = 256;

/// Reaps children that have ended, up to a bound. Returns whether no children are left.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) -> io::Result<bool> {
    for _ in 0..MAX_REAPED {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(pid, status),
            Ok(None) => return Ok(false),
            Err(Errno::CHILD) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

/// Kills every descendant until none is left. A failed attempt, for want of memory or descriptors, is
/// repeated for ever: giving up would leave processes behind.
pub(super) fn kill_all(
    signals: &SignalQueue,
    scope: SignalScope,
    mut ended: impl FnMut(Pid, WaitStatus),
) {
    let mut pause = SWEEP_PAUSE;
    loop {
        let killed = if scope.signal_all(Signal::KILL) {
            Ok(0)
        } else {
            process_tree::kill(&HashSet::new())
        };
        match killed.and_then(|_| all_ended_within(pause, signals, &mut ended)) {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) => std::thread::sleep(pause),
        }
        pause = MAX_SWEEP_PAUSE.min(pause * 2);
    }
}

/// Waits for the children to end, and returns whether none is left.
pub(super) fn all_ended_within(
    at_most: Duration,
    signals: &SignalQueue,
    mut ended: impl FnMut(Pid, WaitStatus),
) -> io::Result<bool> {
    let until = Instant::now() + at_most;
    while !reap(&mut ended)? {
        if until <= Instant::now() || poll::wait([signals.as_fd()], Some(until))? == [false] {
            return Ok(false);
        }
        signals.take()?;
    }
    Ok(true)
}
