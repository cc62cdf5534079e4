//! Errors of the embedded tracker.

use carrel_domain::{Code, Coded};
use carrel_store::StoreError;
use serde_json::{Value, json};

/// The failure of an operation on the embedded tracker.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LocalError {
    #[error("there is no issue CAR-{number}")]
    Unknown { number: u64 },
    #[error("{text:?} names no issue; write an identifier such as CAR-1")]
    NotAnIdentifier { text: String },
    #[error("{what} {rule}")]
    Refused {
        what: &'static str,
        /// The violated rule, with a valid alternative.
        rule: String,
    },
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
