//! The end of a turn, as a notification reports it.
//!
//! Current servers send `turn/completed` for every end and put the result into `turn.status`. Older ones
//! send `turn/failed` and `turn/cancelled`, and some ask for input with a notification of its own instead of
//! a request. A failure whose error names a limit of the provider becomes a rate limit with the
//! time until its reset, so that the conductor waits instead of counting a failure.

use serde_json::Value;

use super::text;
use super::usage_tracker::UsageTracker;
use crate::failure::{AgentFailure, FailureKind, Result};

/// Notifications that end a turn because the agent needs input.
const INPUT_REQUIRED: &str = "turn/input_required, turn/needs_input, turn/need_input, \
    turn/request_input, turn/request_response, turn/provide_input, turn/approval_required";

/// Names of errors that are limits of the provider.
const RATE_LIMIT_ERRORS: [&str; 4] =
    ["usageLimitExceeded", "rateLimitExceeded", "serverOverloaded", "usage_limit_exceeded"];

/// Returns the result of the turn that a notification ends; `None` if the turn continues.
pub(super) fn of(method: &str, params: &Value, usage: &UsageTracker) -> Option<Result<()>> {
    match method {
        "turn/completed" => Some(completed(params, usage)),
        "turn/failed" => Some(Err(failed(params, usage))),
        "turn/cancelled" => Some(FailureKind::TurnCancelled.err("the turn was cancelled")),
        _ if INPUT_REQUIRED.split(", ").any(|name| name == method)
            || (method.starts_with("turn/") && requires_input(params)) =>
        {
            let question = ["/message", "/question", "/prompt"]
                .into_iter()
                .find_map(|path| text(params, path));
            let question = question.unwrap_or("the agent asks for input");
            Some(FailureKind::InputRequired.err(question))
        }
        _ => None,
    }
}

/// Reads `turn.status` of `turn/completed`. Servers without a status send it for success only, and an
/// unknown status is taken for success as well.
fn completed(params: &Value, usage: &UsageTracker) -> Result<()> {
    match text(params, "/turn/status") {
        Some("failed") => Err(failed(params, usage)),
        Some("interrupted" | "cancelled") => {
            FailureKind::TurnCancelled.err("the turn was interrupted")
        }
        Some(_) | None => Ok(()),
    }
}

fn failed(params: &Value, usage: &UsageTracker) -> AgentFailure {
    let error = ["/turn/error", "/error"].into_iter().find_map(|path| params.pointer(path));
    let error = error.unwrap_or(params);
    let message = text(error, "/message").unwrap_or("no reason given");
    let details = text(error, "/additionalDetails").filter(|details| !details.is_empty());
    let message = match details {
        Some(details) => format!("the turn failed: {message} ({details})"),
        None => format!("the turn failed: {message}"),
    };
    let kind = match error.get("codexErrorInfo") {
        Some(info) if is_rate_limit(info) => {
            FailureKind::RateLimited { retry_after: usage.time_until_reset() }
        }
        _ => FailureKind::TurnFailed,
    };
    AgentFailure::new(kind, message)
}

/// Returns true if an error is a rate limit: by its name, or by the provider's HTTP status 429.
fn is_rate_limit(info: &Value) -> bool {
    let too_many = |detail: &Value| detail.get("httpStatusCode") == Some(&429.into());
    match info {
        Value::String(name) => RATE_LIMIT_ERRORS.contains(&name.as_str()),
        Value::Object(named) => named
            .iter()
            .any(|(name, detail)| RATE_LIMIT_ERRORS.contains(&name.as_str()) || too_many(detail)),
        _ => false,
    }
}

fn requires_input(params: &Value) -> bool {
    let is_set = |name: &str| params.get(name) == Some(&Value::Bool(true));
    let kind = text(params, "/type");
    ["requiresInput", "needsInput", "input_required", "inputRequired"].into_iter().any(is_set)
        || matches!(kind, Some("input_required" | "needs_input"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn kind(method: &str, params: &Value) -> Option<Result<(), FailureKind>> {
        let ended = of(method, params, &UsageTracker::default());
        ended.map(|ended| ended.map_err(|failure| failure.kind))
    }

    #[test]
    fn a_completed_turn_is_a_failure_only_if_its_status_says_so() {
        let turn = |status: &str, info: Value| json!({"turn": {"status": status, "error": {"message": "m", "codexErrorInfo": info}}});
        let limited = Some(Err(FailureKind::RateLimited { retry_after: None }));
        for (params, expected) in [
            (turn("completed", json!(null)), Some(Ok(()))),
            (turn("failed", json!("unauthorized")), Some(Err(FailureKind::TurnFailed))),
            (turn("failed", json!("usageLimitExceeded")), limited),
            (
                turn("failed", json!({"responseTooManyFailedAttempts": {"httpStatusCode": 429}})),
                limited,
            ),
            (
                turn("failed", json!({"httpConnectionFailed": {"httpStatusCode": 500}})),
                Some(Err(FailureKind::TurnFailed)),
            ),
            (turn("interrupted", json!(null)), Some(Err(FailureKind::TurnCancelled))),
            (turn("unknown", json!("unauthorized")), Some(Ok(()))),
            (json!({}), Some(Ok(()))),
        ] {
            assert_eq!(kind("turn/completed", &params), expected, "{params}");
        }
    }

    #[test]
    fn older_notifications_end_a_turn_as_well() {
        let failed = Some(Err(FailureKind::TurnFailed));
        assert_eq!(kind("turn/failed", &json!({"error": {"message": "m"}})), failed);
        assert_eq!(kind("turn/cancelled", &json!({})), Some(Err(FailureKind::TurnCancelled)));
        let input = Some(Err(FailureKind::InputRequired));
        assert_eq!(kind("turn/needs_input", &json!({})), input);
        assert_eq!(kind("turn/x", &json!({"inputRequired": true})), input);
        assert_eq!(kind("turn/x", &json!({"type": "needs_input"})), input);
        assert_eq!(kind("item/x", &json!({"inputRequired": true})), None);
        assert_eq!(kind("turn/started", &json!({})), None);
    }
}
