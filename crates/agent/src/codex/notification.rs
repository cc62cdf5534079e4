//! Summaries of the app server's notifications, and the agent's messages in them.
//!
//! The summary of a known method names its item; of an unknown one it is the first text member, or the
//! method. Nothing depends on a summary: new methods of newer servers only read less well.

use serde_json::Value;

use super::text;

/// Returns a summary of a notification, of any length; the reporter cuts it to one line.
pub(super) fn summary(method: &str, params: &Value) -> String {
    let item = || item_name(params);
    match method {
        "thread/started" => "thread started".to_owned(),
        "thread/status/changed" => {
            format!("thread is {}", text(params, "/status/type").unwrap_or("changing"))
        }
        "turn/started" => "turn started".to_owned(),
        "turn/diff/updated" => "diff updated".to_owned(),
        "turn/plan/updated" => format!("plan: {}", current_step(params)),
        "item/started" => format!("{} started", item()),
        "item/completed" => format!("{} completed", item()),
        "thread/tokenUsage/updated" => {
            let total = params.pointer("/tokenUsage/total/totalTokens").and_then(Value::as_u64);
            format!("{} tokens used", total.unwrap_or_default())
        }
        "account/rateLimits/updated" => "rate limits updated".to_owned(),
        "error" => {
            let will_retry = params.get("willRetry") == Some(&Value::Bool(true));
            let retry = if will_retry { ", retrying" } else { "" };
            format!("error: {}{retry}", text(params, "/error/message").unwrap_or("unknown"))
        }
        _ => fallback_summary(method, params),
    }
}

/// Returns true for increments of a text or of progress, which arrive many times a second.
pub(super) fn is_delta(method: &str) -> bool {
    // Both `item/agentMessage/delta` and `item/commandExecution/outputDelta`.
    method.ends_with("elta") || method.ends_with("/progress")
}

/// Returns the text of a completed agent message. Deltas of it and reasoning are no messages.
pub(super) fn agent_message<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    match method {
        "item/completed" if is_message(text(params, "/item/type")?) => text(params, "/item/text"),
        "codex/event/agent_message" => text(params, "/msg/message"),
        _ => None,
    }
}

fn is_message(kind: &str) -> bool {
    matches!(kind, "agentMessage" | "agent_message")
}

fn item_name(params: &Value) -> String {
    let field = |name: &str| text(params, &format!("/item/{name}")).unwrap_or_default();
    match field("type") {
        "commandExecution" => format!("command `{}`", field("command")),
        "fileChange" => {
            let files =
                params.pointer("/item/changes").and_then(Value::as_array).map_or(0, Vec::len);
            format!("change of {files} files")
        }
        "mcpToolCall" => format!("tool {} of {}", field("tool"), field("server")),
        "dynamicToolCall" => format!("tool {}", field("tool")),
        "agentMessage" => format!("message `{}`", field("text")),
        "userMessage" => "prompt".to_owned(),
        "webSearch" => format!("search `{}`", field("query")),
        "" => "item".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the step of a plan that is in progress, or the last one.
fn current_step(params: &Value) -> &str {
    let steps = params.get("plan").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let in_progress = |step: &&Value| text(step, "/status") == Some("inProgress");
    let step = steps.iter().find(in_progress).or(steps.last());
    step.and_then(|step| text(step, "/step")).unwrap_or("changed")
}

/// Returns the first text member of an unknown notification, or its method.
fn fallback_summary(method: &str, params: &Value) -> String {
    let paths = ["/delta", "/message", "/msg/message", "/msg/delta", "/text", "/summary"];
    let found = paths
        .into_iter()
        .find_map(|path| text(params, path))
        .filter(|text| !text.trim().is_empty());
    found.unwrap_or(method).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn item_082_notifications_have_summaries() {
        for (method, params, expected) in [
            ("thread/started", json!({}), "thread started"),
            ("thread/status/changed", json!({"status": {"type": "idle"}}), "thread is idle"),
            ("turn/started", json!({}), "turn started"),
            ("turn/diff/updated", json!({"diff": "-a"}), "diff updated"),
            ("account/rateLimits/updated", json!({"rateLimits": {}}), "rate limits updated"),
            (
                "item/started",
                json!({"item": {"type": "mcpToolCall", "tool": "t", "server": "s"}}),
                "tool t of s started",
            ),
            (
                "item/completed",
                json!({"item": {"type": "dynamicToolCall", "tool": "t"}}),
                "tool t completed",
            ),
            (
                "item/completed",
                json!({"item": {"type": "agentMessage", "text": "Hello"}}),
                "message `Hello` completed",
            ),
            ("item/started", json!({"item": {"type": "userMessage"}}), "prompt started"),
            (
                "item/started",
                json!({"item": {"type": "webSearch", "query": "q"}}),
                "search `q` started",
            ),
            ("codex/event/agent_message", json!({"msg": {"message": "Hi"}}), "Hi"),
            (
                "item/started",
                json!({"item": {"type": "commandExecution", "command": "ls"}}),
                "command `ls` started",
            ),
            (
                "item/completed",
                json!({"item": {"type": "fileChange", "changes": [{}, {}]}}),
                "change of 2 files completed",
            ),
            (
                "turn/plan/updated",
                json!({"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "inProgress"}]}),
                "plan: b",
            ),
            ("item/agentMessage/delta", json!({"delta": "Hel"}), "Hel"),
            (
                "error",
                json!({"error": {"message": "lost"}, "willRetry": true}),
                "error: lost, retrying",
            ),
            (
                "thread/tokenUsage/updated",
                json!({"tokenUsage": {"total": {"totalTokens": 7}}}),
                "7 tokens used",
            ),
            ("some/thing", json!(null), "some/thing"),
        ] {
            assert_eq!(summary(method, &params), expected);
        }
    }

    #[test]
    fn only_completed_agent_messages_are_answers() {
        let item = |kind: &str| json!({"item": {"type": kind, "text": "t"}});
        assert_eq!(agent_message("item/completed", &item("agentMessage")), Some("t"));
        assert_eq!(agent_message("item/completed", &item("reasoning")), None);
        assert_eq!(agent_message("item/started", &item("agentMessage")), None);
    }
}
