//! Decisions about the agent's requests: permissions and questions.

use carrel_config::Approvals;
use serde_json::{Value, json};

use crate::failure::FailureKind;
use crate::request_decision::RequestDecision;

/// Decides about a request by the workflow file's `agent.approvals`.
pub(super) fn decide(method: &str, params: &Value, approvals: Approvals) -> RequestDecision {
    match method {
        "session/request_permission" => permission(params, approvals),
        "elicitation/create" => {
            let question = params["message"].as_str().unwrap_or("the agent asks for input");
            let reply = json!({ "action": "cancel" });
            RequestDecision::stop(reply, FailureKind::InputRequired, question)
        }
        _ => RequestDecision::Unsupported,
    }
}

/// Allows a request with the broadest option that the agent offers, or leaves it to an operator.
fn permission(params: &Value, approvals: Approvals) -> RequestDecision {
    let subject = params["toolCall"]["title"].as_str().unwrap_or("a tool").to_owned();
    let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = |kind: &str| options.iter().find(|option| option["kind"] == kind);
    let allowing = of_kind("allow_always").or_else(|| of_kind("allow_once"));
    match (approvals, allowing) {
        (Approvals::Accept, Some(option)) => {
            let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
            RequestDecision::Approve { reply: json!({ "outcome": outcome }), subject }
        }
        (Approvals::Accept | Approvals::Ask, _) => {
            let message = format!("approval requested: {subject}");
            RequestDecision::stop(cancelled(), FailureKind::ApprovalRequired, message)
        }
    }
}

pub(super) fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn asks(kinds: &[&str]) -> Value {
        let options: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"optionId": format!("id-{kind}"), "kind": kind}))
            .collect();
        json!({"toolCall": {"title": "rm x"}, "options": options})
    }

    #[test]
    fn item_065_a_permission_is_given_or_left_to_a_person() {
        let decide = |params: &Value, approvals| {
            super::decide("session/request_permission", params, approvals)
        };
        let message = "approval requested: rm x";
        let stopped = || RequestDecision::stop(cancelled(), FailureKind::ApprovalRequired, message);
        for (kinds, option) in [
            (&["reject_once", "allow_once", "allow_always"][..], "id-allow_always"),
            (&["reject_once", "allow_once"], "id-allow_once"),
        ] {
            let reply = json!({"outcome": {"outcome": "selected", "optionId": option}});
            let allowed = RequestDecision::Approve { reply, subject: "rm x".to_owned() };
            assert_eq!(decide(&asks(kinds), Approvals::Accept), allowed);
            assert_eq!(decide(&asks(kinds), Approvals::Ask), stopped());
        }
        assert_eq!(decide(&asks(&["reject_once"]), Approvals::Accept), stopped());
    }
}
