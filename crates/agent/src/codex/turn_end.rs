//! How a turn ended.

use serde_json::Value;

use super::text;
use super::usage_tracker::UsageTracker;
use crate::failure::{AgentFailure, FailureKind};

/// Notices of servers that ask for input without a request.
const WANTS_INPUT: [&str; 7] = [
    "turn/input_required",
    "turn/needs_input",
    "turn/need_input",
    "turn/request_input",
    "turn/request_response",
    "turn/provide_input",
    "turn/approval_required",
];

/// The errors that pass when fewer requests are made.
const LIMITS: [&str; 4] =
    ["usageLimitExceeded", "rateLimitExceeded", "serverOverloaded", "usage_limit_exceeded"];

/// Tells how the turn ended that a notice is about; nothing if it goes on.
pub(super) fn of(
    method: &str,
    params: &Value,
    spending: &UsageTracker,
) -> Option<Result<(), AgentFailure>> {
    match method {
        "turn/completed" => Some(completed(params, spending)),
        "turn/failed" => Some(Err(failed(params, spending))),
        "turn/cancelled" => {
            Some(Err(AgentFailure::new(FailureKind::TurnCancelled, "the turn was cancelled")))
        }
        _ if WANTS_INPUT.contains(&method)
            || (method.starts_with("turn/") && wants_input(params)) =>
        {
            let question = ["/message", "/question", "/prompt"]
                .into_iter()
                .find_map(|path| text(params, path));
            let question = question.unwrap_or("the agent asks for input");
            Some(Err(AgentFailure::new(FailureKind::InputRequired, question)))
        }
        _ => None,
    }
}

/// Returns what the end of a turn is called in events.
pub(super) fn name(ended: &Result<(), AgentFailure>) -> &'static str {
    match ended {
        Ok(()) => "turn_completed",
        Err(failure) => failure.kind.name(),
    }
}

/// The server says that a turn is completed whenever it is over.
fn completed(params: &Value, spending: &UsageTracker) -> Result<(), AgentFailure> {
    match text(params, "/turn/status") {
        Some("failed") => Err(failed(params, spending)),
        Some("interrupted" | "cancelled") => {
            Err(AgentFailure::new(FailureKind::TurnCancelled, "the turn was interrupted"))
        }
        // Servers before there was a status said so in a notice of its own.
        Some(_) | None => Ok(()),
    }
}

fn failed(params: &Value, spending: &UsageTracker) -> AgentFailure {
    let error = ["/turn/error", "/error"].into_iter().find_map(|path| params.pointer(path));
    let error = error.unwrap_or(params);
    let message = text(error, "/message").unwrap_or("the agent does not say why");
    let details = text(error, "/additionalDetails").filter(|details| !details.is_empty());
    let message = match details {
        Some(details) => format!("the turn failed: {message} ({details})"),
        None => format!("the turn failed: {message}"),
    };
    let kind = match error.get("codexErrorInfo") {
        Some(info) if is_limit(info) => {
            FailureKind::RateLimited { retry_after: spending.until_reset() }
        }
        _ => FailureKind::TurnFailed,
    };
    AgentFailure::new(kind, message)
}

/// Tells whether an error is about a limit: by its name, or by the status of the provider's answer.
fn is_limit(info: &Value) -> bool {
    let too_many = |detail: &Value| detail.get("httpStatusCode") == Some(&429.into());
    match info {
        Value::String(name) => LIMITS.contains(&name.as_str()),
        Value::Object(named) => {
            named.iter().any(|(name, detail)| LIMITS.contains(&name.as_str()) || too_many(detail))
        }
        _ => false,
    }
}

fn wants_input(params: &Value) -> bool {
    let says = |name: &str| params.get(name) == Some(&Value::Bool(true));
    let kind = text(params, "/type");
    ["requiresInput", "needsInput", "input_required", "inputRequired"].into_iter().any(says)
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
    fn a_turn_that_is_over_is_a_success_only_if_it_says_so() {
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
            (json!({}), Some(Ok(()))),
        ] {
            assert_eq!(kind("turn/completed", &params), expected, "{params}");
        }
    }

    #[test]
    fn older_notices_end_a_turn_as_well() {
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
