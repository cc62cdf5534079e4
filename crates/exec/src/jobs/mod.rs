//! Commands in the background: named, owned, bounded in number and time.
//!
//! A registry owns its jobs. Each is awaited by a task of its own, which reads the output into the
//! log and the captures; the task ends with the command. Dropping the registry aborts every task,
//! which kills what runs. A task that panics does the same to its own job only, which is then
//! [`JobStatus::Lost`].

mod error;
mod id;
mod job;
mod limits;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use carrel_domain::sync;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub use error::JobError;
pub use id::{InvalidJobId, JobId, Owner};
pub use job::{Job, JobStatus, Keep, Wake};
pub use limits::JobLimits;

use crate::outcome::Outcome;
use crate::running::{Running, Started};
use job::Identity;

/// A longer name is cut: it is a label, and often a whole command line.
const MAX_NAME_BYTES: usize = 200;

/// A registry of background jobs. Dropping it kills those that run.
#[derive(Debug, Default)]
pub struct Jobs {
    limits: JobLimits,
    /// Held for moments only, never while something is awaited.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    slots: BTreeMap<JobId, Taken>,
    tasks: JoinSet<()>,
}

/// What is in a place.
#[derive(Debug)]
enum Taken {
    /// Somebody is about to start a job.
    Reserved(Owner, Keep),
    Job(Job),
}

/// A place for a job that is about to start. Dropping it gives the place back.
#[derive(Debug)]
pub struct JobSlot<'jobs> {
    jobs: &'jobs Jobs,
    id: JobId,
    owner: Owner,
    keep: Keep,
}

impl Jobs {
    /// Makes an empty registry.
    pub fn new(limits: JobLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// Takes a place for a job in the background, before its command is started: what is refused has
    /// done nothing.
    pub fn reserve(&self, owner: Owner) -> Result<JobSlot<'_>, JobError> {
        self.reserve_for(owner, Keep::First)
    }

    /// Takes a place for a job that somebody waits for. Those in the background take none of these.
    pub fn reserve_awaited(&self, owner: Owner) -> Result<JobSlot<'_>, JobError> {
        self.reserve_for(owner, Keep::WhileThereIsRoom)
    }

    fn reserve_for(&self, owner: Owner, keep: Keep) -> Result<JobSlot<'_>, JobError> {
        let mut state = self.state();
        state.check(&owner, keep, &self.limits)?;
        state.last += 1;
        let id = JobId(state.last);
        state.slots.insert(id, Taken::Reserved(owner.clone(), keep));
        Ok(JobSlot { jobs: self, id, owner, keep })
    }

    /// Returns every job that runs or can still be read, in the order in which they started.
    pub fn list(&self) -> Vec<Job> {
        self.state().jobs().cloned().collect()
    }

    /// Returns the jobs of one owner.
    pub fn list_of(&self, owner: &Owner) -> Vec<Job> {
        self.state().jobs().filter(|job| job.owner() == owner).cloned().collect()
    }

    /// Returns a job, whoever owns it.
    pub fn get(&self, id: JobId) -> Result<Job, JobError> {
        match self.state().slots.get(&id) {
            Some(Taken::Job(job)) => Ok(job.clone()),
            Some(Taken::Reserved(..)) | None => Err(JobError::NotFound { id }),
        }
    }

    /// Returns a job of this owner; one of somebody else is not found, like one that never was.
    pub fn get_of(&self, owner: &Owner, id: JobId) -> Result<Job, JobError> {
        self.get(id).ok().filter(|job| job.owner() == owner).ok_or(JobError::NotFound { id })
    }

    /// Ends the jobs of one owner, all at the same time, and returns those that were running. One
    /// that starts meanwhile is not among them.
    pub async fn stop_owner(&self, owner: &Owner) -> Vec<Job> {
        stop(self.list_of(owner)).await
    }

    /// Ends every job, all at the same time, and returns those that were running. One that starts
    /// meanwhile is not among them.
    pub async fn stop_all(&self) -> Vec<Job> {
        stop(self.list()).await
    }

    /// Locks the state and forgets what is surplus by now.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = sync::lock(&self.state);
        state.forget(&self.limits);
        state
    }
}

