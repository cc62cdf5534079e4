//! The errors of the store.

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

/// An operation of the store that failed. Refusals that a caller can act on are not errors but results of
/// the operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or does not reply in time. The operation may have taken effect;
    /// repeating it is safe.
    #[error("the database is not available")]
    Unavailable(#[source] Source),
    /// A newer version has migrated the database. This version must not write to it, since it does not know
    /// the new rules.
    #[error("the database has schema {found}, and this version of carrel knows {known}")]
    TooNew {
        /// The number of the last migration of the database.
        found: u32,
        /// The number of the last migration that this version knows.
        known: u32,
    },
    /// The database lacks migrations of this version.
    #[error(
        "the database has schema {found}, and this version of carrel needs {known}; run `carrel migrate`"
    )]
    TooOld {
        /// The schema of the database; 0 if it has none.
        found: u32,
        /// The number of the last migration of this version.
        known: u32,
    },
    /// A migration of the database has another checksum than the one of the same number here: the database was
    /// made by a build from other sources.
    #[error(
        "migration {number} of the database is not the one that this version of carrel knows; \
         use the version that made it, or another database"
    )]
    Changed {
        /// The number of the migration whose checksum differs.
        number: u32,
    },
    /// `DATABASE_URL` is invalid.
    #[error("DATABASE_URL cannot be used: {reason}")]
    Address {
        /// The rule, without the URL, which may hold a password.
        reason: String,
    },
    /// The connection cannot be encrypted or verified as `DATABASE_URL` demands.
    #[error("the connection to the database is not encrypted as DATABASE_URL asks: {reason}")]
    Unencrypted {
        /// The `sslmode`, the cause and the remedy, without the URL.
        reason: String,
    },
    /// Another conductor has acquired the tenure of the scope.
    #[error("another carrel run has taken over {scope}: {by}")]
    Superseded {
        /// The scope of the journal.
        scope: String,
        /// The description of the new holder.
        by: String,
    },
    /// A value in the database is corrupt or unknown to this version.
    #[error("the database contains an unreadable value: {what}")]
    Unreadable {
        /// A description of the value.
        what: String,
    },
    /// The disk of the database is full. Nothing was written; the operation can be repeated when there is
    /// space.
    #[error("the disk of the database is full")]
    Full(#[source] Source),
    /// The database rejected an operation for a reason without a variant of its own.
    #[error("the database rejected an operation")]
    Failed(#[source] Source),
}

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
