//! The worker loop: takes a slot, claims a task, runs it, repeats.
//!
//! A worker claims in one of two ways, depending on the bus. Without hints the claim waits inside the
//! store, which hands over a task in the same transaction that queued it. With hints (Redis) the worker
//! waits for a hint, and then asks the store: a hint only says that a task of a volume may be queued,
//! and the claim may return another task, or none. After each task the same slot claims again, so that a
//! full queue needs no hints to be worked off. A hint for a task of another volume is forwarded to the
//! workers of that volume.
//!
//! A worker claims nothing while the disk is below its free-space reserve. When it stops it claims no
//! more, waits for its running tasks for the drain time, and then releases the remaining ones: they go
//! back to the queue without losing an attempt. A worker that is killed loses its leases instead, and
//! the sweep of any process releases its tasks when those expire.

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
use crate::execution::Execution;
use crate::hosted_workspaces::HostedWorkspaces;
use crate::limits::{DRAIN, HEARTBEAT, LEASE, RUNNING_PER_WORKSPACE};
use crate::registration::keep_registered;
use crate::repository::DEFAULT_HOSTS;
use crate::slots::{Slot, Slots};
use crate::tasks::Tasks;

/// The interval at which a worker that waits for disk space checks it again.
const CHECK_SPACE_EVERY: Duration = Duration::from_secs(1);

/// The settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The name of this process as a worker. Never used twice, so that a lease has one owner.
    pub id: WorkerId,
    /// The number of slots: tasks and requests that run at once.
    pub concurrency: usize,
    /// The most tasks of one workspace that run at once, over all workers.
    pub per_workspace: u32,
    /// The time after the last heartbeat when another worker may take over a task.
    pub lease: Duration,
    /// The interval of heartbeats, a fraction of `lease`.
    pub heartbeat: Duration,
    /// The time that running tasks get to end after a stop.
    pub drain: Duration,
    /// Hosts that `git_clone` may fetch from.
    pub hosts: Arc<[String]>,
    /// The credentials that steps may name. Without a vault such steps fail.
    pub credentials: Option<Vault>,
    /// The source of tokens for repositories on GitHub.
    pub github: Option<GitHub>,
    /// The endpoint to register for other processes; `None` if this process is the only one.
    pub endpoint: Option<WorkerEndpoint>,
}

/// The endpoint under which other processes reach a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEndpoint {
    /// The base URL, `http://host:port`; `None` if the worker serves no requests.
    pub address: Option<String>,
}

impl WorkerOptions {
    /// Returns the default settings with a new name.
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

/// A worker of this process.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: WorkerOptions,
    pub(crate) tasks: Tasks,
    pub(crate) workspaces: HostedWorkspaces,
    slots: Slots,
    running: TaskTracker,
    /// Cancelled when the drain time is over: running tasks go back to the queue.
    pub(crate) drained: CancellationToken,
}

impl Worker {
    /// Creates a worker, which claims nothing until [`Worker::run`].
    pub fn new(options: WorkerOptions, tasks: Tasks, workspaces: HostedWorkspaces) -> Self {
        let slots = Slots::new(options.concurrency);
        let running = TaskTracker::new();
        let drained = CancellationToken::new();
        Self { shared: Arc::new(Shared { options, tasks, workspaces, slots, running, drained }) }
    }

    /// Returns the name of the worker.
    pub fn id(&self) -> &WorkerId {
        &self.shared.options.id
    }

    /// Returns the slots of the worker, which requests over HTTP take as well.
    pub fn slots(&self) -> &Slots {
        &self.shared.slots
    }

    /// Runs until `stop` is cancelled and the running tasks have ended or were released. The worker
    /// stays registered until then, since requests of its workspaces still reach it.
    pub async fn run(&self, stop: CancellationToken) {
        let drained = CancellationToken::new();
        let working = async {
            self.shared.claim(&stop).await;
            self.shared.drain().await;
            drained.cancel();
        };
        let registered = async {
            if let Some(endpoint) = self.shared.options.endpoint.clone() {
                let worker = self.shared.record(endpoint);
                keep_registered(&self.shared.tasks, worker, drained.clone()).await;
            }
        };
        tokio::join!(working, registered);
    }
}

impl Shared {
    fn volume(&self) -> VolumeId {
        self.workspaces.volume()
    }

    fn record(&self, endpoint: WorkerEndpoint) -> WorkerRecord {
        WorkerRecord {
            id: self.options.id.clone(),
            volume: self.volume(),
            address: endpoint.address,
            concurrency: u32::try_from(self.options.concurrency).unwrap_or(u32::MAX),
            seen_at: self.tasks.clock.now(),
        }
    }

