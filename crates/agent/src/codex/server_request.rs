//! Decisions about the app server's requests.
//!
//! With the approval policy `never` every approval is given: the operator has decided that the sandbox
//! around the server is the boundary. With any other policy a request for approval ends the turn, and the
//! conductor blocks the issue until an operator acts. Questions that are approvals in disguise, namely of
//! the use of an MCP tool, are answered like approvals under `never`, and otherwise like questions.
//!
//! Other questions need a person, and the policy makes no difference: elicitations of MCP servers and
//! blocking questions end the turn, while a question that the server marks as not blocking gets an empty
//! reply and the turn continues ([`RequestDecision::Skip`]). Methods that are not listed get the JSON-RPC
//! error "method not found".

use serde_json::{Map, Value, json};

use crate::failure::FailureKind;
use crate::request_decision::RequestDecision;

/// The prefix of question ids that ask for the approval of an MCP tool call.
const TOOL_APPROVAL: &str = "mcp_tool_call_approval_";

/// Decides about a request. `approves_all` is true with the approval policy `never`.
pub(super) fn decide(method: &str, params: &Value, approves_all: bool) -> RequestDecision {
    match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
            approval(params, approves_all, "acceptForSession", "cancel")
        }
        "execCommandApproval" | "applyPatchApproval" => {
            approval(params, approves_all, "approved_for_session", "abort")
        }
        "item/permissions/requestApproval" => permissions(params, approves_all),
        "item/tool/requestUserInput" => input(params, approves_all),
        "mcpServer/elicitation/request" => {
            let question = params.get("message").and_then(Value::as_str);
            let question = question.unwrap_or("a tool asks for input");
            RequestDecision::stop(
                json!({ "action": "cancel" }),
                FailureKind::InputRequired,
                question,
            )
        }
        "item/tool/call" => tool(params),
        _ => RequestDecision::Unsupported,
    }
}

fn approval(params: &Value, approves_all: bool, yes: &str, no: &str) -> RequestDecision {
    let subject = subject_of(params);
    if approves_all {
        return RequestDecision::Approve { reply: json!({ "decision": yes }), subject };
    }
    let message = format!("approval requested: {subject}");
    RequestDecision::stop(json!({ "decision": no }), FailureKind::ApprovalRequired, message)
}

fn permissions(params: &Value, approves_all: bool) -> RequestDecision {
    let subject = subject_of(params);
    if approves_all {
        let requested = params.get("permissions").cloned().unwrap_or_else(|| json!({}));
        let reply = json!({ "permissions": requested, "scope": "session" });
        return RequestDecision::Approve { reply, subject };
    }
    let message = format!("more permissions requested: {subject}");
    RequestDecision::stop(json!({ "permissions": {} }), FailureKind::ApprovalRequired, message)
}

/// Returns the command, reason or files that an approval is about.
fn subject_of(params: &Value) -> String {
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let words = || {
        let words = params.get("command")?.as_array()?.iter().filter_map(Value::as_str);
        Some(words.collect::<Vec<_>>().join(" "))
    };
    let files = || {
        let files = params.get("fileChanges")?.as_object()?.len();
        Some(format!("changes of {files} files"))
    };
    let found = text("command").or_else(words).or_else(|| text("reason")).or_else(files);
    found.unwrap_or_else(|| "changes of files".to_owned())
}

fn input(params: &Value, approves_all: bool) -> RequestDecision {
    let questions = params.get("questions").and_then(Value::as_array);
    let questions = questions.map(Vec::as_slice).unwrap_or_default();
    let subject = question_text(questions);
    let is_about_tools = |question: &Value| {
        question.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with(TOOL_APPROVAL))
    };
    if approves_all
        && !questions.is_empty()
        && questions.iter().all(is_about_tools)
        && let Some(answers) = questions.iter().map(approve).collect::<Option<Map<_, _>>>()
    {
        return RequestDecision::Approve { reply: json!({ "answers": answers }), subject };
    }
    let reply = json!({ "answers": {} });
    if params.get("isBlocking") == Some(&Value::Bool(false)) {
        return RequestDecision::Skip { reply, subject };
    }
    RequestDecision::stop(reply, FailureKind::InputRequired, subject)
}

/// Selects the approval for the session, else the one for this use, else the first option that approves.
fn approve(question: &Value) -> Option<(String, Value)> {
    let id = question.get("id")?.as_str()?;
    let options = question.get("options")?.as_array()?;
    let labels: Vec<&str> =
        options.iter().filter_map(|option| option.get("label")?.as_str()).collect();
    let named = |name: &str| labels.iter().find(|label| **label == name);
    let allows = |label: &&&str| {
        let label = label.to_lowercase();
        label.starts_with("approve") || label.starts_with("allow")
    };
    let label = named("Approve this Session").or_else(|| named("Approve Once"));
    let label = label.or_else(|| labels.iter().find(allows))?;
    Some((id.to_owned(), json!({ "answers": [label] })))
}

