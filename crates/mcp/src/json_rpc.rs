//! JSON-RPC messages: parsing with exact errors, and the few properties that both transports look at.

use rmcp::{
    ErrorData,
    model::{
        ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcError, JsonRpcMessage,
        RequestId, ServerJsonRpcMessage,
    },
};
use serde_json::{Value, error::Category};

/// The code for "overloaded, try again", from the range that JSON-RPC leaves to implementations.
const OVERLOADED: ErrorCode = ErrorCode(-32000);

/// Bytes that are not a message.
#[derive(Debug)]
pub(crate) enum MessageError {
    /// Not JSON.
    Syntax(String),
    /// JSON, but not a message; the request id is there if it could be read.
    Shape(Option<RequestId>, String),
    /// A notification of an unknown method. It is ignored, since a notification has no reply that could
    /// carry an error.
    UnknownNotification,
}

pub(crate) fn parse(bytes: &[u8]) -> Result<ClientJsonRpcMessage, MessageError> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => MessageError::Syntax(error.to_string()),
        Category::Data => misshapen(bytes),
    })
}

fn misshapen(bytes: &[u8]) -> MessageError {
    let value = match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => value,
        Err(error) => return MessageError::Syntax(error.to_string()),
    };
    if value.is_array() {
        return MessageError::Shape(None, "batches are not supported".to_owned());
    }
    let is_notification = value.get("id").is_none() && value.get("method").is_some();
    if is_notification && value.get("jsonrpc").is_some_and(|version| version == "2.0") {
        return MessageError::UnknownNotification;
    }
    let identifier = value.get("id").and_then(identifier);
    MessageError::Shape(identifier, "not a JSON-RPC 2.0 message".to_owned())
}

/// Reads a request id; `None` if the value cannot be one.
pub(crate) fn identifier(value: &Value) -> Option<RequestId> {
    match value {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the id of the call that a message of the client cancels.
pub(crate) fn cancelled_call(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => {
                cancelled.params.request_id.as_ref()
            }
            // Kinds that the SDK adds later cancel nothing.
            _ => None,
        },
        JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
    }
}

/// Returns the id of the call that a message of the server replies to.
pub(crate) fn replied_call(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Returns an error that tells a client to retry with less at once.
pub(crate) fn overloaded(message: &'static str) -> ErrorData {
    ErrorData::new(OVERLOADED, message, None)
}

pub(crate) fn error_bytes(identifier: Option<RequestId>, error: ErrorData) -> Vec<u8> {
    serde_json::to_vec(&JsonRpcError::new(identifier, error))
        .expect("an error message holds nothing that JSON cannot")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_json_are_a_syntax_error() {
        for bytes in [&b"{"[..], b"nope", b"\xff\xfe", b"{\"a\":}"] {
            assert!(matches!(parse(bytes), Err(MessageError::Syntax(_))), "{bytes:?}");
        }
    }

    #[test]
    fn json_that_is_not_a_message_keeps_its_request_id() {
        let Err(MessageError::Shape(identifier, _)) = parse(br#"{"id":7,"method":"ping"}"#) else {
            panic!("accepted a message without a version");
        };
        assert_eq!(identifier, Some(RequestId::Number(7)));
    }

    #[test]
    fn a_batch_is_refused_as_a_whole() {
        let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
        assert!(matches!(parse(batch), Err(MessageError::Shape(None, _))));
    }
}
