//! Why the store could not do its work.

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

/// Why the store could not do its work. A refusal that a caller can act on is not here: it is one of
/// the answers of the operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database does not answer, or not now.
    #[error("the database is not available")]
    Unavailable(#[source] Source),
    /// The database was written by a newer version.
    #[error("the database has schema {found}, and this version of carrel knows {known}")]
    TooNew {
        /// The schema of the database.
        found: u32,
        /// The newest schema that is known here.
        known: u32,
    },
    /// The database lacks tables of this version.
    #[error(
        "the database has schema {found}, and this version of carrel needs {known}; run `carrel migrate`"
    )]
    TooOld {
        /// The schema of the database; 0 if it has none.
        found: u32,
        /// The schema that is needed here.
        known: u32,
    },
    /// A part of the schema is not the one that this version knows by the number.
    #[error(
        "migration {number} of the database is not the one that this version of carrel knows; \
         use the version that made it, or another database"
    )]
    Changed {
        /// The number of the part.
        number: u32,
    },
    /// The address of the database is no use.
    #[error("DATABASE_URL cannot be used: {reason}")]
    Address {
        /// Why, without the address, which may hold a password.
        reason: String,
    },
    /// The connection is not as safe as the address asks for.
    #[error("the connection to the database is not encrypted as DATABASE_URL asks: {reason}")]
    Unencrypted {
        /// The rule, what went against it and the way out, without the address.
        reason: String,
    },
    /// Somebody else has taken what was to be written about.
    #[error("another carrel run has taken over {scope}: {by}")]
    Superseded {
        /// What it is about.
        scope: String,
        /// Who has it.
        by: String,
    },
    /// Something in the database makes no sense.
    #[error("the database holds something unreadable: {what}")]
    Unreadable {
        /// What it is.
        what: String,
    },
    /// The disk has no room.
    #[error("the disk of the database is full")]
    Full(#[source] Source),
    /// An operation failed for a reason that has no name of its own.
    #[error("the database refused an operation")]
    Failed(#[source] Source),
}

/// The cause, as the database tells it.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

impl Coded for StoreError {
    fn code(&self) -> Code {
        match self {
            Self::Unavailable(_) | Self::TooOld { .. } | Self::Unencrypted { .. } => {
                Code::StoreUnavailable
            }
            Self::TooNew { .. } | Self::Changed { .. } => Code::SchemaTooNew,
            Self::Address { .. } => Code::InvalidArguments,
            Self::Superseded { .. } => Code::WorkspaceBusy,
            Self::Unreadable { .. } => Code::RecordUnreadable,
            Self::Full(_) => Code::DiskFull,
            Self::Failed(_) => Code::Internal,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::TooNew { found, known } | Self::TooOld { found, known } => {
                json!({ "found": found, "known": known })
            }
            Self::Changed { number } => json!({ "migration": number }),
            Self::Address { reason } | Self::Unencrypted { reason } => json!({ "reason": reason }),
            Self::Superseded { scope, by } => json!({ "scope": scope, "holder": by }),
            Self::Unreadable { what } => json!({ "what": what }),
            Self::Unavailable(_) | Self::Full(_) | Self::Failed(_) => json!({}),
        }
    }
}
