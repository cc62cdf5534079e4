//! Leaving a tracker alone for as long as it wants to be.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Closed while a tracker wants to be left alone. All who ask in its name share one.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Option<Instant>>);

impl Gate {
    /// Closes for this long; never for less than it is closed already.
    pub(crate) fn close(&self, now: Instant, wait: Duration) {
        let mut until = self.lock();
        *until = (*until).max(now.checked_add(wait));
    }

    /// Returns how long it is still closed.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        let left = self.lock().map(|until| until.saturating_duration_since(now));
        left.filter(|left| !left.is_zero())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.0.lock().expect("nothing panics while the gate is looked at")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_gate_opens_when_the_time_is_over() {
        let (gate, start) = (Gate::default(), Instant::now());
        let seconds = Duration::from_secs;
        assert_eq!(gate.remaining(start), None);
        gate.close(start, seconds(10));
        gate.close(start, seconds(3));
        assert_eq!(gate.remaining(start), Some(seconds(10)));
        assert_eq!(gate.remaining(start + seconds(9)), Some(seconds(1)));
        assert_eq!(gate.remaining(start + seconds(10)), None);
        assert_eq!(gate.remaining(start + seconds(11)), None);
    }
}
