//! What an agent tells about its turn.

use serde_json::Value;

/// Something that an agent tells about its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// What kind of thing it is.
    pub(super) kind: String,
    /// A few words for people.
    pub(super) words: String,
    /// A piece of what the agent says.
    pub(super) said: Option<String>,
    /// Which message that is of.
    pub(super) message: Option<String>,
    /// Whether it is one of many pieces.
    pub(super) is_piece: bool,
    /// Whether what the agent says next is another message.
    pub(super) interrupts: bool,
}

impl Update {
    pub(super) fn of(update: &Value) -> Self {
        let text = |path: &str| update.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let kind = text("/sessionUpdate").unwrap_or_else(|| "session/update".to_owned());
        let content = text("/content/text");
        let title = || text("/title").unwrap_or_else(|| "a tool".to_owned());
        let words = match kind.as_str() {
            "tool_call" => format!("{} begins", title()),
            "tool_call_update" => {
                format!(
                    "{} is {}",
                    title(),
                    text("/status").unwrap_or_else(|| "at work".to_owned())
                )
            }
            "plan" => format!("plan: {}", step(update)),
            "usage_update" => {
                let used = update.get("used").and_then(Value::as_u64).unwrap_or_default();
                format!("{used} tokens of context")
            }
            _ => content.clone().or_else(|| text("/title")).unwrap_or_else(|| kind.clone()),
        };
        let is_said = kind == "agent_message_chunk";
        Self {
            words,
            said: content.filter(|_| is_said),
            message: text("/messageId"),
            is_piece: kind.ends_with("_chunk"),
            interrupts: kind == "tool_call",
            kind,
        }
    }
}

/// Finds the step of a plan that is at hand.
fn step(update: &Value) -> &str {
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
    fn updates_are_put_into_words() {
        for (update, words) in [
            (json!({"sessionUpdate": "tool_call", "title": "ls"}), "ls begins"),
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
            assert_eq!(Update::of(&update).words, words);
        }
    }

    #[test]
    fn only_the_agents_own_words_are_its_answer() {
        let chunk =
            |kind: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": "t"}});
        assert_eq!(Update::of(&chunk("agent_message_chunk")).said.as_deref(), Some("t"));
        assert_eq!(Update::of(&chunk("agent_thought_chunk")).said, None);
        assert!(Update::of(&chunk("agent_thought_chunk")).is_piece);
    }
}
