//! Rate limits of trackers: detection, the wait that a tracker asks for, and its enforcement.
//!
//! Each [`crate::api::Api`] of a tracker shares one [`RateLimit`]. A response that reports a limit sets it,
//! and until it expires every further request fails locally with `tracker_rate_limited`, without a
//! connection: polls of the conductor and tool calls of agents use the same credentials and therefore the
//! same allowance. The conductor receives the wait in [`crate::TrackerError::retry_after`] and postpones
//! its next poll accordingly.
//!
//! Trackers announce limits differently, and all of these are understood:
//!
//! | tracker | response | wait |
//! |---|---|---|
//! | all | 429, or 503 with `Retry-After` | `Retry-After` in seconds or as a date |
//! | GitHub | 403 with `x-ratelimit-remaining: 0`, `Retry-After` or a "rate limit" message | `x-ratelimit-reset` in epoch seconds |
//! | GitLab | 429 | `ratelimit-reset` in epoch seconds |
//! | Linear | 429, or 400 with the GraphQL code `RATELIMITED` | `x-ratelimit-{requests,complexity,endpoint-requests}-reset` in epoch milliseconds |
//! | Jira | 429 | `Retry-After`, `x-ratelimit-reset` as an RFC 3339 time |
//! | Asana | 429, also for single actions of a batch | `Retry-After` |
//!
//! GraphQL error codes are recognised in [`crate::graphql`]; everything else is here.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrel_domain::{Timestamp, sync};
use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;

/// The wait after a limit that names none, long enough for a window of one minute to pass.
const DEFAULT_WAIT: Duration = Duration::from_mins(1);

/// Bounds of every wait: a tracker can cause neither a busy loop nor a day of silence.
const MIN_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_hours(1);

/// Pairs of headers: the remaining allowance, and the time at which it is restored.
const ALLOWANCES: &[(&str, &str)] = &[
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("x-ratelimit-requests-remaining", "x-ratelimit-requests-reset"),
    ("x-ratelimit-complexity-remaining", "x-ratelimit-complexity-reset"),
    ("x-ratelimit-endpoint-requests-remaining", "x-ratelimit-endpoint-requests-reset"),
];

/// Numbers from `EPOCH_MILLIS` are epoch milliseconds (from 1973 on), from `EPOCH_SECONDS` epoch seconds
/// (from 2001 on), and smaller ones a number of seconds from now.
const EPOCH_MILLIS: i64 = 100_000_000_000;
const EPOCH_SECONDS: i64 = 1_000_000_000;

/// The rate limit in force for one tracker's credentials, shared by all requests with them.
#[derive(Debug, Default)]
pub(crate) struct RateLimit(Mutex<Option<Instant>>);

impl RateLimit {
    /// Refuses requests for `wait` from `now` on. A limit in force is extended, never shortened.
    pub(crate) fn extend(&self, now: Instant, wait: Duration) {
        let mut until = sync::lock(&self.0);
        *until = (*until).max(now.checked_add(wait));
    }

    /// Returns the time until the limit in force expires; `None` if requests may be sent.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        let left = sync::lock(&self.0).map(|until| until.saturating_duration_since(now));
        left.filter(|left| !left.is_zero())
    }
}

/// Returns true if a response reports a rate limit. A 403 is one only with evidence, since trackers use
/// it for missing permissions too.
pub(crate) fn is_limit(status: u16, headers: &HeaderMap, message: &str) -> bool {
    match status {
        429 => true,
        403 => {
            headers.contains_key(RETRY_AFTER)
                || exhausted(headers).next().is_some()
                || message.to_lowercase().contains("rate limit")
        }
        503 => headers.contains_key(RETRY_AFTER),
        _ => false,
    }
}

/// Returns the wait that a response asks for, between one second and one hour: `Retry-After`, or the
/// latest reset of an exhausted allowance, or the first reset header, or one minute.
pub(crate) fn wait(headers: &HeaderMap, now: Timestamp) -> Duration {
    let header = |name: &str| parse_wait(headers.get(name)?.to_str().ok()?, now);
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    retry_after
        .and_then(|value| parse_wait(value, now))
        .or_else(|| exhausted(headers).filter_map(header).max())
        .or_else(|| ALLOWANCES.iter().find_map(|(_, reset)| header(reset)))
        .unwrap_or(DEFAULT_WAIT)
        .clamp(MIN_WAIT, MAX_WAIT)
}

/// Returns the names of the reset headers whose allowance is exhausted.
fn exhausted(headers: &HeaderMap) -> impl Iterator<Item = &'static str> {
    let empty = |name: &str| headers.get(name).is_some_and(|left| left.as_bytes() == b"0");
    ALLOWANCES.iter().filter(move |(left, _)| empty(left)).map(|(_, reset)| *reset)
}

/// Parses a number of seconds, an epoch time, an HTTP date or an RFC 3339 time.
fn parse_wait(text: &str, now: Timestamp) -> Option<Duration> {
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
    let time = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    let time = time.or_else(|_| text.parse::<jiff::Timestamp>()).ok()?;
    Some(until(time.as_millisecond()))
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
    fn a_rate_limit_expires_and_is_never_shortened() {
        let (limit, start) = (RateLimit::default(), Instant::now());
        let seconds = Duration::from_secs;
        assert_eq!(limit.remaining(start), None);
        limit.extend(start, seconds(10));
        limit.extend(start, seconds(3));
        assert_eq!(limit.remaining(start), Some(seconds(10)));
        assert_eq!(limit.remaining(start + seconds(9)), Some(seconds(1)));
        assert_eq!(limit.remaining(start + seconds(10)), None);
        assert_eq!(limit.remaining(start + seconds(11)), None);
    }

    #[test]
    fn a_wait_is_read_from_the_headers_of_every_tracker() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        for (pairs, seconds) in [
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
            assert_eq!(wait(&headers(pairs), now).as_secs(), seconds, "{pairs:?}");
        }
    }

    #[test]
    fn limits_are_distinguished_from_refusals() {
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
