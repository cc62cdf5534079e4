//! One message.

use serde_json::{Map, Value};

use crate::failure::{AgentFailure, FailureKind};

/// A message of the peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// It wants an answer.
    Request {
        /// What the answer has to name, as it was written.
        id: Value,
        method: String,
        params: Value,
    },
    /// It says something.
    Notice { method: String, params: Value },
    /// It answers.
    Reply { id: u64, result: Result<Value, Refusal> },
    /// It wrote an object that is none of these.
    Other(String),
    /// It wrote a line that is no object.
    Malformed(String),
    /// It wrote a line that is not meant to be one.
    Text(String),
}

/// An error that a request was answered with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// What else is said about it.
    pub(crate) data: Value,
}

/// Words that errors about limits of a provider have in them.
const LIMIT_WORDS: [&str; 6] =
    ["rate_limit", "ratelimit", "rate limit", "usage_limit", "usagelimit", "too many requests"];

impl Message {
    /// Reads a line.
    pub(crate) fn of(line: &str) -> Self {
        match serde_json::from_str::<Map<String, Value>>(line) {
            Ok(object) => Self::of_object(object).unwrap_or_else(|| Self::Other(line.to_owned())),
            Err(_) if line.trim_start().starts_with('{') => Self::Malformed(line.to_owned()),
            Err(_) => Self::Text(line.to_owned()),
        }
    }

    fn of_object(mut object: Map<String, Value>) -> Option<Self> {
        let id = object.remove("id").filter(|id| !id.is_null());
        let params = object.remove("params").unwrap_or_default();
        match (object.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Some(Self::Request { id, method, params }),
            (Some(Value::String(method)), None) => Some(Self::Notice { method, params }),
            (Some(_), _) | (None, None) => None,
            (None, Some(id)) => {
                let result = match object.remove("error").filter(|error| !error.is_null()) {
                    Some(error) => Err(Refusal::of(&error)),
                    None => Ok(object.remove("result")?),
                };
                Some(Self::Reply { id: id.as_u64()?, result })
            }
        }
    }
}

/// Tells whether a text is about a limit of a provider.
pub(crate) fn is_about_limits(text: &str) -> bool {
    let text = text.to_lowercase();
    LIMIT_WORDS.iter().any(|word| text.contains(word))
}

impl Refusal {
    fn of(error: &Value) -> Self {
        let message = error.get("message").and_then(Value::as_str).map(str::to_owned);
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let data = error.get("data").cloned().unwrap_or_default();
        Self { code, message: message.unwrap_or_else(|| error.to_string()), data }
    }

    /// Returns what was said, with what it is about if that is a text.
    pub(crate) fn told(&self) -> String {
        let details =
            ["details", "message"].into_iter().find_map(|name| self.data.get(name)?.as_str());
        match details.or(self.data.as_str()).filter(|details| *details != self.message) {
            Some(details) => format!("{} ({details})", self.message),
            None => self.message.clone(),
        }
    }

    /// Tells whether it is about a limit of the provider. There is no code for that.
    pub(crate) fn is_limit(&self) -> bool {
        self.code == 429 || is_about_limits(&format!("{} {}", self.message, self.data))
    }

    /// Says that a request was refused.
    pub(crate) fn to(&self, method: &str) -> AgentFailure {
        let message = format!("the agent refused {method}: {} ({})", self.told(), self.code);
        AgentFailure::new(FailureKind::ResponseError, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn each_line_is_what_it_looks_like() {
        let refusal =
            |code, message: &str| Refusal { code, message: message.to_owned(), data: Value::Null };
        for (line, expected) in [
            (
                r#"{"id":"a","method":"m","params":{"b":1}}"#,
                Message::Request { id: json!("a"), method: "m".into(), params: json!({"b": 1}) },
            ),
            (
                r#"{"jsonrpc":"2.0","method":"m"}"#,
                Message::Notice { method: "m".into(), params: Value::Null },
            ),
            (r#"{"id":7,"result":null}"#, Message::Reply { id: 7, result: Ok(Value::Null) }),
            (
                r#"{"id":7,"error":{"code":-32001,"message":"busy"}}"#,
                Message::Reply { id: 7, result: Err(refusal(-32001, "busy")) },
            ),
            (
                r#"{"id":7,"error":"odd"}"#,
                Message::Reply { id: 7, result: Err(refusal(0, "\"odd\"")) },
            ),
            (r#"{"id":"x","result":1}"#, Message::Other(r#"{"id":"x","result":1}"#.into())),
            (r#"{"a":1}"#, Message::Other(r#"{"a":1}"#.into())),
            (r#"{"a":"#, Message::Malformed(r#"{"a":"#.into())),
            ("warning: x", Message::Text("warning: x".into())),
            ("[1]", Message::Text("[1]".into())),
        ] {
            assert_eq!(Message::of(line), expected, "{line}");
        }
    }
}
