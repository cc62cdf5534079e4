//! How long an issue waits before it is taken up again.

use std::time::Duration;

use carrel_tracker::IssueId;

/// The wait after a run that ended well.
pub(crate) const CONTINUATION: Duration = Duration::from_secs(1);

/// The wait after the first failure.
const FIRST: Duration = Duration::from_secs(10);

/// Doublings after which waits grow no more, whatever the limit.
const MOST_DOUBLINGS: u32 = 10;

/// Waits differ by up to one in so many, or issues that failed together would come back together.
const SPREAD: u64 = 10;

/// Returns the wait before an attempt: twice as long each time, up to a limit.
pub(crate) fn before(attempt: u32, issue: &IssueId, longest: Duration) -> Duration {
    let doubled = FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(MOST_DOUBLINGS));
    let most = u64::try_from(doubled.as_millis()).unwrap_or(u64::MAX) / SPREAD;
    let spread = |most: u64| Duration::from_millis(scatter(issue, attempt) % most.max(1));
    let wait = doubled.saturating_add(spread(most));
    if wait <= longest {
        return wait;
    }
    // At the limit they are shorter instead.
    let most = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX) / SPREAD;
    longest.saturating_sub(spread(most))
}

/// A number that is as good as any, and the same each time.
fn scatter(issue: &IssueId, attempt: u32) -> u64 {
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
