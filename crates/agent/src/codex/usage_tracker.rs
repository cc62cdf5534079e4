//! Counts the tokens of a session, and keeps the provider's rate limits.
//!
//! The server reports the *total* of a thread again and again, sometimes out of order, and for a resumed
//! thread the total includes turns of earlier sessions, which were counted then. So for each thread the
//! tracker keeps the greatest total and a baseline to subtract:
//!
//! - a thread that was not resumed has the baseline 0;
//! - a resumed thread gets its baseline from its first report: the whole total if that report is of an
//!   earlier turn (servers repeat it on resume), and else the total minus the `last` request.
//!
//! A report without a thread id, as older servers send them, is of the session's thread; one without a
//! turn id is of the current turn, if there is one.
//!
//! Agents that the agent starts have threads of their own, whose tokens count as well; the session's usage
//! is the sum over all threads and never falls.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::text;
use crate::event::Tokens;
use crate::token_usage;

/// The locations of a thread's tokens in servers of different ages: for `total`, and for the `last` request.
fn locations(tokens: &str) -> [String; 4] {
    [
        format!("/tokenUsage/{tokens}"),
        format!("/token_usage/{tokens}"),
        format!("/msg/payload/info/{tokens}_token_usage"),
        format!("/msg/info/{tokens}_token_usage"),
    ]
}

/// The depth to which a notification is searched for rate limits.
const MAX_DEPTH: usize = 8;

/// Token counts by thread, and the latest rate limits.
#[derive(Debug, Default)]
pub(super) struct UsageTracker {
    /// The session's thread.
    pub(super) thread: String,
    threads: HashMap<String, ThreadUsage>,
    limits: Option<Value>,
    turn: Option<String>,
}

#[derive(Debug, Default)]
struct ThreadUsage {
    /// The total before this session; `None` until a resumed thread has reported.
    baseline: Option<Tokens>,
    total: Tokens,
}

impl UsageTracker {
    /// Sets a resumed thread, whose baseline is not known yet.
    pub(super) fn resume_thread(&mut self, thread: &str) {
        thread.clone_into(&mut self.thread);
        self.threads.entry(thread.to_owned()).or_default();
    }

    pub(super) fn start_turn(&mut self, turn: &str) {
        self.turn = Some(turn.to_owned());
    }

    /// Reads token counts from a notification. Returns the session's usage if it has grown.
    pub(super) fn update(&mut self, method: &str, params: &Value) -> Option<Tokens> {
        let at = |tokens: &str| {
            let paths = locations(tokens);
            paths.iter().find_map(|path| token_usage::tokens(params.pointer(path)?))
        };
        let total = at("total").or_else(|| turn_usage(method, params))?;
        let thread = text(params, "/threadId").unwrap_or(&self.thread).to_owned();
        let sum_before = self.sum();
        let is_new = !self.threads.contains_key(&thread);
        let usage = self.threads.entry(thread).or_default();
        if is_new {
            usage.baseline = Some(Tokens::default());
        }
        let current = self.turn.as_deref();
        let is_earlier =
            current.is_none() || text(params, "/turnId").is_some_and(|turn| Some(turn) != current);
        let last = at("last").filter(|_| !is_earlier).unwrap_or_default();
        usage.baseline.get_or_insert_with(|| total.minus(last));
        usage.total = usage.total.at_least(total);
        let sum = self.sum();
        (sum != sum_before).then_some(sum)
    }

    fn sum(&self) -> Tokens {
        let own = |usage: &ThreadUsage| usage.total.minus(usage.baseline.unwrap_or(usage.total));
        self.threads.values().map(own).fold(Tokens::default(), Tokens::plus)
    }

    /// Reads rate limits from a notification. Returns them if they have changed.
    pub(super) fn update_rate_limits(&mut self, params: &Value) -> Option<Value> {
        let found = find_limits(params, MAX_DEPTH)?;
        if self.limits.as_ref() == Some(found) {
            return None;
        }
        self.limits = Some(found.clone());
        self.limits.clone()
    }

    /// Returns the time until the last exhausted window resets, if the provider named it.
    pub(super) fn time_until_reset(&self) -> Option<Duration> {
        let limits = self.limits.as_ref()?;
        let windows = ["primary", "secondary"].into_iter().filter_map(|name| limits.get(name));
        let reached = windows.filter(|window| {
            let used = number(window, &["usedPercent", "used_percent"]);
            used.is_some_and(|used| used >= 100.0)
        });
        let waits = reached.filter_map(|window| {
            let seconds = number(window, &["resetsInSeconds", "resets_in_seconds"]);
            let at = || {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
                Some(number(window, &["resetsAt", "resets_at"])? - now)
            };
            Duration::try_from_secs_f64(seconds.or_else(at)?.max(0.0)).ok()
        });
        waits.max()
    }
}

/// Reads the usage in `turn/completed`, for servers that report no totals on the way. It is taken for the
/// total of the thread, not for the tokens of the turn alone.
fn turn_usage(method: &str, params: &Value) -> Option<Tokens> {
    let usage = || params.get("usage").or_else(|| params.pointer("/turn/usage"));
    token_usage::tokens((method == "turn/completed").then(usage)??)
}

fn number(value: &Value, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| value.get(name)?.as_f64())
}

/// Finds the first object with the members of rate limits.
fn find_limits(value: &Value, depth: usize) -> Option<&Value> {
    if depth == 0 {
        return None;
    }
    match value {
        Value::Object(object) if is_limits(object) => Some(value),
        Value::Object(object) => object.values().find_map(|inner| find_limits(inner, depth - 1)),
        Value::Array(items) => items.iter().find_map(|inner| find_limits(inner, depth - 1)),
        _ => None,
    }
}

