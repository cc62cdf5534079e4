//! The error format that every interface sends, and the trait of errors that have a code.

use serde::Serialize;
use serde_json::Value;

use crate::code::Code;

/// An error with a stable code.
pub trait Coded: std::error::Error {
    /// Returns the code, which decides the HTTP status and the exit status.
    fn code(&self) -> Code;

    /// Returns the facts that a program needs to act on the error, as a JSON object. The names of its
    /// fields are stable like the code.
    fn detail(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }
}

/// The body of an [`ErrorEnvelope`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorBody {
    /// The stable name of the code.
    pub code: &'static str,
    /// The kind of error, a lower-case name.
    pub kind: &'static str,
    /// The message for people, which may change between versions.
    pub message: String,
    /// The facts for programs.
    pub detail: Value,
}

/// The error format of every interface: `{"error":{…}}`.
///
/// ```json
/// {"error":{"code":"E_NOT_FOUND","kind":"not_found","message":"no such file or directory: a.txt",
///           "detail":{"path":"a.txt"}}}
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorEnvelope {
    /// The error.
    pub error: ErrorBody,
}

/// Returns the message of an error followed by its causes, separated by colons.
pub fn message_of(error: &(impl std::error::Error + ?Sized)) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}

impl ErrorEnvelope {
    /// Wraps an error. Its causes are appended to the message, so they must be safe to show.
    pub fn of(error: &(impl Coded + ?Sized)) -> Self {
        Self::new(error.code(), message_of(error), error.detail())
    }

    /// Builds an envelope from its parts.
    pub fn new(code: Code, message: impl Into<String>, detail: Value) -> Self {
        Self {
            error: ErrorBody {
                code: code.name(),
                kind: code.kind(),
                message: message.into(),
                detail,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_appends_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("could not open x")]
        struct Outer(#[source] std::io::Error);
        impl Coded for Outer {
            fn code(&self) -> Code {
                Code::Io
            }
        }
        let envelope = ErrorEnvelope::of(&Outer(std::io::Error::other("disk on fire")));
        assert_eq!(
            serde_json::to_string(&envelope).unwrap(),
            r#"{"error":{"code":"E_IO","kind":"io","message":"could not open x: disk on fire","detail":{}}}"#
        );
    }
}
