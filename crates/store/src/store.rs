//! The one trait.

use std::time::Duration;

use async_trait::async_trait;
use carrel_domain::{TaskId, Timestamp, VolumeId, WorkspaceId};

use crate::error::StoreError;
use crate::model::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Counts, Event, Finish, Finished,
    Heartbeat, IdempotencyKey, NewEvent, NewTask, Page, QueuedTask, Release, Released, Sealed,
    StoredReply, Submission, Task, TaskFilter, WorkerId, WorkerRecord, Workspace,
};

/// What the service remembers.
///
/// Every operation is one transaction. When it has been answered it is on the disk. Whoever did not hear
/// the answer asks again in the same words: `submit`, `append` and `finish` then answer what they
/// answered before and do nothing twice, the others say `Lost` or `Finished`. Times come from the caller,
/// so that tests can choose them.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Adds a workspace. Returns the one that was there before, if there was one.
    async fn add_workspace(&self, workspace: Workspace) -> Result<Option<Workspace>, StoreError>;

    /// Returns a workspace.
    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError>;

    /// Returns the workspaces in the order in which they were made: those after one, and so many.
    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError>;

    /// Forgets a workspace with its tasks, credentials and answers, unless a task of it waits or runs.
    /// Returns whether it is gone.
    async fn delete_workspace(&self, id: WorkspaceId) -> Result<bool, StoreError>;

    /// Returns the volume that a workspace lies on. One that lies nowhere is placed on the one of `among`
    /// that holds the fewest; there is none if the workspace is not known or `among` is empty.
    async fn assign_volume(
        &self,
        workspace: WorkspaceId,
        among: &[VolumeId],
    ) -> Result<Option<VolumeId>, StoreError>;

    /// Makes a worker known, or known to be alive.
    async fn register_worker(&self, worker: WorkerRecord) -> Result<(), StoreError>;

    /// Forgets a worker.
    async fn deregister_worker(&self, id: &WorkerId) -> Result<(), StoreError>;

    /// Returns the workers that gave a sign of life since then.
    async fn workers(&self, seen_since: Timestamp) -> Result<Vec<WorkerRecord>, StoreError>;

    /// Queues a task. The same task again is the same submission.
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError>;

    /// Gives a worker its next task, if one waits: round robin between workspaces, by urgency and then
    /// by age inside one.
    async fn try_claim(
        &self,
        request: ClaimRequest,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Does as [`Store::try_claim`] does, and waits until there is one. Giving up the wait loses no task.
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError>;

    /// Makes a claim hold until then.
    async fn heartbeat(&self, claim: Claim, until: Timestamp) -> Result<Heartbeat, StoreError>;

    /// Remembers what a worker has to tell. `after` is the number of the last event that it knows of: if
    /// these events follow it already, they are not written again.
    async fn append(
        &self,
        claim: Claim,
        after: u64,
        events: Vec<NewEvent>,
    ) -> Result<Appended, StoreError>;

    /// Ends a task. If this attempt ended it before, with as many events, the answer is the same.
    async fn finish(&self, claim: Claim, finish: Finish) -> Result<Finished, StoreError>;

    /// Takes a task back from its worker: to be begun again, or dead if that was the last attempt.
    async fn release(&self, claim: Claim, back: Release) -> Result<Released, StoreError>;

    /// Takes back every task whose claim has run out. The next attempt is due after `delay` of the
    /// number of attempts lost so far.
    async fn release_expired(
        &self,
        now: Timestamp,
        delay: fn(u32) -> Duration,
    ) -> Result<Vec<Event>, StoreError>;

    /// Takes back every task of workers that are known to be dead: all but these.
    async fn release_except(
        &self,
        alive: &[WorkerId],
        now: Timestamp,
    ) -> Result<Vec<Event>, StoreError>;

    /// Returns tasks that wait and were due before then, the most urgent and then the oldest first, and at
    /// most so many.
    async fn waiting(
        &self,
        due_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<QueuedTask>, StoreError>;

    /// Ends a task that waits, as failed, and forgets the idempotency key that it was submitted with.
    /// Returns what there is to tell; nothing if it does not wait.
    async fn fail_queued(
        &self,
        task: TaskId,
        error: &str,
        now: Timestamp,
    ) -> Result<Option<Vec<Event>>, StoreError>;

    /// Asks for a task's end.
    async fn cancel(&self, task: TaskId, now: Timestamp) -> Result<Cancellation, StoreError>;

    /// Returns a task.
    async fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError>;

    /// Lists tasks.
    async fn tasks(&self, filter: TaskFilter) -> Result<Page, StoreError>;

    /// Returns the events of a task after a number, and at most so many.
    async fn events(&self, task: TaskId, after: u64, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Remembers the answer to a request, unless one is remembered. Returns the remembered one.
    async fn save_reply(
        &self,
        repeat: IdempotencyKey,
        status: u16,
        body: String,
        now: Timestamp,
    ) -> Result<StoredReply, StoreError>;

    /// Returns the answer to a request that came before.
    async fn reply(&self, scope: &str, key: &str) -> Result<Option<StoredReply>, StoreError>;

    /// Takes a key for the one who does what is asked for with it first, for so long. Whoever has it may
    /// take it again. Returns whether it is theirs. A store that one process uses at a time gives it to
    /// whoever asks: that process sees to it that its own requests wait for each other.
    async fn acquire_key(
        &self,
        repeat: &IdempotencyKey,
        holder: &str,
        lease: Duration,
    ) -> Result<bool, StoreError>;

    /// Gives a key back.
    async fn release_key(&self, repeat: &IdempotencyKey, holder: &str) -> Result<(), StoreError>;

    /// Keeps a sealed credential, in place of one of the same name.
    async fn put_credential(
        &self,
        workspace: WorkspaceId,
        name: String,
        sealed: Sealed,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns a sealed credential.
    async fn credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Sealed>, StoreError>;

    /// Returns the names of a workspace's credentials.
    async fn credential_names(&self, workspace: WorkspaceId) -> Result<Vec<String>, StoreError>;

    /// Forgets a credential. Returns whether there was one.
    async fn delete_credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Forgets answers from before a time, and finished tasks from before another.
    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError>;

    /// Counts what there is.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Answers if the database does.
    async fn ping(&self) -> Result<(), StoreError>;
}
