//! The periodic look for snapshots that are too old, in all workspaces of the volume.
//!
//! It runs beside the queue's [`Sweep`](crate::Sweep), which is about the store of tasks: snapshots are on the disk of
//! one machine, and each process sweeps its own.

use std::time::Duration;

use carrel_tools::{SweepMode, SweptSnapshots, sweep_snapshots};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::hosted_workspaces::HostedWorkspaces;

const EVERY: Duration = Duration::from_hours(1);

impl HostedWorkspaces {
    /// Deletes snapshots that the operator's policy does not keep, once an hour until `stop` is cancelled.
    pub async fn sweep_snapshots(&self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            // One that has begun goes on while the server stops; nothing waits for it.
            if stop.run_until_cancelled(self.sweep_snapshots_once()).await.is_none() {
                return;
            }
        }
    }

    /// Deletes the snapshots that the operator's policy does not keep.
    pub async fn sweep_snapshots_once(&self) {
        let (workspaces, policy) = (self.workspaces().clone(), self.runner().policy().snapshots);
        let sweep = move || sweep_snapshots(&workspaces, policy, SweepMode::Delete);
        let Ok(swept) = carrel_exec::blocking(sweep).await else { return };
        let SweptSnapshots { deleted, failed } = swept.unwrap_or_else(|failure| SweptSnapshots {
            failed: vec![failure.message],
            ..SweptSnapshots::default()
        });
        for (workspace, count) in deleted {
            info!(%workspace, count, "deleted old snapshots");
        }
        for error in failed {
            warn!(error, "could not look through snapshots, trying again in an hour");
        }
    }
}
