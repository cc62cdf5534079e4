//! What a line of a plain command says.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::event::Tokens;
use crate::lines::Line;
use crate::usage;

/// What a line of a plain command says.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// The line is blank.
    Nothing,
    /// A message for whoever reads along. The last of a turn is its answer.
    Message(String),
    /// What the command has used in this turn so far.
    Usage(Tokens),
    /// What its provider says about limits.
    RateLimits(Value),
    /// Its provider wants fewer requests.
    RateLimited { retry_after: Option<Duration>, message: String },
    /// It asks a question, and cannot go on.
    InputRequired(String),
    /// An event that has no meaning here.
    Something { kind: String, message: Option<String> },
    /// It was to be an event and is none.
    Malformed(String),
}

impl Said {
    pub(super) fn of(line: Line) -> Self {
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong { bytes } => return Self::Malformed(format!("a line of {bytes} bytes")),
        };
        match text.trim() {
            "" => Self::Nothing,
            trimmed if !trimmed.starts_with('{') => Self::Message(text),
            trimmed => match serde_json::from_str::<Map<String, Value>>(trimmed) {
                Ok(object) => Self::of_object(object).unwrap_or(Self::Message(text)),
                Err(_) => Self::Malformed(text),
            },
        }
    }

    /// Reads an event; none if the object is not one.
    fn of_object(mut object: Map<String, Value>) -> Option<Self> {
        let kind = object.get("event")?.as_str()?.to_owned();
        let message = ["text", "message", "question"]
            .into_iter()
            .find_map(|name| object.get(name)?.as_str().map(str::to_owned));
        Some(match kind.as_str() {
            "message" => Self::Message(message.unwrap_or_default()),
            "usage" => match usage::tokens(&Value::Object(object)) {
                Some(tokens) => Self::Usage(tokens),
                None => Self::Malformed("a usage event without numbers of tokens".to_owned()),
            },
            "rate_limits" => Self::RateLimits(object.remove("limits").unwrap_or_default()),
            "rate_limited" => Self::RateLimited {
                retry_after: seconds(object.get("retry_after_seconds")),
                message: message.unwrap_or_else(|| "the provider wants fewer requests".to_owned()),
            },
            "input_required" => {
                Self::InputRequired(message.unwrap_or_else(|| "the agent needs input".to_owned()))
            }
            _ => Self::Something { kind, message },
        })
    }
}

/// Reads a time that makes sense.
fn seconds(value: Option<&Value>) -> Option<Duration> {
    Duration::try_from_secs_f64(value?.as_f64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    fn said(text: &str) -> Said {
        Said::of(Line::Text(text.to_owned()))
    }

    #[test]
    fn a_line_says_what_the_documentation_says() {
        let tokens = Tokens { input: 7, output: 2, total: 9 };
        for (line, expected) in [
            ("  ", Said::Nothing),
            ("done {ok}", Said::Message("done {ok}".into())),
            (r#"{"no":"event"}"#, Said::Message(r#"{"no":"event"}"#.into())),
            (r#"{"event":"message","text":"hello"}"#, Said::Message("hello".into())),
            (r#"{"event":"usage","input_tokens":7,"output_tokens":2}"#, Said::Usage(tokens)),
            (
                r#"{"event":"usage"}"#,
                Said::Malformed("a usage event without numbers of tokens".into()),
            ),
            (r#"{"event":"rate_limits","limits":{"a":1}}"#, Said::RateLimits(json!({"a": 1}))),
            (
                r#"{"event":"rate_limited","retry_after_seconds":1.5,"message":"slow down"}"#,
                Said::RateLimited {
                    retry_after: Some(Duration::from_millis(1500)),
                    message: "slow down".into(),
                },
            ),
            (
                r#"{"event":"rate_limited","retry_after_seconds":-1}"#,
                Said::RateLimited {
                    retry_after: None,
                    message: "the provider wants fewer requests".into(),
                },
            ),
            (
                r#"{"event":"input_required","question":"which?"}"#,
                Said::InputRequired("which?".into()),
            ),
            (
                r#"{"event":"built","message":"ok"}"#,
                Said::Something { kind: "built".into(), message: Some("ok".into()) },
            ),
            (r#"{"event":"#, Said::Malformed(r#"{"event":"#.into())),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }
}
