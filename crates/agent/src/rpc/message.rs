//! Messages of a JSON-RPC peer.

use serde_json::{Map, Value};

use crate::failure::{AgentFailure, FailureKind};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        /// The id for the reply, as it was sent.
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// A reply to a request with a numeric id.
    Reply {
        id: u64,
        result: Result<Value, Refusal>,
    },
    Other(String),
    /// A line that begins like an object and does not parse.
    Malformed(String),
    Text(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

/// Texts that mark an error as a rate limit of a provider.
const RATE_LIMIT_TEXTS: [&str; 6] =
    ["rate_limit", "ratelimit", "rate limit", "usage_limit", "usagelimit", "too many requests"];

impl Message {
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
            (Some(Value::String(method)), None) => Some(Self::Notification { method, params }),
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

/// Returns true if a text mentions a rate limit of a provider.
pub(crate) fn mentions_rate_limit(text: &str) -> bool {
    let text = text.to_lowercase();
    RATE_LIMIT_TEXTS.iter().any(|word| text.contains(word))
}

impl Refusal {
    fn of(error: &Value) -> Self {
        let message = error.get("message").and_then(Value::as_str).map(str::to_owned);
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let data = error.get("data").cloned().unwrap_or_default();
        Self { code, message: message.unwrap_or_else(|| error.to_string()), data }
    }

    /// Returns the message, with the text of its data in parentheses.
    pub(crate) fn full_message(&self) -> String {
        let details =
            ["details", "message"].into_iter().find_map(|name| self.data.get(name)?.as_str());
        match details.or(self.data.as_str()).filter(|details| *details != self.message) {
            Some(details) => format!("{} ({details})", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns true if the error is a rate limit, by code 429 or by its text, since JSON-RPC has no code for
    /// it.
    pub(crate) fn is_rate_limit(&self) -> bool {
        self.code == 429 || mentions_rate_limit(&format!("{} {}", self.message, self.data))
    }

    /// Returns the failure of the request `method`.
    pub(crate) fn failure_of(&self, method: &str) -> AgentFailure {
        let message =
            format!("the agent rejected {method}: {} ({})", self.full_message(), self.code);
        AgentFailure::new(FailureKind::ResponseError, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn lines_are_classified() {
        let refusal =
            |code, message: &str| Refusal { code, message: message.to_owned(), data: Value::Null };
        for (line, expected) in [
            (
                r#"{"id":"a","method":"m","params":{"b":1}}"#,
                Message::Request { id: json!("a"), method: "m".into(), params: json!({"b": 1}) },
            ),
            (
                r#"{"jsonrpc":"2.0","method":"m"}"#,
                Message::Notification { method: "m".into(), params: Value::Null },
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
