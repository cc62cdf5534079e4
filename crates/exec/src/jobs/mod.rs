//! Background jobs: commands with a name, an owner, a lifetime and a log.
//!
//! A job is found by its id together with its owner. Ids are random, so that callers who share an owner, as
//! all clients of a server without tokens do, cannot find each other's jobs by trying numbers.
//!
//! A registry owns its jobs. Each is awaited by a task of its own, which reads the output into the log
//! and the captures and ends with the command. Dropping the registry aborts every task, which kills the
//! commands. A task that panics kills its own job only, which is then [`JobStatus::Lost`].
//!
//! A slot is reserved before the command starts, so that a request beyond the limits has no effect. The
//! limits count background jobs and awaited ones apart: a caller that waits is not refused because of
//! forgotten background jobs.

mod error;
mod id;
mod job;
mod limits;

use carrel_domain::sync;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub use error::JobError;
pub use id::{InvalidJobId, JobId, Owner};
pub use job::{Job, JobStatus, Retention, WakeReason};
pub use limits::JobLimits;

use crate::outcome::Outcome;
use crate::running_command::{RunningCommand, Started};
use job::Identity;

/// The longest name. It is a label, often a whole command line, and cut beyond this.
const MAX_NAME_BYTES: usize = 200;

/// A registry of background jobs. Dropping it kills the running ones.
#[derive(Debug, Default)]
pub struct Jobs {
    limits: JobLimits,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last reservation.
    last: u64,
    slots: HashMap<JobId, SlotState>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
enum SlotState {
    Reserved(Owner, Retention),
    Job(Job),
}

/// A slot for a job that is about to start. Dropping it frees the slot.
#[derive(Debug)]
pub struct JobSlot<'jobs> {
    jobs: &'jobs Jobs,
    id: JobId,
    number: u64,
    owner: Owner,
    keep: Retention,
}

impl Jobs {
    /// Returns an empty registry.
    pub fn new(limits: JobLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// Reserves a slot for a background job, before its command is started.
    pub fn reserve(&self, owner: Owner) -> Result<JobSlot<'_>, JobError> {
        self.reserve_for(owner, Retention::EvictLast)
    }

    /// Reserves a slot for a job that a caller waits for. Background jobs do not count against these.
    pub fn reserve_awaited(&self, owner: Owner) -> Result<JobSlot<'_>, JobError> {
        self.reserve_for(owner, Retention::EvictFirst)
    }

    fn reserve_for(&self, owner: Owner, keep: Retention) -> Result<JobSlot<'_>, JobError> {
        let mut state = self.state();
        state.check(&owner, keep, &self.limits)?;
        state.last += 1;
        let (id, number) = (JobId::generate(), state.last);
        state.slots.insert(id, SlotState::Reserved(owner.clone(), keep));
        Ok(JobSlot { jobs: self, id, number, owner, keep })
    }

    /// Returns the jobs that run or can still be read, in the order of their start.
    pub fn list(&self) -> Vec<Job> {
        let mut jobs: Vec<_> = self.state().jobs().cloned().collect();
        jobs.sort_by_key(Job::number);
        jobs
    }

    /// Returns a job of any owner.
    pub fn get(&self, id: JobId) -> Result<Job, JobError> {
        match self.state().slots.get(&id) {
            Some(SlotState::Job(job)) => Ok(job.clone()),
            Some(SlotState::Reserved(..)) | None => Err(JobError::NotFound { id }),
        }
    }

    /// Returns a job of this owner. One of another owner is not found, like one that does not exist.
    pub fn get_of(&self, owner: &Owner, id: JobId) -> Result<Job, JobError> {
        self.get(id).ok().filter(|job| job.owner() == owner).ok_or(JobError::NotFound { id })
    }

    /// Ends every running job, all at the same time, and returns them. A job that starts during the call
    /// is not among them.
    pub async fn stop_all(&self) -> Vec<Job> {
        let mut jobs = self.list();
        jobs.retain(|job| job.status() == JobStatus::Running);
        jobs.iter().for_each(Job::stop);
        for job in &jobs {
            job.ended().await;
        }
        jobs
    }

    /// Locks the state and evicts ended jobs beyond the limits.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = sync::lock(&self.state);
        state.evict(&self.limits);
        state
    }
}

