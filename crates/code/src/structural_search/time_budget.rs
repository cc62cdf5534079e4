//! The time that a search may take.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};

use super::SearchError;

/// The steps between two looks at the clock.
const STEPS: u32 = 512;

/// The time that a search may take, over all files, and its cancellation.
pub struct TimeBudget<'c> {
    deadline: Instant,
    is_cancelled: Option<&'c dyn Fn() -> bool>,
    steps: Cell<u32>,
}

impl TimeBudget<'static> {
    /// Creates a budget that begins now.
    pub fn of(time: Duration) -> Self {
        Self { deadline: Instant::now() + time, is_cancelled: None, steps: Cell::new(0) }
    }
}

impl<'c> TimeBudget<'c> {
    /// Adds a question that is asked now and then and ends the search if it is answered with yes.
    #[must_use]
    pub fn cancelled_by<'d>(self, is_cancelled: &'d dyn Fn() -> bool) -> TimeBudget<'d>
    where
        'c: 'd,
    {
        TimeBudget { is_cancelled: Some(is_cancelled), deadline: self.deadline, steps: self.steps }
    }

    /// Counts one step, and fails if the time is over.
    pub(crate) fn step(&self) -> Result<(), SearchError> {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS) { self.check() } else { Ok(()) }
    }

    /// Fails if the time is over.
    pub(crate) fn check(&self) -> Result<(), SearchError> {
        if self.is_cancelled.is_some_and(|is_cancelled| is_cancelled()) {
            return Err(SearchError::Cancelled);
        }
        if Instant::now() >= self.deadline { Err(SearchError::TimedOut) } else { Ok(()) }
    }
}

impl fmt::Debug for TimeBudget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeBudget").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
