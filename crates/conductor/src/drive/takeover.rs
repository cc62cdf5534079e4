//! Takeover of runs that an earlier conductor left, for example after `kill -9`.
//!
//! Runs without a journaled end may still have processes: the kernel kills agents with the conductor, but
//! not instantly. Each process of a run holds the lock of its workspace as long as it lives, so acquiring
//! that lock exclusively proves that none is left. Only then is the run journaled as interrupted. Issues
//! whose workspace stays locked are returned; their next run waits again before it touches the workspace.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use carrel_domain::{Clock, Identifier, message_of};
use carrel_store::{Journal, RunFilter, RunRecord, StoreError, Tenure};
use carrel_tracker::IssueId;
use carrel_workspace::{Error, Workspaces};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::journal;
use super::setup::Setup;

/// Waits for the workspaces of all runs without an end, concurrently, and journals the ends. Returns the
/// issues whose workspace is still locked.
pub(super) async fn settle_interrupted_runs(
    records: &dyn Journal,
    tenure: &Tenure,
    setup: &Arc<Setup>,
    clock: &dyn Clock,
) -> Result<BTreeSet<IssueId>, StoreError> {
    let open = RunFilter { open: true, ..RunFilter::default() };
    let mut looking = JoinSet::new();
    for run in records.runs(tenure.scope(), open).await? {
        let setup = Arc::clone(setup);
        looking.spawn(async move {
            let free = settle_run(&setup, &run).await;
            (run, free)
        });
    }
    let (mut notes, mut left) = (Vec::new(), BTreeSet::new());
    while let Some(Ok((run, free))) = looking.join_next().await {
        let RunRecord { run, issue: issue_id, identifier: issue_identifier, .. } = run;
        match free {
            Ok(()) => {
                info!(issue_id, issue_identifier, run, "An interrupted run is over");
                notes.push(journal::interrupted(run));
            }
            Err(error) => {
                let error = message_of(&error);
                warn!(issue_id, issue_identifier, run, error, "An interrupted run is not over");
                left.insert(IssueId(issue_id));
            }
        }
    }
    if !notes.is_empty() {
        records.append(tenure, notes, clock.now()).await?;
    }
    Ok(left)
}

async fn settle_run(setup: &Setup, run: &RunRecord) -> Result<(), Error> {
    let Ok(identifier) = Identifier::parse(&run.identifier) else { return Ok(()) };
    let there = run.workspace.as_deref().and_then(|path| setup.workspaces_of(Path::new(path)));
    wait_until_unlocked(there.as_ref().unwrap_or(&setup.workspaces), &identifier).await
}

/// Waits, for a bounded time, until a workspace is not locked by any process. Acquiring the exclusive
/// lock and releasing it again changes nothing in the workspace.
pub(super) async fn wait_until_unlocked(
    workspaces: &Workspaces,
    identifier: &Identifier,
) -> Result<(), Error> {
    match workspaces.lock_for_removal(identifier.clone()).await {
        Err(error @ Error::Busy { .. }) => Err(error),
        // Any other problem is reported when the workspace is used.
        Ok(_) | Err(_) => Ok(()),
    }
}
