//! JSON-RPC messages in both directions.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The error code "method not found".
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// The error codes with which a server refuses a request that may succeed when it is sent again: cancelled by the
/// server, content modified, and cancelled.
const TRANSIENT: [i64; 3] = [-32802, -32801, -32800];

/// A message of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Response { id: i64, result: Result<Value, ResponseError> },
}

/// The error of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub(crate) struct ResponseError {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

impl ResponseError {
    /// Returns whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        TRANSIENT.contains(&self.code)
    }
}

#[derive(Deserialize)]
struct RawMessage {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<ResponseError>,
}

impl Message {
    /// Reads a message; `None` if it is none.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let RawMessage { id, method, params, result, error } = serde_json::from_slice(body).ok()?;
        match (id, method) {
            (Some(id), Some(method)) => Some(Self::Request { id, method, params }),
            (None, Some(method)) => Some(Self::Notification { method, params }),
            (Some(id), None) => {
                let result = error.map_or(Ok(result), Err);
                Some(Self::Response { id: id.as_i64()?, result })
            }
            (None, None) => None,
        }
    }
}

pub(crate) fn request(id: i64, method: &str, params: &Value) -> Vec<u8> {
    body(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(crate) fn notification(method: &str, params: &Value) -> Vec<u8> {
    body(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

pub(crate) fn response(id: &Value, result: Result<Value, ResponseError>) -> Vec<u8> {
    body(&match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    })
}

/// Leaves out parameters that are null: some servers refuse them in messages that have none.
fn body(message: &Value) -> Vec<u8> {
    let mut message = message.clone();
    if let Some(object) = message.as_object_mut()
        && object.get("params").is_some_and(Value::is_null)
    {
        object.shift_remove("params");
    }
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn messages_are_told_apart_by_their_members() {
        let refused = ResponseError { code: -32801, message: "content modified".into() };
        for (text, message) in [
            (
                r#"{"id":"a","method":"m","params":[1]}"#,
                Some(Message::Request { id: "a".into(), method: "m".into(), params: json!([1]) }),
            ),
            (
                r#"{"method":"m"}"#,
                Some(Message::Notification { method: "m".into(), params: Value::Null }),
            ),
            (
                r#"{"id":3,"result":null}"#,
                Some(Message::Response { id: 3, result: Ok(Value::Null) }),
            ),
            (
                r#"{"id":3,"error":{"code":-32801,"message":"content modified","data":1}}"#,
                Some(Message::Response { id: 3, result: Err(refused.clone()) }),
            ),
            (r#"{"id":null,"error":{"code":-32700,"message":""}}"#, None),
            (r#"{"result":1}"#, None),
            ("[]", None),
            ("{", None),
        ] {
            assert_eq!(Message::parse(text.as_bytes()), message, "{text}");
        }
        assert!(refused.is_transient());
    }

    #[test]
    fn absent_parameters_are_left_out() {
        let text = String::from_utf8(request(1, "shutdown", &Value::Null)).unwrap();
        assert_eq!(text, r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#);
    }
}
