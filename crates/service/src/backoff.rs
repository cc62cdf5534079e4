//! Exponential back-off without jitter: 100 ms, doubled after each failure, at most 30 s.
//!
//! One process retries against one store or bus, so that there is no herd to spread out.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);

const LONGEST: Duration = Duration::from_secs(30);

/// Returns the wait after the given number of consecutive failures, counted from 1.
pub(crate) fn after(failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST)
}

/// Returns the wait before the next attempt of a task after the given number of lost attempts. It starts
/// at 800 ms: a task that was lost with its worker must not take down the next one at once.
pub(crate) fn after_lost_attempts(lost: u32) -> Duration {
    after(lost.saturating_add(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits: Vec<_> = [1, 2, 3, 9, 10, 1000].map(after).map(|wait| wait.as_millis()).into();
        assert_eq!(waits, [100, 200, 400, 25_600, 30_000, 30_000]);
    }
}
