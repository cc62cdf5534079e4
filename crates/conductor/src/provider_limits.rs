//! Rate limits as agents report them, in the format of their provider.
//!
//! Codex reports up to two windows, `primary` and `secondary`, each with a used percentage and a reset
//! time, in camel or snake case depending on its version, and credits that lift the limits. Anything that
//! is not understood is no limit: a wrong guess would stop all dispatches.
//!
//! ```json
//! { "primary": { "usedPercent": 100, "resetsAt": 1800000600 }, "secondary": { "usedPercent": 12 } }
//! ```
//!
//! Here dispatches stop until the epoch time 1800000600: the primary window is exhausted, the secondary
//! one is not.

use std::time::Duration;

use carrel_domain::Timestamp;
use serde_json::Value;

/// The longest rate limit that is honoured. A provider or tracker that names a longer one is asked again
/// after this time.
pub(crate) const MAX_RATE_LIMIT: Duration = Duration::from_hours(24);

/// Returns the time at which the last exhausted window resets. `None` if no window is exhausted, if
/// there are credits, or if no reset time is named.
pub(crate) fn limited_until(limits: &Value, now: Timestamp) -> Option<Timestamp> {
    let limits =
        ["rateLimits", "rate_limits"].iter().find_map(|key| limits.get(key)).unwrap_or(limits);
    let is_set = |key: &&str| limits["credits"][*key] == true;
    if ["hasCredits", "has_credits", "unlimited"].iter().any(is_set) {
        return None;
    }
    let windows = ["primary", "secondary"].iter().filter_map(|name| limits.get(name));
    let until = windows.filter(|window| is_used_up(window)).filter_map(|window| reset(window, now));
    until.max().map(|until| until.min(now.after(MAX_RATE_LIMIT))).filter(|until| *until > now)
}

fn number(value: &Value, keys: &[&str]) -> Option<f64> {
    keys.iter().find_map(|key| value.get(key)).and_then(Value::as_f64)
}

fn is_used_up(window: &Value) -> bool {
    number(window, &["usedPercent", "used_percent"]).is_some_and(|used| used >= 100.0)
        || number(window, &["remaining"]).is_some_and(|remaining| remaining <= 0.0)
}

fn reset(window: &Value, now: Timestamp) -> Option<Timestamp> {
    let at = number(window, &["resetsAt", "resets_at", "reset_at"]);
    let after = number(window, &["resetsInSeconds", "resets_in_seconds", "reset_in_seconds"]);
    let length = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    at.and_then(length)
        .map(|since| Timestamp::from_millis(0).after(since))
        .or_else(|| after.and_then(length).map(|wait| now.after(wait)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: i64 = 1_800_000_000_000;

    fn wait(limits: &Value) -> Option<u64> {
        let now = Timestamp::from_millis(NOW);
        limited_until(limits, now).map(|until| now.age(until).as_secs())
    }

    #[test]
    fn a_window_that_is_used_up_holds_until_it_begins_again() {
        let half = json!({ "primary": { "usedPercent": 50, "resetsAt": 1_800_000_600 } });
        assert_eq!(wait(&half), None);
        let full = json!({ "primary": { "usedPercent": 100.0, "resetsAt": 1_800_000_600 } });
        assert_eq!(wait(&full), Some(600));
        let inside = json!({ "rateLimits": full });
        assert_eq!(wait(&inside), Some(600));
        let snake = json!({ "secondary": { "used_percent": 120, "resets_in_seconds": 30 } });
        assert_eq!(wait(&snake), Some(30));
        let none = json!({ "primary": { "remaining": 0, "reset_in_seconds": 5 } });
        assert_eq!(wait(&none), Some(5));
    }

    #[test]
    fn nothing_holds_with_credits_without_an_end_or_for_ever() {
        let credits = json!({ "primary": { "usedPercent": 100, "resetsInSeconds": 9 }, "credits": { "hasCredits": true } });
        assert_eq!(wait(&credits), None);
        assert_eq!(wait(&json!({ "primary": { "usedPercent": 100 } })), None);
        let past = json!({ "primary": { "usedPercent": 100, "resetsAt": 5 } });
        assert_eq!(wait(&past), None);
        for odd in [json!(1e300), json!(-4), json!("soon")] {
            let limits = json!({ "primary": { "usedPercent": 100, "resetsInSeconds": odd } });
            assert!(wait(&limits).is_none_or(|wait| wait <= 24 * 3600), "{limits}");
        }
        assert_eq!(
            wait(&json!({ "primary": { "usedPercent": 100, "resetsInSeconds": 1e7 } })),
            Some(24 * 3600)
        );
        assert_eq!(wait(&json!([1, 2])), None);
    }
}
