//! `session/update` notifications.

use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// The `sessionUpdate` member.
    pub(super) kind: String,
    pub(super) summary: String,
    pub(super) text: Option<String>,
    pub(super) message_id: Option<String>,
    pub(super) is_delta: bool,
    pub(super) ends_message: bool,
}

impl Update {
    pub(super) fn of(update: &Value) -> Self {
        let text = |path: &str| update.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let kind = text("/sessionUpdate").unwrap_or_else(|| "session/update".to_owned());
        let content = text("/content/text");
        let title = || text("/title").unwrap_or_else(|| "a tool".to_owned());
        let summary = match kind.as_str() {
            "tool_call" => format!("{} started", title()),
            "tool_call_update" => {
                format!(
                    "{} is {}",
                    title(),
                    text("/status").unwrap_or_else(|| "in progress".to_owned())
                )
            }
            "plan" => format!("plan: {}", current_step(update)),
            "usage_update" => {
                let used = update.get("used").and_then(Value::as_u64).unwrap_or_default();
                format!("{used} tokens of context")
            }
            _ => content.clone().or_else(|| text("/title")).unwrap_or_else(|| kind.clone()),
        };
        let is_message = kind == "agent_message_chunk";
        Self {
            summary,
            text: content.filter(|_| is_message),
            message_id: text("/messageId"),
            is_delta: kind.ends_with("_chunk"),
            ends_message: kind == "tool_call",
            kind,
        }
    }
}

/// Returns the step of a plan that is in progress, or the last one.
fn current_step(update: &Value) -> &str {
    let entries = update["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at_hand = entries.iter().find(|entry| entry["status"] == "in_progress");
    at_hand.or(entries.last()).and_then(|entry| entry["content"].as_str()).unwrap_or("changed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn updates_have_summaries() {
        for (update, expected) in [
            (json!({"sessionUpdate": "tool_call", "title": "ls"}), "ls started"),
            (
                json!({"sessionUpdate": "tool_call_update", "title": "ls", "status": "completed"}),
                "ls is completed",
            ),
            (
                json!({"sessionUpdate": "plan", "entries": [{"content": "a", "status": "in_progress"}]}),
                "plan: a",
            ),
            (json!({"sessionUpdate": "usage_update", "used": 7, "size": 9}), "7 tokens of context"),
            (json!({"sessionUpdate": "current_mode_update"}), "current_mode_update"),
            (json!(null), "session/update"),
        ] {
            assert_eq!(Update::of(&update).summary, expected);
        }
    }

    #[test]
    fn only_message_chunks_are_part_of_the_answer() {
        let chunk =
            |kind: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": "t"}});
        assert_eq!(Update::of(&chunk("agent_message_chunk")).text.as_deref(), Some("t"));
        assert_eq!(Update::of(&chunk("agent_thought_chunk")).text, None);
        assert!(Update::of(&chunk("agent_thought_chunk")).is_delta);
    }
}
