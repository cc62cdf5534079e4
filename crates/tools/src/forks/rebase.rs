//! Forks whose base was changed past Carrel: what changed is taken over where the fork has not changed the same.

use std::path::PathBuf;
use std::sync::Arc;

use carrel_domain::{Code, Failure, Identifier};
use carrel_workspace::{BaseDrift, Record, Workspace};

use super::{Forks, Pair, first_of};
use crate::blocking::blocking;

/// Changes of a base that a fork of it has taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptedChanges {
    /// The identifier of the base.
    pub base: Identifier,
    /// The entries of the base that changed. A directory is one if its list of entries changed.
    pub paths: Vec<PathBuf>,
}

impl Forks {
    /// Lets a fork take over what was changed in its base past Carrel, so that it can be promoted. Fails if the fork has
    /// changed the same entries. The caller has closed the fork in this process.
    pub async fn rebase(&self, fork: &Identifier) -> Result<AdoptedChanges, Failure> {
        let Pair { fork, base } = self.pair(fork).await?;
        self.refuse_lost(&fork)?;
        // The tree is mounted again at the next use, and shows the base as it is then.
        let locked = self.lock(&fork).await?;
        let (workspaces, same) = (self.workspaces.clone(), Arc::clone(&base));
        let drift = blocking(move || Ok(workspaces.rebase(&locked, &same)?)).await?;
        if !drift.conflicts.is_empty() {
            return Err(in_conflict(&fork, &base, &drift.conflicts));
        }
        let base = base.record().identifier.clone();
        Ok(AdoptedChanges { base, paths: drift.paths })
    }

    /// Returns what was changed in the base of a fork past Carrel.
    pub(super) async fn drift_of(
        &self,
        fork: &Record,
        base: &Arc<Workspace>,
    ) -> Result<BaseDrift, Failure> {
        let (workspaces, fork, base) = (self.workspaces.clone(), fork.clone(), Arc::clone(base));
        blocking(move || Ok(workspaces.base_drift(&fork, &base)?)).await
    }
}

fn in_conflict(fork: &Record, base: &Workspace, paths: &[PathBuf]) -> Failure {
    let (fork, base) = (&fork.key, &base.record().key);
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    let message = format!(
        "the fork {fork} and its base {base}, not through Carrel, have both changed {}; make them in one of the two as they \
         were, and nothing else is in the way",
        first_of(&shown)
    );
    Failure::new(Code::ForkConflict, message).with("base", base.as_str()).with("paths", shown)
}
