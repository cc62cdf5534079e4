//! Claims tasks and runs them.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::VolumeId;
use carrel_github::GitHub;
use carrel_store::{ClaimRequest, Claimed, StoreError, WorkerId, WorkerRecord};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::backoff;
use crate::bus::{Hint, HintReader};
use crate::credentials::Vault;
use crate::execution::{Execution, Limits};
use crate::hosted_workspaces::HostedWorkspaces;
use crate::limits::{DRAIN, HEARTBEAT, LEASE, RUNNING_PER_WORKSPACE};
use crate::presence::Presence;
use crate::repository::DEFAULT_HOSTS;
use crate::slots::{Slot, Slots};
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
    /// How others find it; none if there are no others.
    pub endpoint: Option<WorkerEndpoint>,
}

/// How other processes find a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEndpoint {
    /// Where it answers requests, if it does: `http://host:port`.
    pub address: Option<String>,
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
            endpoint: None,
        }
    }
}

/// Claims tasks and runs them.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: WorkerOptions,
    tasks: Tasks,
    spaces: HostedWorkspaces,
    slots: Slots,
    running: TaskTracker,
    give_back: CancellationToken,
}

impl Worker {
    /// Prepares to work.
    pub fn new(options: WorkerOptions, tasks: Tasks, spaces: HostedWorkspaces) -> Self {
        let slots = Slots::new(options.concurrency);
        let (running, give_back) = (TaskTracker::new(), CancellationToken::new());
        let shared = Shared { options, tasks, spaces, slots, running, give_back };
        Self { shared: Arc::new(shared) }
    }

    /// Returns its name.
    pub fn id(&self) -> &WorkerId {
        &self.shared.options.id
    }

    /// Returns its places for work. What comes over HTTP takes one as well.
    pub fn slots(&self) -> &Slots {
        &self.shared.slots
    }

    /// Runs until `stop` is cancelled. Then what runs may end by itself for a while, and what still
    /// runs after that is given back for others.
    pub async fn run(&self, stop: CancellationToken) {
        let drained = CancellationToken::new();
        let working = async {
            self.shared.claim(&stop).await;
            self.shared.drain().await;
            drained.cancel();
        };
        let present = async {
            if let Some(presence) = self.shared.presence() {
                presence.run(drained.clone()).await;
            }
        };
        tokio::join!(working, present);
    }
}

impl Shared {
    fn volume(&self) -> VolumeId {
        self.spaces.volume()
    }

    fn presence(&self) -> Option<Presence> {
        let endpoint = self.options.endpoint.clone()?;
        let worker = WorkerRecord {
            id: self.options.id.clone(),
            volume: self.volume(),
            address: endpoint.address,
            concurrency: u32::try_from(self.options.concurrency).unwrap_or(u32::MAX),
            seen_at: self.tasks.clock.now(),
        };
        Some(Presence { tasks: self.tasks.clone(), worker })
    }

    async fn drain(&self) {
        self.running.close();
        if !self.running.is_empty() {
            info!(tasks = self.running.len(), "waiting for tasks to end");
        }
        if tokio::time::timeout(self.options.drain, self.running.wait()).await.is_err() {
            info!(tasks = self.running.len(), "giving tasks back");
            self.give_back.cancel();
            self.running.wait().await;
        }
    }

