//! The refusal of a git operation.

use carrel_domain::{Code, Coded, message_of};
use serde_json::{Value, json};

/// A git operation that was refused before git ran: the code, a sentence that says what would be
/// allowed, and facts for programs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct GitError {
    /// Mostly [`Code::GitRefused`]; [`Code::InvalidArguments`] where the arguments make no sense, and
    /// [`Code::SandboxViolation`] for a path that leaves the workspace.
    pub code: Code,
    /// One sentence for the caller. It never holds a password.
    pub message: String,
    /// An object with the offending word, flag, address or path.
    pub detail: Value,
}

impl GitError {
    /// Makes an error without facts.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: json!({}) }
    }

    /// Makes an error about an argument of the call.
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
}

impl Coded for GitError {
    fn code(&self) -> Code {
        self.code
    }

    fn detail(&self) -> Value {
        self.detail.clone()
    }
}

impl From<carrel_fsroot::Error> for GitError {
    fn from(error: carrel_fsroot::Error) -> Self {
        Self { code: error.code(), message: message_of(&error), detail: error.detail() }
    }
}