impl JobSlot<'_> {
    /// Returns the id that the job will have, for example to name its log.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Makes a running command the job of this slot, inside a tokio runtime.
    ///
    /// The command needs a log that is open for reading. It ends at its own deadline or after the
    /// lifetime of a job, whichever comes first.
    pub fn start(self, name: &str, mut running: RunningCommand) -> Result<Job, JobError> {
        let lifetime = self.jobs.limits.lifetime;
        running.deadline = Some(running.deadline.map_or(lifetime, |own| own.min(lifetime)));
        let started = running.started();
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let waiting = async move { Some(running.wait(&stop).await) };
        self.adopt(name, started, cancel, waiting)
    }

    /// Makes a command that the caller awaits the job of this slot, inside a tokio runtime.
    ///
    /// The command needs a log that is open for reading. `cancel` ends it; `waiting` keeps it alive and
    /// returns its outcome, or `None` if that is unknown.
    pub fn adopt(
        self,
        name: &str,
        started: Started,
        cancel: CancellationToken,
        waiting: impl Future<Output = Option<Outcome>> + Send + 'static,
    ) -> Result<Job, JobError> {
        let name = name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned();
        let (id, number, keep) = (self.id, self.number, self.keep);
        let identity = Identity { id, number, name, owner: self.owner.clone(), keep };
        let (job, task) = Job::new(identity, started, cancel, waiting)?;
        let mut state = self.jobs.state();
        state.slots.insert(self.id, SlotState::Job(job.clone()));
        state.launch(task);
        Ok(job)
    }

    /// Returns the longest lifetime of a job.
    pub fn lifetime(&self) -> std::time::Duration {
        self.jobs.limits.lifetime
    }
}

impl Drop for JobSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.jobs.state();
        if let Some(SlotState::Reserved(..)) = state.slots.get(&self.id) {
            state.slots.remove(&self.id);
        }
    }
}

impl State {
    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.slots.values().filter_map(|taken| match taken {
            SlotState::Reserved(..) => None,
            SlotState::Job(job) => Some(job),
        })
    }

    /// Fails when as many jobs of the kind run, or are about to, as the limits allow.
    fn check(&self, owner: &Owner, keep: Retention, limits: &JobLimits) -> Result<(), JobError> {
        let running = || {
            let all = self.slots.values().filter_map(SlotState::running_for);
            all.filter(|(_, kind)| *kind == keep).map(|(owner, _)| owner)
        };
        if running().filter(|other| *other == owner).count() >= limits.running_per_owner {
            let limit = limits.running_per_owner;
            return Err(JobError::OwnerFull { limit });
        }
        if running().count() >= limits.running {
            return Err(JobError::Full { limit: limits.running });
        }
        Ok(())
    }

    /// Drops ended jobs beyond the limits for each owner and in total: awaited ones first, then those
    /// that ended first.
    fn evict(&mut self, limits: &JobLimits) {
        let mut ended: Vec<_> =
            self.jobs().filter_map(|job| Some((job.ended_at()?, job.clone()))).collect();
        ended.sort_by_key(|(at, job)| std::cmp::Reverse((job.keep(), *at, job.number())));
        let mut kept = BTreeMap::<&Owner, usize>::new();
        let mut total = 0;
        for (_, job) in &ended {
            let of_owner = kept.entry(job.owner()).or_default();
            if *of_owner < limits.ended_per_owner && total < limits.ended {
                *of_owner += 1;
                total += 1;
            } else {
                self.slots.remove(&job.id());
            }
        }
    }

    /// Spawns a task, and joins ended ones: a task that failed is logged here.
    fn launch(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while let Some(over) = self.tasks.try_join_next() {
            if let Err(error) = over {
                warn!(%error, "the task of a background job failed, its command was killed");
            }
        }
        self.tasks.spawn(task);
    }
}

impl SlotState {
    /// Returns owner and kind of a job that runs or is about to.
    fn running_for(&self) -> Option<(&Owner, Retention)> {
        match self {
            Self::Reserved(owner, keep) => Some((owner, *keep)),
            Self::Job(job) => job.ended_at().is_none().then(|| (job.owner(), job.keep())),
        }
    }
}
