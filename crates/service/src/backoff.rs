//! How long to wait before trying again.

use std::time::Duration;

/// The wait before the first try.
const FIRST: Duration = Duration::from_millis(100);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Returns how long to wait after so many failures: twice as long each time, up to a limit.
pub(crate) fn after(failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST)
}

/// Returns how long a task waits that has been lost so often.
pub(crate) fn of_lost(lost: u32) -> Duration {
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