fn is_limits(object: &Map<String, Value>) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| object.contains_key(*name));
    has(&["limit_id", "limit_name", "limitId", "limitName"])
        && has(&["primary", "secondary", "credits"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    const METHOD: &str = "thread/tokenUsage/updated";

    fn used(thread: &str, total: u64, last: u64) -> Value {
        let tokens = |all| json!({"inputTokens": all, "outputTokens": 0, "totalTokens": all});
        let usage = json!({"total": tokens(total), "last": tokens(last)});
        json!({"threadId": thread, "turnId": "now", "tokenUsage": usage})
    }

    fn total(tracker: &mut UsageTracker, params: &Value) -> Option<u64> {
        tracker.update(METHOD, params).map(|tokens| tokens.total)
    }

    #[test]
    fn item_068_repeated_totals_count_once() {
        let mut tracker = UsageTracker::default();
        tracker.start_turn("now");
        let told = [10, 10, 25, 20, 25].map(|all| total(&mut tracker, &used("a", all, 5)));
        assert_eq!(told, [Some(10), None, Some(25), None, None]);
        // The thread of a sub-agent is added.
        assert_eq!(total(&mut tracker, &used("b", 3, 3)), Some(28));
    }

    #[test]
    fn tokens_of_earlier_sessions_are_not_counted_again() {
        let earlier = |all, last| {
            let mut params = used("a", all, last);
            params["turnId"] = "earlier".into();
            params
        };
        // The earlier total may be reported before the first turn, while it starts, or not at all.
        for (told_before, told_after) in [(true, false), (false, true), (false, false)] {
            let mut tracker = UsageTracker::default();
            tracker.resume_thread("a");
            if told_before {
                assert_eq!(total(&mut tracker, &earlier(100, 10)), None);
            }
            tracker.start_turn("now");
            if told_after {
                assert_eq!(total(&mut tracker, &earlier(100, 10)), None);
            }
            assert_eq!(total(&mut tracker, &used("a", 107, 7)), Some(7));
            assert_eq!(total(&mut tracker, &used("a", 110, 3)), Some(10));
        }
    }

    #[test]
    fn a_report_without_ids_is_of_the_sessions_thread() {
        let report = |all, last| {
            let info = json!({
                "total_token_usage": {"total_tokens": all},
                "last_token_usage": {"total_tokens": last},
            });
            json!({"msg": {"info": info}})
        };
        let mut tracker = UsageTracker::default();
        tracker.resume_thread("a");
        assert_eq!(total(&mut tracker, &report(100, 10)), None);
        tracker.start_turn("now");
        assert_eq!(total(&mut tracker, &report(107, 7)), Some(7));
        assert_eq!(total(&mut tracker, &used("a", 110, 3)), Some(10));
        let mut tracker = UsageTracker::default();
        tracker.resume_thread("a");
        tracker.start_turn("now");
        assert_eq!(total(&mut tracker, &report(107, 7)), Some(7));
        let mut tracker = UsageTracker { thread: "a".to_owned(), ..UsageTracker::default() };
        tracker.start_turn("now");
        assert_eq!(total(&mut tracker, &report(10, 7)), Some(10));
        assert_eq!(total(&mut tracker, &used("a", 12, 2)), Some(12));
    }

    #[test]
    fn item_069_usage_is_read_from_every_known_location() {
        let tokens = json!({"input_tokens": 2, "output_tokens": 1, "total_tokens": 3});
        for (method, params) in [
            ("codex/event/token_count", json!({"msg": {"info": {"total_token_usage": tokens}}})),
            (
                "codex/event/token_count",
                json!({"msg": {"payload": {"info": {"total_token_usage": tokens}}}}),
            ),
            ("turn/completed", json!({"usage": tokens})),
        ] {
            let mut tracker = UsageTracker::default();
            tracker.start_turn("now");
            let used = tracker.update(method, &params).map(|tokens| tokens.total);
            assert_eq!(used, Some(3), "{params}");
        }
        let mut tracker = UsageTracker::default();
        tracker.start_turn("now");
        for (method, params) in
            [("turn/started", json!({"usage": tokens})), ("x", json!({"last_token_usage": tokens}))]
        {
            assert_eq!(tracker.update(method, &params), None);
        }
    }

    #[test]
    fn item_068_rate_limits_are_found_in_both_spellings_and_reported_when_they_change() {
        let mut tracker = UsageTracker::default();
        let camel = json!({"limitId": "codex", "primary": {"usedPercent": 5}});
        let snake = json!({"limit_name": "x", "credits": null});
        assert_eq!(tracker.update_rate_limits(&json!({"rateLimits": camel})), Some(camel.clone()));
        assert_eq!(tracker.update_rate_limits(&json!({"rateLimits": camel})), None);
        assert_eq!(
            tracker.update_rate_limits(&json!({"msg": [{"rate_limits": snake}]})),
            Some(snake)
        );
        assert_eq!(tracker.update_rate_limits(&json!({"limitId": "codex"})), None);
    }

    #[test]
    fn the_wait_lasts_until_the_last_exhausted_window_resets() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut tracker = UsageTracker::default();
        tracker.update_rate_limits(&json!({
            "limitId": "codex",
            "primary": {"usedPercent": 100, "resetsAt": now + 60},
            "secondary": {"usedPercent": 40, "resetsAt": now + 6000},
        }));
        let wait = tracker.time_until_reset().unwrap().as_secs();
        assert!((55..=60).contains(&wait), "{wait}");
        assert_eq!(UsageTracker::default().time_until_reset(), None);
    }
}
