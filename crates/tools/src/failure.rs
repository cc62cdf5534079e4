//! Refusals and failures of calls.

use carrel_domain::{Code, Coded, ErrorEnvelope, message_of};
use serde_json::{Value, json};

/// The reason why a call was refused or failed: a stable code, a sentence for the agent, facts for a
/// program. Every [`Coded`] error of the crates below converts into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The stable code, which also gives the HTTP status.
    pub code: Code,
    /// The object, the rule that refused it, and what would be allowed.
    pub message: String,
    /// An object with facts.
    pub detail: Value,
}

impl Failure {
    /// Makes a failure without facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: json!({}) }
    }

    /// Makes a failure about one argument of the call.
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
