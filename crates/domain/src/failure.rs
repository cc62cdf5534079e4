//! The refusal or failure of one operation, as data.

use serde_json::{Value, json};

use crate::code::Code;
use crate::error_envelope::{Coded, ErrorEnvelope, message_of};

/// The reason why an operation was refused or failed: a stable code, a sentence for the caller, facts for
/// a program. Every [`Coded`] error converts into it, which is why it is not [`Coded`] itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The stable code, which also gives the HTTP status.
    pub code: Code,
    /// The object, the rule that refused it, and what would be allowed. It never holds a password.
    pub message: String,
    /// An object with facts, such as the offending word, flag, address or path.
    pub detail: Value,
}

impl Failure {
    /// Makes a failure without facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: json!({}) }
    }

    /// Makes a failure about one argument of a call.
    pub fn argument(name: &str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArguments, message).with("argument", name)
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(facts) = &mut self.detail {
            facts.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Puts the subject in front of the message.
    #[must_use]
    pub fn during(mut self, subject: &str) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    /// Returns the error envelope that all interfaces send.
    pub fn envelope(&self) -> ErrorEnvelope {
        ErrorEnvelope::new(self.code, &self.message, self.detail.clone())
    }
}

impl<E: Coded> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { code: error.code(), message: message_of(&error), detail: error.detail() }
    }
}
