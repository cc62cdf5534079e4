//! Claims tasks and runs them.

use std::sync::Arc;
use std::time::Duration;

use carrel_github::GitHub;
use carrel_store::{ClaimRequest, WorkerId};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::backoff;
use crate::credentials::Vault;
use crate::execution::{Execution, Limits};
use crate::limits::{DRAIN, HEARTBEAT, LEASE, RUNNING_PER_WORKSPACE};
use crate::repository::DEFAULT_HOSTS;
use crate::spaces::Spaces;
use crate::tasks::Tasks;

/// How often a worker looks whether the disk has room again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Its name, which no other has.
    pub id: WorkerId,
    /// How many tasks it runs at once.
    pub concurrency: usize,
    /// How many of them may be of one workspace.
    pub per_workspace: u32,
    /// How long a claim holds without a sign of life.
    pub lease: Duration,
    /// How often it gives one.
    pub heartbeat: Duration,
    /// How long it waits for its tasks when it stops.
    pub drain: Duration,
    /// Machines that repositories may come from.
    pub hosts: Arc<[String]>,
    /// Credentials that steps name; no step gets any if there is none.
    pub credentials: Option<Vault>,
    /// Knows tokens for repositories on GitHub.
    pub github: Option<GitHub>,
}

impl WorkerOptions {
    /// Returns the usual, under a new name.
    pub fn new(concurrency: usize) -> Self {
        Self {
            id: WorkerId(format!("worker-{}", uuid::Uuid::now_v7())),
            concurrency,
            per_workspace: RUNNING_PER_WORKSPACE,
            lease: LEASE,
            heartbeat: HEARTBEAT,
            drain: DRAIN,
            hosts: DEFAULT_HOSTS.map(str::to_owned).into(),
            credentials: None,
            github: None,
        }
    }
}

/// Claims tasks and runs them.
#[derive(Debug)]
pub struct Worker {
    options: WorkerOptions,
    tasks: Tasks,
    spaces: Spaces,
    /// Places for work. What comes over HTTP takes one as well.
    slots: Arc<Semaphore>,
}

impl Worker {
    /// Prepares to work.
    pub fn new(options: WorkerOptions, tasks: Tasks, spaces: Spaces) -> Self {
        let slots = Arc::new(Semaphore::new(options.concurrency));
        Self { options, tasks, spaces, slots }
    }

    /// Returns its name.
    pub fn id(&self) -> &WorkerId {
        &self.options.id
    }

    /// Runs until `stop` is cancelled. Then what runs may end by itself for a while, and what still
    /// runs after that is given back for others.
    pub async fn run(self, stop: CancellationToken) {
        let running = TaskTracker::new();
        let give_back = CancellationToken::new();
        self.claim(&running, &stop, &give_back).await;
        running.close();
        if !running.is_empty() {
            info!(tasks = running.len(), "waiting for tasks to end");
        }
        if tokio::time::timeout(self.options.drain, running.wait()).await.is_err() {
            info!(tasks = running.len(), "giving tasks back");
            give_back.cancel();
            running.wait().await;
        }
    }

    /// Waits until the disk has room for work. Says no when the worker stops first.
    async fn has_room(&self, stop: &CancellationToken) -> bool {
        let mut said = false;
        while let Err(error) = self.spaces.check_floor() {
            if !said {
                warn!(%error, "tasks wait");
                said = true;
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
        true
    }

    async fn claim(
        &self,
        running: &TaskTracker,
        stop: &CancellationToken,
        give_back: &CancellationToken,
    ) {
        let request = ClaimRequest {
            worker: self.options.id.clone(),
            lease: self.options.lease,
            per_workspace: self.options.per_workspace,
        };
        let mut failures = 0;
        loop {
            let slot = tokio::select! {
                () = stop.cancelled() => return,
                slot = Arc::clone(&self.slots).acquire_owned() => slot,
            };
            if !self.has_room(stop).await {
                return;
            }
            let claimed = tokio::select! {
                () = stop.cancelled() => return,
                claimed = self.tasks.store.claim(request.clone()) => claimed,
            };
            match claimed {
                Ok(claimed) => {
                    failures = 0;
                    self.tasks.publish(&claimed.events);
                    let execution = Execution {
                        tasks: self.tasks.clone(),
                        spaces: self.spaces.clone(),
                        claim: claimed.claim,
                        task: claimed.task,
                        limits: Limits {
                            lease: self.options.lease,
                            heartbeat: self.options.heartbeat,
                        },
                        hosts: Arc::clone(&self.options.hosts),
                        credentials: self.options.credentials.clone(),
                        github: self.options.github.clone(),
                        give_back: give_back.clone(),
                    };
                    running.spawn(async move {
                        execution.run().await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    failures += 1;
                    warn!(%error, "could not ask for tasks, trying again");
                    tokio::time::sleep(backoff::after(failures)).await;
                }
            }
        }
    }
}
