//! The periodic sweep of forks: the end of those that nothing uses any more.
//!
//! A fork keeps its base frozen, so one that was forgotten keeps people from working. It is in use while a request, a
//! stream, a task or a background job works in it; the times of requests are kept in memory and written to its record
//! here. When the server starts, what an earlier process left of forks is removed first.

use std::time::Duration;

use carrel_domain::{Failure, Timestamp, WorkspaceId};
use carrel_tools::Interface;
use carrel_workspace::Record;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::error::ServiceError;
use crate::hosted_workspaces::HostedWorkspaces;

/// The longest time between two sweeps, and the shortest.
const EVERY: (Duration, Duration) = (Duration::from_mins(1), Duration::from_secs(1));

/// Sweeps for one idle time, so that forks do not live much longer than that.
const SWEEPS: u32 = 4;

impl HostedWorkspaces {
    /// Returns the time without a use after which a fork is ended; none if forks are not.
    pub fn fork_idle(&self) -> Option<Duration> {
        Some(self.runner().policy().fork_idle).filter(|idle| !idle.is_zero())
    }

    /// Removes what is left of forks, and then ends idle ones until `stop` is cancelled.
    pub async fn sweep_forks(&self, stop: CancellationToken) {
        if let Err(failure) = self.remove_unfinished_forks().await {
            warn!(error = failure.message, "could not look for what is left of forks");
        }
        let Some(idle) = self.fork_idle() else { return };
        let (longest, shortest) = EVERY;
        let mut ticks = tokio::time::interval((idle / SWEEPS).clamp(shortest, longest));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            if let Err(failure) = self.expire_forks().await {
                warn!(error = failure.message, "could not look for idle forks, trying again");
            }
        }
    }

    /// Ends the forks that have expired, with their rows. One that cannot be ended does not stop the others.
    pub async fn expire_forks(&self) -> Result<(), Failure> {
        let forks = self.forks();
        let Some(moment) = forks.expiry() else { return Ok(()) };
        // A server that is killed leaves no other trace of the last use.
        for fork in self.workspaces().all_forks().map_err(ServiceError::from)? {
            let id = fork.identifier.as_str().parse::<WorkspaceId>().ok();
            if let Some(used) = id.and_then(|id| self.last_use(id)) {
                self.workspaces().note_use(&fork.key, used).map_err(ServiceError::from)?;
            }
        }
        for fork in forks.idle_since(moment)? {
            if let Err(failure) = self.expire_fork(&fork, moment).await {
                warn!(fork = %fork.key, error = failure.message, "could not end an idle fork");
            }
        }
        Ok(())
    }

    async fn expire_fork(&self, fork: &Record, moment: Timestamp) -> Result<(), Failure> {
        let Ok(id) = fork.identifier.as_str().parse::<WorkspaceId>() else {
            // The operator made it on this volume.
            self.forks().end_idle(fork, Some(moment), Interface::Rest).await?;
            return Ok(());
        };
        if self.has_live_tasks(id).await? {
            return Ok(());
        }
        let removal = self.begin_removal(id);
        let Ok(open) = self.take_idle(id, moment) else { return Ok(()) };
        // Its record is written when it is closed, and says nothing from then on.
        let moment = open.is_none().then_some(moment);
        if let Some(open) = open {
            self.end_open(&open).await;
        }
        let ended = self.forks().end_idle(fork, moment, Interface::Rest).await?;
        drop(removal);
        if ended.is_some() {
            self.store().delete_workspace(id).await.map_err(ServiceError::from)?;
        }
        Ok(())
    }
}
