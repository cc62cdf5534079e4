//! Errors of the server and of the connection, by what can be done about them.
//!
//! A transient error may have lost a reply: it is not known whether the transaction was committed. All
//! operations are repeatable for this reason, so that a transient error is simply retried.

use tokio_postgres::error::SqlState;

use crate::error::StoreError;

#[derive(Debug)]
pub(super) enum PgError {
    /// The server is unavailable or gave up the transaction. Worth a retry.
    Transient(Box<dyn std::error::Error + Send + Sync>),
    Permanent(StoreError),
}

impl PgError {
    pub(super) fn transient(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Transient(reason.into())
    }
}

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(state) = error.code().cloned() else {
            // Without an SQLSTATE the error is not the server's: the connection broke, or was never made.
            let unreadable = error.to_string().starts_with("error deserializing");
            return if unreadable {
                Self::Permanent(StoreError::Unreadable { what: error.to_string() })
            } else {
                Self::transient(error)
            };
        };
        match state {
            SqlState::DISK_FULL => Self::Permanent(StoreError::Full(Box::new(error))),
            state if is_transient(&state) => Self::transient(error),
            _ => Self::Permanent(StoreError::Failed(Box::new(error))),
        }
    }
}

fn is_transient(state: &SqlState) -> bool {
    const STATES: [SqlState; 5] = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        // The server became a read-only replica: another one is the primary now.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // Connection exceptions, authorization, missing database, resources, operator intervention, and
    // system errors: the operator can resolve each without a restart of this process.
    const CLASSES: [&str; 6] = ["08", "28", "3D", "53", "57", "58"];
    STATES.contains(state) || CLASSES.iter().any(|class| state.code().starts_with(class))
}

impl From<StoreError> for PgError {
    fn from(error: StoreError) -> Self {
        Self::Permanent(error)
    }
}

impl From<PgError> for StoreError {
    fn from(error: PgError) -> Self {
        match error {
            PgError::Transient(source) => Self::Unavailable(source),
            PgError::Permanent(error) => error,
        }
    }
}
