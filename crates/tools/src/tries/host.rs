//! The forks of a try, as the interface that began it makes them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use carrel_config::Environment;
use carrel_domain::{Failure, Identifier, TrialId};
use carrel_snapshot::SnapshotName;
use carrel_trial::Spec;
use carrel_workspace::Workspaces;

use crate::forks::{OtherForks, PromotedFork};
use crate::toolbox::Toolbox;

/// Makes, opens and ends the forks of tries.
#[async_trait]
pub trait TryHost: fmt::Debug + Send + Sync {
    /// Returns the root.
    fn workspaces(&self) -> &Workspaces;

    /// Returns the operator's environment.
    fn environment(&self) -> &Environment;

    /// Returns whether the forks have rows in a server's store, so that only a server works on their tries.
    fn is_server(&self) -> bool;

    /// Fails if a try in a base asks for more network than its commands may have.
    async fn check_network(&self, base: &Identifier, spec: &Spec) -> Result<(), Failure>;

    /// Chooses names for forks. Nothing has them yet, and nothing but this try takes them.
    async fn names(
        &self,
        base: &Identifier,
        id: &TrialId,
        numbers: &[u8],
    ) -> Result<Vec<Identifier>, Failure>;

    /// Makes forks of these names, all or none.
    async fn make(
        &self,
        base: &Identifier,
        id: &TrialId,
        forks: &[(u8, Identifier)],
    ) -> Result<(), Failure>;

    /// Opens a fork for commands and tools.
    async fn open(&self, fork: &Identifier) -> Result<OpenFork, Failure>;

    /// Makes the base what a fork is.
    async fn promote(&self, fork: &Identifier) -> Result<PromotedFork, Failure>;

    /// Ends a fork, and keeps its work as a snapshot of the base or not. One that is gone is no error.
    async fn end(
        &self,
        fork: &Identifier,
        work: OtherForks,
    ) -> Result<Option<SnapshotName>, Failure>;
}

/// A fork that is open for commands and tools.
pub struct OpenFork {
    pub(super) toolbox: Arc<Toolbox>,
    /// Its processes end when it is closed, since no other caller has it open.
    pub(super) is_own: bool,
    _kept: Option<Box<dyn Any + Send + Sync>>,
}

impl OpenFork {
    /// Takes the toolbox of a fork that this caller alone has open.
    pub(super) fn own(toolbox: Arc<Toolbox>) -> Self {
        Self { toolbox, is_own: true, _kept: None }
    }

    /// Takes the toolbox of a fork that others may have open; `kept` keeps it so.
    pub fn shared(toolbox: Arc<Toolbox>, kept: impl Any + Send + Sync) -> Self {
        Self { toolbox, is_own: false, _kept: Some(Box::new(kept)) }
    }
}

impl fmt::Debug for OpenFork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFork").field("is_own", &self.is_own).finish_non_exhaustive()
    }
}
