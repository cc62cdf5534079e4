//! Notices of the server, in a few words for people.

use serde_json::Value;

use super::text;

/// Says what a notice is about. Callers cut it to a line.
pub(super) fn of(method: &str, params: &Value) -> String {
    let item = || item(params);
    match method {
        "thread/started" => "thread started".to_owned(),
        "thread/status/changed" => {
            format!("thread is {}", text(params, "/status/type").unwrap_or("changing"))
        }
        "turn/started" => "turn started".to_owned(),
        "turn/diff/updated" => "the diff of the turn has changed".to_owned(),
        "turn/plan/updated" => format!("plan: {}", step(params)),
        "item/started" => format!("{} begins", item()),
        "item/completed" => format!("{} is done", item()),
        "thread/tokenUsage/updated" => {
            let total = params.pointer("/tokenUsage/total/totalTokens").and_then(Value::as_u64);
            format!("{} tokens used", total.unwrap_or_default())
        }
        "account/rateLimits/updated" => "limits of the provider".to_owned(),
        "error" => {
            let will_retry = params.get("willRetry") == Some(&Value::Bool(true));
            let again = if will_retry { ", tried again" } else { "" };
            format!("error: {}{again}", text(params, "/error/message").unwrap_or("unknown"))
        }
        _ => said(method, params),
    }
}

/// Tells whether a notice is one of many about pieces of something.
pub(super) fn is_piece(method: &str) -> bool {
    method.ends_with("elta") || method.ends_with("/progress")
}

/// Returns what the agent says in a notice, if that is a whole message.
pub(super) fn message_of<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    match method {
        "item/completed" if is_message(text(params, "/item/type")?) => text(params, "/item/text"),
        "codex/event/agent_message" => text(params, "/msg/message"),
        _ => None,
    }
}

fn is_message(kind: &str) -> bool {
    matches!(kind, "agentMessage" | "agent_message")
}

fn item(params: &Value) -> String {
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
        "" => "something".to_owned(),
        other => other.to_owned(),
    }
}

/// Finds the step of a plan that is at hand.
fn step(params: &Value) -> &str {
    let steps = params.get("plan").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let at_hand = |step: &&Value| text(step, "/status") == Some("inProgress");
    let step = steps.iter().find(at_hand).or(steps.last());
    step.and_then(|step| text(step, "/step")).unwrap_or("changed")
}

/// Falls back to whatever a notice says, and else to its name.
fn said(method: &str, params: &Value) -> String {
    let paths = ["/delta", "/message", "/msg/message", "/msg/delta", "/text", "/summary"];
    let found = paths
        .into_iter()
        .find_map(|path| text(params, path))
        .filter(|said| !said.trim().is_empty());
    found.unwrap_or(method).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn item_082_notices_are_put_into_words() {
        for (method, params, words) in [
            ("thread/started", json!({}), "thread started"),
            ("thread/status/changed", json!({"status": {"type": "idle"}}), "thread is idle"),
            ("turn/started", json!({}), "turn started"),
            ("turn/diff/updated", json!({"diff": "-a"}), "the diff of the turn has changed"),
            ("account/rateLimits/updated", json!({"rateLimits": {}}), "limits of the provider"),
            (
                "item/started",
                json!({"item": {"type": "mcpToolCall", "tool": "t", "server": "s"}}),
                "tool t of s begins",
            ),
            (
                "item/completed",
                json!({"item": {"type": "dynamicToolCall", "tool": "t"}}),
                "tool t is done",
            ),
            (
                "item/completed",
                json!({"item": {"type": "agentMessage", "text": "Hello"}}),
                "message `Hello` is done",
            ),
            ("item/started", json!({"item": {"type": "userMessage"}}), "prompt begins"),
            (
                "item/started",
                json!({"item": {"type": "webSearch", "query": "q"}}),
                "search `q` begins",
            ),
            ("codex/event/agent_message", json!({"msg": {"message": "Hi"}}), "Hi"),
            (
                "item/started",
                json!({"item": {"type": "commandExecution", "command": "ls"}}),
                "command `ls` begins",
            ),
            (
                "item/completed",
                json!({"item": {"type": "fileChange", "changes": [{}, {}]}}),
                "change of 2 files is done",
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
                "error: lost, tried again",
            ),
            (
                "thread/tokenUsage/updated",
                json!({"tokenUsage": {"total": {"totalTokens": 7}}}),
                "7 tokens used",
            ),
            ("some/thing", json!(null), "some/thing"),
        ] {
            assert_eq!(of(method, &params), words);
        }
    }

    #[test]
    fn only_whole_messages_of_the_agent_are_answers() {
        let item = |kind: &str| json!({"item": {"type": kind, "text": "t"}});
        assert_eq!(message_of("item/completed", &item("agentMessage")), Some("t"));
        assert_eq!(message_of("item/completed", &item("reasoning")), None);
        assert_eq!(message_of("item/started", &item("agentMessage")), None);
    }
}
