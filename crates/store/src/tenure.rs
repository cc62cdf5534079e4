//! Who may write about the issues of a tracker.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::watch;

use crate::error::StoreError;

/// The right to write about a scope, until somebody else takes it. It is given back when its last copy is
/// dropped.
#[derive(Clone, Debug)]
pub struct Tenure {
    scope: Arc<str>,
    /// Each tenure of a scope has a greater one than all before it.
    number: u64,
    /// Who took it. Nobody ever tells where only a lock of the system decides.
    taken: Option<watch::Receiver<Option<String>>>,
    /// What keeps it, until it is dropped.
    _keeper: Option<Arc<dyn Any + Send + Sync>>,
}

/// What came of asking for a tenure.
#[derive(Debug)]
pub enum TenureOutcome {
    /// It was free.
    Acquired(Tenure),
    /// Somebody else has it.
    Held {
        /// Who, in the words of whoever that is.
        by: String,
    },
}

impl Tenure {
    /// A tenure that nobody can lose without being killed.
    pub(crate) fn lasting(scope: &str, number: u64) -> Self {
        Self { scope: scope.into(), number, taken: None, _keeper: None }
    }

    /// A tenure that a keeper watches over.
    pub(crate) fn kept(
        scope: &str,
        number: u64,
        taken: watch::Receiver<Option<String>>,
        keeper: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self { scope: scope.into(), number, taken: Some(taken), _keeper: Some(keeper) }
    }

    /// Returns what it is about.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Refuses a write unless the last tenure of the scope is this one.
    pub(crate) fn check(&self, last: u64, holder: String) -> Result<(), StoreError> {
        if last == self.number {
            return Ok(());
        }
        Err(StoreError::Superseded { scope: self.scope.to_string(), by: holder })
    }

    /// Waits until somebody else has taken it, and tells who.
    pub async fn lost(&self) -> String {
        if let Some(mut taken) = self.taken.clone()
            && let Ok(by) = taken.wait_for(Option::is_some).await
        {
            return by.clone().unwrap_or_default();
        }
        std::future::pending().await
    }
}
