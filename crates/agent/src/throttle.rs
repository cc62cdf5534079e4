//! Telling of many pieces now and then.

use std::time::{Duration, Instant};

/// How often pieces of text are told. There may be hundreds a second.
const EVERY: Duration = Duration::from_millis(500);

/// Lets one piece in a while through.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    last: Option<Instant>,
}

impl Throttle {
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= EVERY);
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
        let mut pace = Throttle::default();
        assert!(pace.is_due());
        let told = (0..100).filter(|_| pace.is_due()).count();
        assert!(told < 50, "{told}");
    }
}
