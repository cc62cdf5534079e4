//! The children of a process to which orphans are handed: having none means that every descendant
//! is gone.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use carrel_sandbox::{SignalQueue, SignalScope};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};

use super::{ready, tree};

/// The pause between two sweeps of a tree that is being killed. Most trees need one sweep.
pub(super) const SWEEP_PAUSE: Duration = Duration::from_millis(10);

/// What the pause grows to, so that a process that the kernel cannot end yet, such as one that
/// waits for a dead disk, does not keep a processor busy.
const MAX_SWEEP_PAUSE: Duration = Duration::from_millis(200);

/// How many children are taken at once: a tree that keeps making them must not keep its supervisor
/// from anything else.
const MAX_REAPED: usize = 256;

/// Takes the status of the children that have ended, or of many of them. Returns whether there are no
/// children left.
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

/// Kills every descendant until nothing is left. `signals` tell when a child has ended.
///
/// Giving up is not an answer: what fails, for want of memory or descriptors, is tried again.
pub(super) fn kill_all(
    signals: &SignalQueue,
    enclosure: SignalScope,
    mut ended: impl FnMut(Pid, WaitStatus),
) {
    let mut pause = SWEEP_PAUSE;
    loop {
        let swept =
            if enclosure.signal_all(Signal::KILL) { Ok(0) } else { tree::kill(&HashSet::new()) };
        match swept.and_then(|_| gone_within(pause, signals, &mut ended)) {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) => std::thread::sleep(pause),
        }
        pause = MAX_SWEEP_PAUSE.min(pause * 2);
    }
}

/// Waits for the children to end, and returns whether none is left.
pub(super) fn gone_within(
    at_most: Duration,
    signals: &SignalQueue,
    mut ended: impl FnMut(Pid, WaitStatus),
) -> io::Result<bool> {
    let until = Instant::now() + at_most;
    while !reap(&mut ended)? {
        if until <= Instant::now() || ready::wait([signals.as_fd()], Some(until))? == [false] {
            return Ok(false);
        }
        signals.take()?;
    }
    Ok(true)
}
