//! Events of a plain command, one per line of stdout.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::event::Tokens;
use crate::line_splitter::OutputLine;
use crate::token_usage;

#[derive(Debug, PartialEq)]
pub(super) enum OutputEvent {
    Blank,
    /// A message, as plain text or as an event. The last one of a turn is its answer.
    Message(String),
    /// Tokens of the turn so far, as a total.
    Usage(Tokens),
    RateLimits(Value),
    RateLimited {
        retry_after: Option<Duration>,
        message: String,
    },
    InputRequired(String),
    /// An event of another kind, which is passed on.
    Other {
        kind: String,
        message: Option<String>,
    },
    /// A line that begins like an object and is not a valid event.
    Malformed(String),
}

impl OutputEvent {
    pub(super) fn of(line: OutputLine) -> Self {
        let text = match line {
            OutputLine::Text(text) => text,
            OutputLine::TooLong { bytes } => {
                return Self::Malformed(format!("a line of {bytes} bytes"));
            }
        };
        match text.trim() {
            "" => Self::Blank,
            trimmed if !trimmed.starts_with('{') => Self::Message(text),
            trimmed => match serde_json::from_str::<Map<String, Value>>(trimmed) {
                Ok(object) => Self::of_object(object).unwrap_or(Self::Message(text)),
                Err(_) => Self::Malformed(text),
            },
        }
    }

    /// Parses an event; `None` for an object without the member `event`.
    fn of_object(mut object: Map<String, Value>) -> Option<Self> {
        let kind = object.get("event")?.as_str()?.to_owned();
        let message = ["text", "message", "question"]
            .into_iter()
            .find_map(|name| object.get(name)?.as_str().map(str::to_owned));
        Some(match kind.as_str() {
            "message" => Self::Message(message.unwrap_or_default()),
            "usage" => match token_usage::tokens(&Value::Object(object)) {
                Some(tokens) => Self::Usage(tokens),
                None => Self::Malformed("a usage event without token counts".to_owned()),
            },
            "rate_limits" => Self::RateLimits(object.remove("limits").unwrap_or_default()),
            "rate_limited" => Self::RateLimited {
                retry_after: seconds(object.get("retry_after_seconds")),
                message: message.unwrap_or_else(|| "the provider reported a rate limit".to_owned()),
            },
            "input_required" => {
                Self::InputRequired(message.unwrap_or_else(|| "the agent needs input".to_owned()))
            }
            _ => Self::Other { kind, message },
        })
    }
}

/// Reads a non-negative number of seconds.
fn seconds(value: Option<&Value>) -> Option<Duration> {
    Duration::try_from_secs_f64(value?.as_f64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn parse(text: &str) -> OutputEvent {
        OutputEvent::of(OutputLine::Text(text.to_owned()))
    }

    #[test]
    fn lines_are_parsed_as_documented() {
        let tokens = Tokens { input: 7, output: 2, total: 9 };
        for (line, expected) in [
            ("  ", OutputEvent::Blank),
            ("done {ok}", OutputEvent::Message("done {ok}".into())),
            (r#"{"no":"event"}"#, OutputEvent::Message(r#"{"no":"event"}"#.into())),
            (r#"{"event":"message","text":"hello"}"#, OutputEvent::Message("hello".into())),
            (r#"{"event":"usage","input_tokens":7,"output_tokens":2}"#, OutputEvent::Usage(tokens)),
            (
                r#"{"event":"usage"}"#,
                OutputEvent::Malformed("a usage event without token counts".into()),
            ),
            (
                r#"{"event":"rate_limits","limits":{"a":1}}"#,
                OutputEvent::RateLimits(json!({"a": 1})),
            ),
            (
                r#"{"event":"rate_limited","retry_after_seconds":1.5,"message":"slow down"}"#,
                OutputEvent::RateLimited {
                    retry_after: Some(Duration::from_millis(1500)),
                    message: "slow down".into(),
                },
            ),
            (
                r#"{"event":"rate_limited","retry_after_seconds":-1}"#,
                OutputEvent::RateLimited {
                    retry_after: None,
                    message: "the provider reported a rate limit".into(),
                },
            ),
            (
                r#"{"event":"input_required","question":"which?"}"#,
                OutputEvent::InputRequired("which?".into()),
            ),
            (
                r#"{"event":"built","message":"ok"}"#,
                OutputEvent::Other { kind: "built".into(), message: Some("ok".into()) },
            ),
            (r#"{"event":"#, OutputEvent::Malformed(r#"{"event":"#.into())),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }
}