fn question_text(questions: &[Value]) -> String {
    let texts = questions.iter().filter_map(|question| question.get("question")?.as_str());
    match texts.collect::<Vec<_>>().join(" ") {
        text if text.is_empty() => "the agent asks for input".to_owned(),
        text => text,
    }
}

fn tool(params: &Value) -> RequestDecision {
    let name = ["tool", "name"].into_iter().find_map(|name| params.get(name)?.as_str());
    let arguments = params.get("arguments").filter(|arguments| !arguments.is_null());
    RequestDecision::CallTool {
        tool: name.unwrap_or_default().trim().to_owned(),
        arguments: arguments.cloned().unwrap_or_else(|| json!({})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::AgentFailure;
    use pretty_assertions::assert_eq;

    #[test]
    fn item_065_approvals_follow_the_policy() {
        let items = ("acceptForSession", "cancel");
        let legacy = ("approved_for_session", "abort");
        for (method, params, subject, (yes, no)) in [
            ("item/commandExecution/requestApproval", json!({"command": "rm x"}), "rm x", items),
            (
                "item/fileChange/requestApproval",
                json!({"reason": "to write x"}),
                "to write x",
                items,
            ),
            ("item/fileChange/requestApproval", json!({}), "changes of files", items),
            ("execCommandApproval", json!({"command": ["rm", "x"]}), "rm x", legacy),
            (
                "applyPatchApproval",
                json!({"fileChanges": {"a": {}, "b": {}}}),
                "changes of 2 files",
                legacy,
            ),
        ] {
            let reply = json!({ "decision": yes });
            let accepted = RequestDecision::Approve { reply, subject: subject.to_owned() };
            assert_eq!(decide(method, &params, true), accepted);
            let message = format!("approval requested: {subject}");
            let failure = AgentFailure::new(FailureKind::ApprovalRequired, message);
            let stopped = RequestDecision::Stop { reply: json!({ "decision": no }), failure };
            assert_eq!(decide(method, &params, false), stopped);
        }
    }

    #[test]
    fn more_permissions_are_an_approval_too() {
        let params =
            json!({"permissions": {"network": {"enabled": true}}, "reason": "to download"});
        let reply = json!({"permissions": {"network": {"enabled": true}}, "scope": "session"});
        let method = "item/permissions/requestApproval";
        let subject = "to download".to_owned();
        assert_eq!(decide(method, &params, true), RequestDecision::Approve { reply, subject });
        assert!(matches!(decide(method, &params, false), RequestDecision::Stop { .. }));
    }

    fn asks(id: &str, labels: &[&str]) -> Value {
        let options: Vec<Value> = labels.iter().map(|label| json!({"label": label})).collect();
        json!({"questions": [{"id": id, "question": "May I?", "options": options}], "isBlocking": true})
    }

    #[test]
    fn item_067_questions_about_tools_are_answered_and_others_stop_the_turn() {
        let method = "item/tool/requestUserInput";
        for (labels, label) in [
            (&["No", "Approve Once", "Approve this Session"][..], "Approve this Session"),
            (&["No", "Approve Once"], "Approve Once"),
            (&["No", "Allow it"], "Allow it"),
        ] {
            let params = asks("mcp_tool_call_approval_1", labels);
            let reply = json!({"answers": {"mcp_tool_call_approval_1": {"answers": [label]}}});
            let subject = "May I?".to_owned();
            assert_eq!(decide(method, &params, true), RequestDecision::Approve { reply, subject });
            assert!(matches!(decide(method, &params, false), RequestDecision::Stop { .. }));
        }
        let stopped = RequestDecision::Stop {
            reply: json!({"answers": {}}),
            failure: AgentFailure::new(FailureKind::InputRequired, "May I?"),
        };
        assert_eq!(decide(method, &asks("mcp_tool_call_approval_1", &["No"]), true), stopped);
        assert_eq!(decide(method, &asks("other", &["Approve Once"]), true), stopped);
        let mut passing = asks("other", &[]);
        passing["isBlocking"] = false.into();
        assert!(matches!(decide(method, &passing, false), RequestDecision::Skip { .. }));
    }

    #[test]
    fn item_066_a_tool_is_named_in_either_way_and_what_is_unknown_is_said_to_be() {
        for params in [json!({"tool": " t "}), json!({"name": "t", "arguments": null})] {
            let expected = RequestDecision::CallTool { tool: "t".to_owned(), arguments: json!({}) };
            assert_eq!(decide("item/tool/call", &params, true), expected);
        }
        assert_eq!(decide("attestation/generate", &json!({}), true), RequestDecision::Unsupported);
    }
}
