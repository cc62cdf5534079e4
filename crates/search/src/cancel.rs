//! When a search has to end before its work is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A flag with which a caller ends a search that runs on another thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Returns a flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag for good, on every clone.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Tells whether the flag is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What ends a search early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The caller gave up.
    Cancelled,
    /// The time is over.
    TimeUp,
    /// What was found is enough.
    Enough,
}

/// How long a search may go on.
#[derive(Debug)]
pub(crate) struct Budget {
    cancel: Cancel,
    deadline: Option<Instant>,
    enough: AtomicBool,
}

impl Budget {
    pub(crate) fn new(cancel: &Cancel, time: Duration) -> Self {
        // A time too long to be added is as good as none.
        let deadline = Instant::now().checked_add(time);
        Self { cancel: cancel.clone(), deadline, enough: AtomicBool::new(false) }
    }

    /// Ends what is still going on, because nothing more can matter.
    pub(crate) fn stop(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Says whether to stop; cheap enough to be asked before every file.
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
    fn a_budget_ends_by_time_or_by_its_caller() {
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
