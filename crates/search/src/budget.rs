//! Cancellation and the time limit of a search.
//!
//! A search ends early for three reasons: its caller cancels it, its time is over, or the collector
//! has enough. Workers check before every item and every file, and at every read of a streamed
//! file. Cancellation discards the result; the other two return what is complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A cancellation flag that is shared with a search on another thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag for good, on every clone.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The reason for the early end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    Cancelled,
    TimeUp,
    Enough,
}

#[derive(Debug)]
pub(crate) struct Budget {
    cancel: Cancel,
    deadline: Option<Instant>,
    enough: AtomicBool,
}

impl Budget {
    pub(crate) fn new(cancel: &Cancel, time: Duration) -> Self {
        // A duration that overflows the clock means no deadline.
        let deadline = Instant::now().checked_add(time);
        Self { cancel: cancel.clone(), deadline, enough: AtomicBool::new(false) }
    }

    /// Stops the workers because the collector has enough.
    pub(crate) fn stop(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Returns an error if the search has to stop; two atomic loads and a clock read.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        if self.cancel.is_cancelled() {
            return Err(Halt::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Halt::TimeUp),
            Some(_) | None if self.enough.load(Ordering::Relaxed) => Err(Halt::Enough),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_by_time_cancellation_or_satisfaction() {
        let cancel = Cancel::new();
        assert_eq!(Budget::new(&cancel, Duration::ZERO).check(), Err(Halt::TimeUp));
        let long = Budget::new(&cancel, Duration::MAX);
        assert_eq!(long.check(), Ok(()));
        long.stop();
        assert_eq!(long.check(), Err(Halt::Enough));
        cancel.clone().cancel();
        assert_eq!(long.check(), Err(Halt::Cancelled));
    }
}
