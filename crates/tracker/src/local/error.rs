//! Errors of the embedded tracker.

use carrel_domain::{Code, Coded};
use carrel_store::StoreError;
use serde_json::{Value, json};

/// The failure of an operation on the embedded tracker.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// No issue has this number.
    #[error("there is no issue CAR-{number}")]
    Unknown {
        /// The number.
        number: u64,
    },
    /// The text is not an identifier.
    #[error("{text:?} names no issue; write an identifier such as CAR-1")]
    NotAnIdentifier {
        /// The text.
        text: String,
    },
    /// A value is invalid.
    #[error("{what} {rule}")]
    Refused {
        /// The invalid value.
        what: &'static str,
        /// The violated rule, with a valid alternative.
        rule: String,
    },
    /// The store failed.
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