/// Asks all to end, and only then waits for each.
async fn stop(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.retain(|job| job.status() == JobStatus::Running);
    jobs.iter().for_each(Job::stop);
    for job in &jobs {
        job.over().await;
    }
    jobs
}

impl JobSlot<'_> {
    /// Returns the id that the job will have, for example to name its log.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Makes a running command the job of this place, inside a tokio runtime.
    ///
    /// It needs a log that is open for reading as well. It ends at its own deadline or after the
    /// lifetime of a job, whichever comes first.
    pub fn start(self, name: &str, mut running: Running) -> Result<Job, JobError> {
        let lifetime = self.jobs.limits.lifetime;
        running.deadline = Some(running.deadline.map_or(lifetime, |own| own.min(lifetime)));
        let (started, cancel) = (running.started(), CancellationToken::new());
        let stop = cancel.clone();
        let waiting = async move { Some(running.wait(&stop).await) };
        self.adopt(name, started, cancel, waiting)
    }

    /// Makes a command that somebody else waits for the job of this place, inside a tokio runtime.
    ///
    /// It needs a log that is open for reading as well. `cancel` ends it; `waiting` returns how it
    /// ended, or nothing if nobody knows, and keeps it alive.
    pub fn adopt(
        self,
        name: &str,
        started: Started,
        cancel: CancellationToken,
        waiting: impl Future<Output = Option<Outcome>> + Send + 'static,
    ) -> Result<Job, JobError> {
        let name = name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned();
        let identity = Identity { id: self.id, name, owner: self.owner.clone(), keep: self.keep };
        let (job, task) = Job::new(identity, started, cancel, waiting)?;
        let mut state = self.jobs.state();
        state.slots.insert(self.id, Taken::Job(job.clone()));
        state.launch(task);
        Ok(job)
    }

    /// Returns how long a job may run.
    pub fn lifetime(&self) -> std::time::Duration {
        self.jobs.limits.lifetime
    }
}

impl Drop for JobSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.jobs.state();
        if let Some(Taken::Reserved(..)) = state.slots.get(&self.id) {
            state.slots.remove(&self.id);
        }
    }
}

impl State {
    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.slots.values().filter_map(|taken| match taken {
            Taken::Reserved(..) => None,
            Taken::Job(job) => Some(job),
        })
    }

    /// Refuses another job when enough of its kind run or are about to.
    fn check(&self, owner: &Owner, keep: Keep, limits: &JobLimits) -> Result<(), JobError> {
        let running = || {
            let all = self.slots.values().filter_map(Taken::running_for);
            all.filter(|(_, kind)| *kind == keep).map(|(owner, _)| owner)
        };
        if running().filter(|other| *other == owner).count() >= limits.running_per_owner {
            let limit = limits.running_per_owner;
            return Err(JobError::OwnerFull { owner: owner.clone(), limit });
        }
        if running().count() >= limits.running {
            return Err(JobError::Full { limit: limits.running });
        }
        Ok(())
    }

    /// Drops the jobs that need not be kept and those that ended first, beyond what is kept for each owner and altogether.
    fn forget(&mut self, limits: &JobLimits) {
        let mut ended: Vec<_> =
            self.jobs().filter_map(|job| Some((job.ended_at()?, job.clone()))).collect();
        ended.sort_by_key(|(at, job)| std::cmp::Reverse((job.keep(), *at, job.id())));
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

    /// Starts a task, and lets go of those that are over.
    fn launch(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while let Some(over) = self.tasks.try_join_next() {
            if let Err(error) = over {
                warn!(%error, "the task of a background job failed, its command was killed");
            }
        }
        self.tasks.spawn(task);
    }
}

impl Taken {
    /// Returns whose job runs here or is about to, and of which kind it is.
    fn running_for(&self) -> Option<(&Owner, Keep)> {
        match self {
            Self::Reserved(owner, keep) => Some((owner, *keep)),
            Self::Job(job) => job.ended_at().is_none().then(|| (job.owner(), job.keep())),
        }
    }
}
