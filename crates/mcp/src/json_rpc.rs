//! The parts of JSON-RPC that both doors need.

use rmcp::{
    ErrorData,
    model::{
        ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcError, JsonRpcMessage,
        RequestId, ServerJsonRpcMessage,
    },
};
use serde_json::{Value, error::Category};

/// The code for "too much at once, try again", from the range left to implementations.
const OVERLOADED: ErrorCode = ErrorCode(-32000);

/// Why bytes are not a message.
#[derive(Debug)]
pub(crate) enum MessageError {
    /// They are not JSON.
    Syntax(String),
    /// They are JSON, but no message; the identifier is given if there is a usable one.
    Shape(Option<RequestId>, String),
    /// A notification of a kind nobody knows. It is ignored, since notifications get no answer.
    UnknownNotification,
}

/// Reads one message.
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

/// The identifier of a request, if the value can be one.
pub(crate) fn identifier(value: &Value) -> Option<RequestId> {
    match value {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The call that a message from the client cancels, if it cancels one.
pub(crate) fn cancelled_call(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => {
                cancelled.params.request_id.as_ref()
            }
            // The SDK may add kinds; none of them cancels.
            _ => None,
        },
        JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
    }
}

/// The call that a message from the server answers, if it answers one.
pub(crate) fn answered_call(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// An error that tells a client to send less at once.
pub(crate) fn overloaded(message: &'static str) -> ErrorData {
    ErrorData::new(OVERLOADED, message, None)
}

/// Writes an error message.
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
    fn json_that_is_no_message_keeps_its_identifier() {
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