    async fn drain(&self) {
        self.running.close();
        if !self.running.is_empty() {
            info!(tasks = self.running.len(), "waiting for tasks to end");
        }
        if tokio::time::timeout(self.options.drain, self.running.wait()).await.is_err() {
            info!(tasks = self.running.len(), "releasing tasks that still run");
            self.drained.cancel();
            self.running.wait().await;
        }
    }

    /// Waits for a slot, and then until the disk is above its free-space reserve. Returns `None` if `stop`
    /// comes first.
    async fn slot(&self, stop: &CancellationToken) -> Option<Slot> {
        let slot = tokio::select! {
            () = stop.cancelled() => return None,
            slot = self.slots.for_task() => slot?,
        };
        let mut warned = false;
        while let Err(error) = self.workspaces.check_free_space() {
            if !warned {
                warn!(%error, "tasks wait for free disk space");
                warned = true;
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(CHECK_SPACE_EVERY) => {}
            }
        }
        Some(slot)
    }

    async fn claim(self: &Arc<Self>, stop: &CancellationToken) {
        match self.tasks.bus.hints(self.volume()) {
            Some(hints) => self.claim_by_hints(hints, stop).await,
            None => self.claim_by_waiting(stop).await,
        }
    }

    /// Claims with a request that waits in the store.
    async fn claim_by_waiting(self: &Arc<Self>, stop: &CancellationToken) {
        let mut failures = 0;
        while let Some(slot) = self.slot(stop).await {
            let claimed = tokio::select! {
                () = stop.cancelled() => return,
                () = self.slots.request_waits() => continue,
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

    /// Claims after each hint. No slot is held while it waits for one.
    async fn claim_by_hints(self: &Arc<Self>, mut hints: HintReader, stop: &CancellationToken) {
        let mut failures = 0;
        let mut hint = None;
        while let Some(slot) = self.slot(stop).await {
            // Never cancelled half-way: the store might hand over a task that this process then ignores.
            match self.try_claim().await {
                Ok(Some(claimed)) => {
                    failures = 0;
                    self.use_hint(hint.take(), Some(&claimed));
                    self.running.spawn(Arc::clone(self).execute_queued(
                        claimed,
                        slot,
                        stop.clone(),
                    ));
                    continue;
                }
                Ok(None) => {
                    failures = 0;
                    drop(slot);
                    self.use_hint(hint.take(), None);
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

    /// Executes a task, and then further queued ones in the same slot.
    async fn execute_queued(self: Arc<Self>, first: Claimed, slot: Slot, stop: CancellationToken) {
        let mut next = Some(first);
        while let Some(claimed) = next.take() {
            self.execute(claimed).await;
            let may_claim = self.workspaces.check_free_space().is_ok() && !stop.is_cancelled();
            if !may_claim || self.slots.has_waiting_requests() {
                break;
            }
            // While the store is unavailable the claim loop does the retrying.
            next = self.try_claim().await.unwrap_or_default();
            if let Some(claimed) = &next {
                self.use_hint(None, Some(claimed));
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

    async fn execute(self: &Arc<Self>, claimed: Claimed) {
        let Claimed { claim, task, events } = claimed;
        self.tasks.publish(&events);
        Execution { worker: Arc::clone(self), claim, task }.run().await;
    }

    /// Keeps the number of hints equal to the number of queued tasks: each claim consumes one hint, its
    /// own or any other. A consumed hint of a task on another volume is offered to that volume.
    fn use_hint(self: &Arc<Self>, hint: Option<Hint>, claimed: Option<&Claimed>) {
        let shared = Arc::clone(self);
        let claimed = claimed.map(|claimed| claimed.claim.task);
        let forwarding = async move {
            let hint = match (hint, claimed) {
                (Some(hint), _) => hint,
                (None, Some(_)) => shared.tasks.bus.take_hint(shared.volume()).await?,
                (None, None) => return None,
            };
            if Some(hint.task) == claimed {
                return None;
            }
            let workspace = shared.tasks.store.workspace(hint.workspace).await.ok()??;
            let other = workspace.volume.filter(|volume| *volume != shared.volume())?;
            // If this fails, the sweep offers the task.
            shared.tasks.bus.offer(&[hint.on(other)]).await.ok()
        };
        carrel_exec::spawn_task(forwarding);
    }
}

async fn wait_after(error: &StoreError, failures: u32, stop: &CancellationToken) {
    warn!(%error, "could not claim tasks, trying again");
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(backoff::after(failures)) => {}
    }
}
