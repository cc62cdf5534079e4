//! Decisions about `session/request_permission`.

use carrel_config::Approvals;
use serde_json::{Value, json};

#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// Allow it with the broadest option that the agent offers.
    Allow { reply: Value, subject: String },
    /// Cancel it and end the turn: an operator has to decide.
    Stop { reply: Value, subject: String },
}

/// Decides about a request by the workflow file's `agent.approvals`.
pub(super) fn decide(params: &Value, approvals: Approvals) -> Decision {
    let subject = params["toolCall"]["title"].as_str().unwrap_or("a tool").to_owned();
    let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = |kind: &str| options.iter().find(|option| option["kind"] == kind);
    let allowing = of_kind("allow_always").or_else(|| of_kind("allow_once"));
    match (approvals, allowing) {
        (Approvals::Accept, Some(option)) => {
            let reply =
                json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } });
            Decision::Allow { reply, subject }
        }
        (Approvals::Accept | Approvals::Ask, _) => Decision::Stop { reply: cancelled(), subject },
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
        let subject = "rm x".to_owned();
        for (kinds, option) in [
            (&["reject_once", "allow_once", "allow_always"][..], "id-allow_always"),
            (&["reject_once", "allow_once"], "id-allow_once"),
        ] {
            let reply = json!({"outcome": {"outcome": "selected", "optionId": option}});
            let decision = decide(&asks(kinds), Approvals::Accept);
            assert_eq!(decision, Decision::Allow { reply, subject: subject.clone() });
            let stopped = Decision::Stop { reply: cancelled(), subject: subject.clone() };
            assert_eq!(decide(&asks(kinds), Approvals::Ask), stopped);
        }
        let stopped = Decision::Stop { reply: cancelled(), subject };
        assert_eq!(decide(&asks(&["reject_once"]), Approvals::Accept), stopped);
    }
}
