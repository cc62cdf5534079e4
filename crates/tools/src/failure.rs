//! Why a call was refused or failed.

use carrel_domain::{Code, Coded, ErrorEnvelope, message_of};
use serde_json::{Value, json};

/// Why a call was refused or failed: a stable code, a sentence for the agent, facts for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The code.
    pub code: Code,
    /// What was refused, by which rule, and what would be allowed.
    pub message: String,
    /// The facts.
    pub detail: Value,
}

impl Failure {
    /// Makes a failure without facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: json!({}) }
    }

    /// Refuses an argument.
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

    /// Says what it was about in front of the message.
    #[must_use]
    pub fn during(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Returns the one error envelope.
    pub fn envelope(&self) -> ErrorEnvelope {
        ErrorEnvelope::new(self.code, &self.message, self.detail.clone())
    }
}

impl<E: Coded> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { code: error.code(), message: message_of(&error), detail: error.detail() }
    }
}
