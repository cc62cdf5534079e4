//! Back-off between retries: 10 s, doubled per consecutive failure, with jitter, up to a configured maximum.
//!
//! The jitter is a hash of issue and attempt rather than a random number, so that [`crate::decide`] stays a pure
//! function. Up to the maximum it adds at most a tenth; at the maximum it subtracts at most a tenth, so
//! that the maximum holds.
//!
//! | attempt | 1 | 2 | 3 | 4 | 5 | 6 with a maximum of 300 s |
//! |---|---|---|---|---|---|---|
//! | wait | 10–11 s | 20–22 s | 40–44 s | 80–88 s | 160–176 s | 270–300 s |

use std::time::Duration;

use carrel_tracker::IssueId;

/// The wait after a successful run of an issue that is still active.
pub(crate) const CONTINUATION: Duration = Duration::from_secs(1);

/// The wait after the first failure, without jitter.
const BASE: Duration = Duration::from_secs(10);

/// Bounds the shift; 10 s doubled ten times is about three hours.
const MAX_DOUBLINGS: u32 = 10;

/// The jitter is at most one part in this many. Without it, issues that failed together would be retried
/// together.
const JITTER_DIVISOR: u64 = 10;

/// Returns the wait before an attempt, at most `max`.
pub(crate) fn before(attempt: u32, issue: &IssueId, max: Duration) -> Duration {
    let doubled = BASE.saturating_mul(1 << attempt.saturating_sub(1).min(MAX_DOUBLINGS));
    let most = u64::try_from(doubled.as_millis()).unwrap_or(u64::MAX) / JITTER_DIVISOR;
    let jitter = |most: u64| Duration::from_millis(hash(issue, attempt) % most.max(1));
    let wait = doubled.saturating_add(jitter(most));
    if wait <= max {
        return wait;
    }
    let most = u64::try_from(max.as_millis()).unwrap_or(u64::MAX) / JITTER_DIVISOR;
    max.saturating_sub(jitter(most))
}

fn hash(issue: &IssueId, attempt: u32) -> u64 {
    let bytes = issue.0.bytes().chain(attempt.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_are_spread_up_to_the_limit() {
        let issue = IssueId("one".to_owned());
        let longest = Duration::from_mins(5);
        for (attempt, seconds) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160)] {
            let wait = before(attempt, &issue, longest);
            let least = Duration::from_secs(seconds);
            assert!(wait >= least && wait <= least + least / 10, "{attempt}: {wait:?}");
        }
        for attempt in [6, 7, u32::MAX] {
            let wait = before(attempt, &issue, longest);
            assert!(wait <= longest && wait >= longest.mul_f32(0.9), "{attempt}: {wait:?}");
        }
    }

    #[test]
    fn issues_that_fail_together_come_back_apart() {
        let waits: std::collections::BTreeSet<_> =
            (0..20).map(|number| before(1, &IssueId(number.to_string()), Duration::MAX)).collect();
        assert!(waits.len() > 15, "{waits:?}");
        let longest = Duration::from_mins(5);
        let at_limit: std::collections::BTreeSet<_> =
            (0..20).map(|number| before(9, &IssueId(number.to_string()), longest)).collect();
        assert!(at_limit.len() > 15, "{at_limit:?}");
    }
}
