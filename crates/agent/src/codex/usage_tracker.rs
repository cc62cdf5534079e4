//! What a session has used, and what its provider says about limits.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::text;
use crate::event::Tokens;
use crate::token_usage;

/// Where totals of a thread are, in servers of different ages.
const TOTALS: [&str; 4] = [
    "/tokenUsage/total",
    "/token_usage/total",
    "/msg/payload/info/total_token_usage",
    "/msg/info/total_token_usage",
];

/// Where the last request of a thread is, beside them.
const LAST: [&str; 4] = [
    "/tokenUsage/last",
    "/token_usage/last",
    "/msg/payload/info/last_token_usage",
    "/msg/info/last_token_usage",
];

/// How deep limits may be hidden.
const MAX_DEPTH: usize = 8;

/// What a session has used, and what its provider says about limits.
#[derive(Debug, Default)]
pub(super) struct UsageTracker {
    /// By thread: an agent may have agents of its own.
    threads: HashMap<String, Spent>,
    limits: Option<Value>,
    /// The turn that began last.
    turn: Option<String>,
}

/// What one thread has used.
#[derive(Debug, Default)]
struct Spent {
    /// What it had used before this session; nothing if that is not known yet.
    before: Option<Tokens>,
    total: Tokens,
}

impl UsageTracker {
    /// Says that a thread is taken up again, which has used something before.
    pub(super) fn take_up(&mut self, thread: &str) {
        self.threads.entry(thread.to_owned()).or_default();
    }

    /// Says that a turn begins.
    pub(super) fn begin_turn(&mut self, turn: &str) {
        self.turn = Some(turn.to_owned());
    }

    /// Reads what was used; returns what the whole session has used if that has grown.
    pub(super) fn tokens(&mut self, method: &str, params: &Value) -> Option<Tokens> {
        let at = |paths: &[&str]| {
            paths.iter().find_map(|path| token_usage::tokens(params.pointer(path)?))
        };
        let total = at(&TOTALS).or_else(|| of_turn(method, params))?;
        let thread = text(params, "/threadId").unwrap_or_default().to_owned();
        let before = self.sum();
        let is_new = !self.threads.contains_key(&thread);
        let spent = self.threads.entry(thread).or_default();
        if is_new {
            spent.before = Some(Tokens::default());
        }
        // A thread that is taken up again tells first what its earlier turns have used.
        let is_earlier = self.turn.is_none() || text(params, "/turnId") != self.turn.as_deref();
        let last = at(&LAST).filter(|_| !is_earlier).unwrap_or_default();
        spent.before.get_or_insert_with(|| total.minus(last));
        spent.total = spent.total.at_least(total);
        let sum = self.sum();
        (sum != before).then_some(sum)
    }

    fn sum(&self) -> Tokens {
        let own = |spent: &Spent| spent.total.minus(spent.before.unwrap_or(spent.total));
        self.threads.values().map(own).fold(Tokens::default(), Tokens::plus)
    }

    /// Reads what is said about limits; returns it if it is new.
    pub(super) fn limits(&mut self, params: &Value) -> Option<Value> {
        let found = find_limits(params, MAX_DEPTH)?;
        if self.limits.as_ref() == Some(found) {
            return None;
        }
        self.limits = Some(found.clone());
        self.limits.clone()
    }

    /// Returns how long it takes until a limit that was reached is lifted, if that is known.
    pub(super) fn until_reset(&self) -> Option<Duration> {
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

/// Reads what a turn is said to have used, by servers that tell no totals.
fn of_turn(method: &str, params: &Value) -> Option<Tokens> {
    let usage = || params.get("usage").or_else(|| params.pointer("/turn/usage"));
    token_usage::tokens((method == "turn/completed").then(usage)??)
}

fn number(value: &Value, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| value.get(name)?.as_f64())
}

/// Finds an object that is about limits.
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

    fn total(spending: &mut UsageTracker, params: &Value) -> Option<u64> {
        spending.tokens(METHOD, params).map(|tokens| tokens.total)
    }

    #[test]
    fn item_068_repeated_totals_count_once() {
        let mut spending = UsageTracker::default();
        spending.begin_turn("now");
        let told = [10, 10, 25, 20, 25].map(|all| total(&mut spending, &used("a", all, 5)));
        assert_eq!(told, [Some(10), None, Some(25), None, None]);
        // Another thread, of an agent of the agent's, is counted beside it.
        assert_eq!(total(&mut spending, &used("b", 3, 3)), Some(28));
    }

    #[test]
    fn what_a_thread_had_used_before_is_not_counted_again() {
        let earlier = |all, last| {
            let mut params = used("a", all, last);
            params["turnId"] = "earlier".into();
            params
        };
        // It may be told before the first turn, while that begins, or not at all.
        for (told_before, told_after) in [(true, false), (false, true), (false, false)] {
            let mut spending = UsageTracker::default();
            spending.take_up("a");
            if told_before {
                assert_eq!(total(&mut spending, &earlier(100, 10)), None);
            }
            spending.begin_turn("now");
            if told_after {
                assert_eq!(total(&mut spending, &earlier(100, 10)), None);
            }
            assert_eq!(total(&mut spending, &used("a", 107, 7)), Some(7));
            assert_eq!(total(&mut spending, &used("a", 110, 3)), Some(10));
        }
    }

    #[test]
    fn item_069_usage_is_read_where_the_protocol_puts_it() {
        let tokens = json!({"input_tokens": 2, "output_tokens": 1, "total_tokens": 3});
        for (method, params) in [
            ("codex/event/token_count", json!({"msg": {"info": {"total_token_usage": tokens}}})),
            (
                "codex/event/token_count",
                json!({"msg": {"payload": {"info": {"total_token_usage": tokens}}}}),
            ),
            ("turn/completed", json!({"usage": tokens})),
        ] {
            let mut spending = UsageTracker::default();
            spending.begin_turn("now");
            let used = spending.tokens(method, &params).map(|tokens| tokens.total);
            assert_eq!(used, Some(3), "{params}");
        }
        let mut spending = UsageTracker::default();
        spending.begin_turn("now");
        for (method, params) in
            [("turn/started", json!({"usage": tokens})), ("x", json!({"last_token_usage": tokens}))]
        {
            assert_eq!(spending.tokens(method, &params), None);
        }
    }

    #[test]
    fn item_068_rate_limits_are_found_in_both_spellings_and_reported_when_they_change() {
        let mut spending = UsageTracker::default();
        let camel = json!({"limitId": "codex", "primary": {"usedPercent": 5}});
        let snake = json!({"limit_name": "x", "credits": null});
        assert_eq!(spending.limits(&json!({"rateLimits": camel})), Some(camel.clone()));
        assert_eq!(spending.limits(&json!({"rateLimits": camel})), None);
        assert_eq!(spending.limits(&json!({"msg": [{"rate_limits": snake}]})), Some(snake));
        assert_eq!(spending.limits(&json!({"limitId": "codex"})), None);
    }

    #[test]
    fn the_wait_is_until_the_last_limit_that_was_reached_is_lifted() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut spending = UsageTracker::default();
        spending.limits(&json!({
            "limitId": "codex",
            "primary": {"usedPercent": 100, "resetsAt": now + 60},
            "secondary": {"usedPercent": 40, "resetsAt": now + 6000},
        }));
        let wait = spending.until_reset().unwrap().as_secs();
        assert!((55..=60).contains(&wait), "{wait}");
        assert_eq!(UsageTracker::default().until_reset(), None);
    }
}
