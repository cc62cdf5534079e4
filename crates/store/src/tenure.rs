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

use std::any::Any;
use std::sync::Arc;

use tokio::sync::watch;

use crate::error::StoreError;

/// The right to write the journal of a scope. Released when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Tenure {
    scope: Arc<str>,
    number: u64,
    /// The holder that took over. `None` where the tenure cannot be lost while the process lives.
    successor: Option<watch::Receiver<Option<String>>>,
    /// The task that holds the lock, ended with the last clone.
    _guard: Option<Arc<dyn Any + Send + Sync>>,
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
        guard: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self { scope: scope.into(), number, successor: Some(successor), _guard: Some(guard) }
    }

    /// Returns the scope: the name of a tracker and project.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Fails unless `latest`, the number of the latest tenure of the scope, is that of this one.
    pub(crate) fn check(&self, latest: u64, holder: String) -> Result<(), StoreError> {
        if latest == self.number {
            return Ok(());
        }
        Err(StoreError::Superseded { scope: self.scope.to_string(), by: holder })
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
