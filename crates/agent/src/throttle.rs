//! A throttle for events that arrive hundreds of times a second, such as deltas of a message.

use std::time::{Duration, Instant};

/// The time between two events that pass.
const INTERVAL: Duration = Duration::from_millis(500);

/// Lets one event per [`INTERVAL`] pass.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    last: Option<Instant>,
}

impl Throttle {
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if is_due {
            self.last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_throttled() {
        let mut throttle = Throttle::default();
        assert!(throttle.is_due());
        let passed = (0..100).filter(|_| throttle.is_due()).count();
        assert!(passed < 50, "{passed}");
    }
}
