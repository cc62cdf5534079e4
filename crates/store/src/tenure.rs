//! Tenure: the right of one conductor to write the journal of a tracker.
//!
//! Two conductors that work off the same tracker would start two agents for one issue. Before it starts, a
//! conductor therefore acquires the tenure of its scope. Each tenure has a number greater than all before
//! it, which is the fencing token of the journal: every write checks, in its own transaction, that its
//! tenure is the latest of the scope, and fails with [`StoreError::Superseded`] otherwise. A conductor that
//! was cut off and comes back can thus write nothing, and [`Tenure::lost`] makes it end.
//!
//! Exclusion itself differs between the stores. SQLite relies on the lock of the data directory, which a
//! process holds until it ends. PostgreSQL holds an advisory lock on a connection of its own and watches
//! it.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::error::StoreError;

/// Gives a scope its next tenure, and returns the number.
pub(crate) const ACQUIRE: &str = "INSERT INTO conductor_tenures (scope, number, holder, taken_at)
    VALUES ($1, 1, $2, $3)
    ON CONFLICT (scope) DO UPDATE SET number = conductor_tenures.number + 1,
        holder = excluded.holder, taken_at = excluded.taken_at
    RETURNING number";

pub(crate) const LATEST: &str = "SELECT number, holder FROM conductor_tenures WHERE scope = $1";

/// The right to write the journal of a scope. Released when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Tenure {
    scope: Arc<str>,
    number: u64,
    /// The holder that took over. `None` where the tenure cannot be lost while the process lives.
    successor: Option<watch::Receiver<Option<String>>>,
    /// The task that holds the lock, ended with the last clone.
    _guard: Option<Arc<AbortOnDropHandle<()>>>,
}

/// The result of acquiring a tenure.
#[derive(Debug)]
pub enum TenureOutcome {
    /// The scope was free, and is held until the tenure is dropped or superseded.
    Acquired(Tenure),
    /// Another conductor holds the scope.
    Held {
        /// The description that the holder gave of itself.
        by: String,
    },
}

impl Tenure {
    /// Creates a tenure that lasts as long as the process.
    pub(crate) fn permanent(scope: &str, number: u64) -> Self {
        Self { scope: scope.into(), number, successor: None, _guard: None }
    }

    /// Creates a tenure that `guard` keeps and that may be lost to a successor.
    pub(crate) fn guarded(
        scope: &str,
        number: u64,
        successor: watch::Receiver<Option<String>>,
        guard: Arc<AbortOnDropHandle<()>>,
    ) -> Self {
        Self { scope: scope.into(), number, successor: Some(successor), _guard: Some(guard) }
    }

    /// Returns the scope: the name of a tracker and project.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Fails unless `latest`, the number and the holder of the scope's latest tenure, is this one.
    pub(crate) fn check(&self, latest: Option<(u64, String)>) -> Result<(), StoreError> {
        match latest {
            Some((number, _)) if number == self.number => Ok(()),
            Some((_, by)) => Err(StoreError::Superseded { scope: self.scope.to_string(), by }),
            None => Err(StoreError::Unreadable { what: format!("no tenure of {}", self.scope) }),
        }
    }

    /// Waits until another conductor has acquired the scope, and returns its description.
    pub async fn lost(&self) -> String {
        if let Some(mut successor) = self.successor.clone()
            && let Ok(by) = successor.wait_for(Option::is_some).await
        {
            return by.clone().unwrap_or_default();
        }
        std::future::pending().await
    }
}
