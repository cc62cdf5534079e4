//! When a tracker that has had too many requests may be asked again.

use std::time::Duration;

use carrel_domain::Timestamp;
use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;

/// When to ask again, if the tracker does not say.
const USUAL: Duration = Duration::from_mins(1);

/// What a tracker says is held between these: never a busy loop, never a day.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(1);

/// Headers that say what is left, and those that say when it is all there again.
const BUDGETS: &[(&str, &str)] = &[
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("x-ratelimit-requests-remaining", "x-ratelimit-requests-reset"),
    ("x-ratelimit-complexity-remaining", "x-ratelimit-complexity-reset"),
    ("x-ratelimit-endpoint-requests-remaining", "x-ratelimit-endpoint-requests-reset"),
];

/// Numbers from here on are a point in time in milliseconds, and from there on one in seconds. Smaller
/// ones are a number of seconds.
const EPOCH_MILLIS: i64 = 100_000_000_000;
const EPOCH_SECONDS: i64 = 1_000_000_000;

/// Tells whether a status says that there were too many requests.
pub(crate) fn is_limit(status: u16, headers: &HeaderMap, message: &str) -> bool {
    match status {
        429 => true,
        403 => {
            headers.contains_key(RETRY_AFTER)
                || spent(headers).next().is_some()
                || message.to_lowercase().contains("rate limit")
        }
        503 => headers.contains_key(RETRY_AFTER),
        _ => false,
    }
}

/// Returns how long a tracker wants to be left alone.
pub(crate) fn wait(headers: &HeaderMap, now: Timestamp) -> Duration {
    let asked = headers.get(RETRY_AFTER).and_then(|value| point(value.to_str().ok()?, now));
    let used_up =
        || spent(headers).filter_map(|reset| point(headers.get(reset)?.to_str().ok()?, now)).max();
    let any =
        || BUDGETS.iter().find_map(|(_, reset)| point(headers.get(*reset)?.to_str().ok()?, now));
    asked.or_else(used_up).or_else(any).unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
}

/// Returns the headers that say when the budgets are full again of which nothing is left.
fn spent(headers: &HeaderMap) -> impl Iterator<Item = &'static str> {
    let empty = |name: &str| headers.get(name).is_some_and(|left| left.as_bytes() == b"0");
    BUDGETS.iter().filter(move |(left, _)| empty(left)).map(|(_, reset)| *reset)
}

/// Reads a time to wait, or a point in time in one of the ways that trackers write them.
fn point(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let until = |millis: i64| {
        Duration::from_millis(u64::try_from(millis.saturating_sub(now.as_millis())).unwrap_or(0))
    };
    if let Ok(number) = text.parse::<i64>() {
        return match number {
            EPOCH_MILLIS.. => Some(until(number)),
            EPOCH_SECONDS.. => Some(until(number.saturating_mul(1000))),
            0.. => Some(Duration::from_secs(number.unsigned_abs())),
            _ => None,
        };
    }
    let written = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    let written = written.or_else(|_| text.parse::<jiff::Timestamp>()).ok()?;
    Some(until(written.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};
    use pretty_assertions::assert_eq;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        pairs.iter().copied().map(pair).collect()
    }

    #[test]
    fn a_wait_is_read_by_the_table() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        for (told, seconds) in [
            (&[("retry-after", "7")][..], 7),
            (&[("retry-after", "0")], 1),
            (&[("retry-after", "999999")], 3600),
            (&[("retry-after", "Tue, 14 Nov 2023 22:13:50 GMT")], 30),
            (&[("retry-after", "soon")], 60),
            (&[], 60),
            (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000042")], 42),
            (&[("x-ratelimit-reset", "1600000000")], 1),
            (&[("ratelimit-reset", "1700000005")], 5),
            (&[("x-ratelimit-reset", "2023-11-14T22:13:29Z")], 9),
            (
                &[
                    ("x-ratelimit-requests-remaining", "12"),
                    ("x-ratelimit-requests-reset", "1700000900000"),
                    ("x-ratelimit-complexity-remaining", "0"),
                    ("x-ratelimit-complexity-reset", "1700000011000"),
                ],
                11,
            ),
        ] {
            assert_eq!(wait(&headers(told), now).as_secs(), seconds, "{told:?}");
        }
    }

    #[test]
    fn limits_are_told_from_refusals() {
        let used = headers(&[("x-ratelimit-remaining", "0")]);
        let later = headers(&[("retry-after", "3")]);
        let none = HeaderMap::new();
        assert!(is_limit(429, &none, ""));
        assert!(is_limit(403, &used, "") && is_limit(403, &later, ""));
        assert!(is_limit(403, &none, "You have exceeded a secondary rate limit."));
        assert!(!is_limit(403, &none, "Resource not accessible by personal access token"));
        assert!(is_limit(503, &later, "") && !is_limit(503, &none, ""));
        assert!(!is_limit(401, &later, "") && !is_limit(200, &used, ""));
    }
}
