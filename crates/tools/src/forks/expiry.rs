//! The end of forks that nothing uses any more, and that keep their bases frozen.
//!
//! A fork expires by the time of its last use, and never while something uses it: its lock is taken without waiting.
//! Its work becomes a snapshot of the base first, as that of the others when a fork is promoted. Work that was lost
//! with an earlier boot of the machine cannot be recorded, and the fork goes without.

use std::time::Duration;

use carrel_audit::{AuditEvent, Interface};
use carrel_domain::{Failure, Timestamp, WorkspaceKey};
use carrel_runner::RunError;
use carrel_snapshot::SnapshotName;
use carrel_workspace::{Fork, Record, UnsavedWork};
use serde::Serialize;
use tracing::info;

use super::Forks;
use crate::tries::forks_in_work;

/// A fork that was ended since nothing had used it for long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExpiredFork {
    /// Its key.
    pub key: WorkspaceKey,
    /// The key of its base.
    pub base: WorkspaceKey,
    /// The snapshot of the base that has its work; none if it changed nothing that a snapshot has.
    pub snapshot: Option<SnapshotName>,
    /// Its work was lost with an earlier boot of the machine.
    pub lost: bool,
}

/// The result of looking for forks that have expired.
#[derive(Debug, Default)]
pub struct Expired {
    /// Those that were ended.
    pub ended: Vec<ExpiredFork>,
    /// Those that could not be.
    pub failed: Vec<(WorkspaceKey, Failure)>,
}

impl Forks {
    /// Returns the moment before which the last use of a fork has to be for it to expire; none if forks do not.
    pub fn expiry(&self) -> Option<Timestamp> {
        let idle = Some(self.runner.policy().fork_idle).filter(|idle| !idle.is_zero())?;
        Some(before(self.workspaces.now(), idle))
    }

    /// Returns the forks that may have expired: their records are older than that, and no try that some process works
    /// on needs them.
    pub fn idle_since(&self, moment: Timestamp) -> Result<Vec<Record>, Failure> {
        let mut forks = self.workspaces.all_forks()?;
        forks.retain(|fork| fork.last_used_at < moment);
        if !forks.is_empty() {
            let candidates = forks_in_work(&self.workspaces.tries())?;
            forks.retain(|fork| !candidates.contains(&fork.identifier));
        }
        Ok(forks)
    }

    /// Ends the forks that have expired.
    pub async fn expire(&self, interface: Interface) -> Result<Expired, Failure> {
        let mut expired = Expired::default();
        let Some(moment) = self.expiry() else { return Ok(expired) };
        for fork in self.idle_since(moment)? {
            match self.end_idle(&fork, Some(moment), interface).await {
                Ok(ended) => expired.ended.extend(ended),
                Err(failure) => expired.failed.push((fork.key, failure)),
            }
        }
        Ok(expired)
    }

    /// Ends a fork whose record was not used since `moment`, or whatever its record says; none if something uses it now.
    pub async fn end_idle(
        &self,
        fork: &Record,
        moment: Option<Timestamp>,
        interface: Interface,
    ) -> Result<Option<ExpiredFork>, Failure> {
        let Some(Fork { base: base_key, .. }) = fork.fork.clone() else { return Ok(None) };
        match self.runner.end_fork(&self.workspaces.path().join(fork.key.as_str())).await {
            Err(RunError::ForkInUse { .. }) => return Ok(None),
            ended => ended?,
        }
        let Some(locked) = self.workspaces.lock_idle_fork(&fork.key, moment)? else {
            return Ok(None);
        };
        let lost = self.workspaces.is_lost(fork)?;
        let recorded = self.record_end(&locked, fork).await?;
        self.workspaces.remove_locked(locked, UnsavedWork::Discard, &self.hooks).await?;
        let (key, snapshot) = (fork.key.clone(), recorded.snapshot());
        let shown = snapshot.as_ref().map(ToString::to_string);
        info!(fork = %key, base = %base_key, snapshot = shown, lost, "Ended an idle fork");
        let (workspace, base) = (key.to_string(), base_key.to_string());
        let event = AuditEvent::ForkExpired { workspace, base, snapshot: shown };
        self.runner.events().add("", interface, event);
        Ok(Some(ExpiredFork { key, base: base_key, snapshot, lost }))
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}