    /// Waits until the disk has room for work. Says no when the worker stops first.
    async fn has_room(&self, stop: &CancellationToken) -> bool {
        let mut said = false;
        while let Err(error) = self.spaces.check_free_space() {
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

    async fn claim(self: &Arc<Self>, stop: &CancellationToken) {
        match self.tasks.bus.hints(self.volume()) {
            Some(hints) => self.claim_by_hints(hints, stop).await,
            None => self.claim_by_waiting(stop).await,
        }
    }

    /// Claims with a wish that waits in the store.
    async fn claim_by_waiting(self: &Arc<Self>, stop: &CancellationToken) {
        let mut failures = 0;
        loop {
            let slot = tokio::select! {
                () = stop.cancelled() => return,
                slot = self.slots.for_task() => slot,
            };
            let Some(slot) = slot else { return };
            if !self.has_room(stop).await {
                return;
            }
            let claimed = tokio::select! {
                () = stop.cancelled() => return,
                () = self.slots.wanted() => continue,
                claimed = self.tasks.store.claim(self.request()) => claimed,
            };
            match claimed {
                Ok(claimed) => {
                    failures = 0;
                    let shared = Arc::clone(self);
                    self.running.spawn(async move {
                        shared.execute(claimed).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    drop(slot);
                    failures += 1;
                    wait_after(&error, failures, stop).await;
                }
            }
        }
    }

    /// Claims whenever a hint says that a task may wait. While it waits for a hint it holds no place.
    async fn claim_by_hints(self: &Arc<Self>, mut hints: HintReader, stop: &CancellationToken) {
        let (mut failures, mut hint) = (0, None);
        loop {
            let slot = tokio::select! {
                () = stop.cancelled() => return,
                slot = self.slots.for_task() => slot,
            };
            let Some(slot) = slot else { return };
            if !self.has_room(stop).await {
                return;
            }
            // This is never given up half-way: a task could be ours without our knowing.
            match self.try_claim().await {
                Ok(Some(claimed)) => {
                    failures = 0;
                    self.settle(hint.take(), Some(&claimed));
                    self.running.spawn(Arc::clone(self).execute_all(claimed, slot, stop.clone()));
                    continue;
                }
                Ok(None) => {
                    failures = 0;
                    drop(slot);
                    self.settle(hint.take(), None);
                }
                Err(error) => {
                    drop(slot);
                    failures += 1;
                    wait_after(&error, failures, stop).await;
                    continue;
                }
            }
            hint = tokio::select! {
                () = stop.cancelled() => return,
                hint = hints.next() => hint,
            };
        }
    }

    /// Executes a task, and then others that wait, in the same place.
    async fn execute_all(self: Arc<Self>, first: Claimed, slot: Slot, stop: CancellationToken) {
        let mut next = Some(first);
        while let Some(claimed) = next.take() {
            self.execute(claimed).await;
            let goes_on = self.spaces.check_free_space().is_ok() && !stop.is_cancelled();
            if !goes_on || self.slots.is_wanted() {
                break;
            }
            // If the store is away, whoever waits for hints tries again.
            next = self.try_claim().await.unwrap_or_default();
            if let Some(claimed) = &next {
                self.settle(None, Some(claimed));
            }
        }
        drop(slot);
    }

    async fn try_claim(&self) -> Result<Option<Claimed>, StoreError> {
        self.tasks.store.try_claim(self.request(), self.tasks.clock.now()).await
    }

    fn request(&self) -> ClaimRequest {
        ClaimRequest {
            worker: self.options.id.clone(),
            lease: self.options.lease,
            per_workspace: self.options.per_workspace,
            volume: self.volume(),
        }
    }

    async fn execute(&self, claimed: Claimed) {
        self.tasks.publish(&claimed.events);
        let execution = Execution {
            tasks: self.tasks.clone(),
            spaces: self.spaces.clone(),
            claim: claimed.claim,
            task: claimed.task,
            limits: Limits { lease: self.options.lease, heartbeat: self.options.heartbeat },
            hosts: Arc::clone(&self.options.hosts),
            credentials: self.options.credentials.clone(),
            github: self.options.github.clone(),
            give_back: self.give_back.clone(),
        };
        execution.run().await;
    }

    /// Sees that a hint for a task of another volume reaches the workers there. Each claim uses one hint
    /// up, whichever it is.
    fn settle(self: &Arc<Self>, hint: Option<Hint>, claimed: Option<&Claimed>) {
        let (shared, claimed) = (Arc::clone(self), claimed.map(|claimed| claimed.claim.task));
        let settling = async move {
            let hint = match (hint, claimed) {
                (Some(hint), _) => hint,
                (None, Some(_)) => shared.tasks.bus.spare_hint(shared.volume()).await?,
                (None, None) => return None,
            };
            if Some(hint.task) == claimed {
                return None;
            }
            let workspace = shared.tasks.store.workspace(hint.workspace).await.ok()??;
            let other = workspace.volume.filter(|volume| *volume != shared.volume())?;
            // If this fails the sweep pushes it there.
            shared.tasks.bus.offer(&[hint.on(other)]).await.ok()
        };
        tokio::spawn(settling);
    }
}

async fn wait_after(error: &StoreError, failures: u32, stop: &CancellationToken) {
    warn!(%error, "could not ask for tasks, trying again");
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(backoff::after(failures)) => {}
    }
}
