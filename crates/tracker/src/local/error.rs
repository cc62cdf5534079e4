//! Why the tracker that is built in did not do as it was told.

use carrel_domain::{Code, Coded};
use carrel_store::StoreError;
use serde_json::{Value, json};

/// Why the tracker that is built in did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// No issue has this number.
    #[error("there is no issue CAR-{number}")]
    Unknown {
        /// The number.
        number: u64,
    },
    /// The text names no issue.
    #[error("{text:?} names no issue; write an identifier such as CAR-1")]
    NotAnIdentifier {
        /// The text.
        text: String,
    },
    /// Something is not as it has to be.
    #[error("{what} {rule}")]
    Refused {
        /// What is wrong.
        what: &'static str,
        /// What is wrong with it, and what would be right.
        rule: String,
    },
    /// The store did not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Coded for LocalError {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } => Code::IssueNotFound,
            Self::NotAnIdentifier { .. } | Self::Refused { .. } => Code::InvalidArguments,
            Self::Store(error) => error.code(),
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Unknown { number } => json!({ "issue": format!("CAR-{number}") }),
            Self::NotAnIdentifier { text } => json!({ "issue": text }),
            Self::Refused { what, .. } => json!({ "what": what }),
            Self::Store(error) => error.detail(),
        }
    }
}
