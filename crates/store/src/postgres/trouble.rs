//! What goes wrong between here and the server, and what to do about it.

use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// Why something was not done, or not heard of.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server is away, or lost what it was doing. The same may be asked again.
    Passing(Box<dyn std::error::Error + Send + Sync>),
    /// Asking again would not help.
    Lasting(StoreError),
}

impl Trouble {
    pub(super) fn passing(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Passing(reason.into())
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(state) = error.code().cloned() else {
            // Without a state it is no answer of the server: the connection broke, or never was.
            let unreadable = error.to_string().starts_with("error deserializing");
            return if unreadable {
                Self::Lasting(StoreError::Unreadable { what: error.to_string() })
            } else {
                Self::passing(error)
            };
        };
        match state {
            SqlState::DISK_FULL => Self::Lasting(StoreError::Full(Box::new(error))),
            state if is_passing(&state) => Self::passing(error),
            _ => Self::Lasting(StoreError::Failed(Box::new(error))),
        }
    }
}

fn is_passing(state: &SqlState) -> bool {
    const STATES: [SqlState; 5] = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        // A server that became a copy of another.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // Connections, who may connect and to what, resources, and an operator who stops the server.
    const CLASSES: [&str; 6] = ["08", "28", "3D", "53", "57", "58"];
    STATES.contains(state) || CLASSES.iter().any(|class| state.code().starts_with(class))
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Lasting(error)
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Passing(source) => Self::Unavailable(source),
            Trouble::Lasting(error) => error,
        }
    }
}
