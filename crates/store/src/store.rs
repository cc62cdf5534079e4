//! The store of the service: one trait for SQLite and PostgreSQL.
//!
//! The promises, which the suite in `testkit` tests on both:
//!
//! - **Durable.** Every operation is one transaction, and returns after it is on the disk.
//! - **Repeatable.** A caller that missed a reply repeats the call with the same values. `submit`,
//!   `append` and `finish` then return what they returned before and change nothing twice; the other
//!   writes of a claim return `Lost`, and a cancellation returns `Finished`.
//! - **Fenced.** A write with a [`Claim`] takes effect only while the task runs with that attempt. After a
//!   takeover the old worker can change nothing.
//! - **Ordered.** Events of a task are numbered without gaps, and the terminal one is the last.
//! - **Final.** A terminal status never changes.
//! - **Fair.** Claims go round robin over the workspaces with due tasks; inside a workspace by priority and
//!   then by age.
//!
//! Times come from the caller, so that tests can choose them. The exceptions are a claim that waits and a
//! key that is acquired: they use the clock of the process or of the server.

use std::time::Duration;

use async_trait::async_trait;
use carrel_domain::{TaskId, Timestamp, VolumeId, WorkspaceId};

use crate::error::StoreError;
use crate::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Counts, Event, Finish, Finished,
    Heartbeat, IdempotencyKey, NewEvent, NewTask, Page, QueuedTask, Release, Released, Sealed,
    StoredReply, Submission, Task, TaskFilter, WorkerId, WorkerRecord, Workspace,
};

/// The durable state of the service. See the module documentation for its promises.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Adds a workspace. Returns the existing one if the id is taken, and changes nothing then.
    async fn add_workspace(&self, workspace: Workspace) -> Result<Option<Workspace>, StoreError>;

    /// Returns a workspace, or `None` if it does not exist or was deleted.
    async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError>;

    /// Returns up to `limit` workspaces after `after`, ordered by id, which is the order of creation.
    async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError>;

    /// Deletes a workspace with its tasks, credentials and replies, unless a task of it is queued or
    /// running. Returns whether it was deleted.
    async fn delete_workspace(&self, id: WorkspaceId) -> Result<bool, StoreError>;

    /// Returns the volume of a workspace. One without a volume is assigned to the one of `among` with the
    /// fewest workspaces. `None` if the workspace does not exist or there is nothing to choose from.
    async fn assign_volume(
        &self,
        workspace: WorkspaceId,
        among: &[VolumeId],
    ) -> Result<Option<VolumeId>, StoreError>;

    /// Adds or renews the registration of a worker. Registration has no influence on leases.
    async fn register_worker(&self, worker: WorkerRecord) -> Result<(), StoreError>;

    /// Removes the registration of a worker, if there is one.
    async fn deregister_worker(&self, id: &WorkerId) -> Result<(), StoreError>;

    /// Returns the workers whose registration is not older than `seen_since`, ordered by name.
    async fn workers(&self, seen_since: Timestamp) -> Result<Vec<WorkerRecord>, StoreError>;

    /// Queues a task, unless its workspace does not exist, its queue is full, or its idempotency key belongs
    /// to another request. Repeatable by the id of the task.
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError>;

    /// Claims the next due task for a worker, if there is one.
    async fn try_claim(
        &self,
        request: ClaimRequest,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Claims the next due task, and waits until there is one. Cancel safe: a task that was claimed for a
    /// caller that is gone is released.
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError>;

    /// Extends the lease of a claim to `until`. Never shortens it, so that heartbeats may arrive in any
    /// order.
    async fn heartbeat(&self, claim: Claim, until: Timestamp) -> Result<Heartbeat, StoreError>;

    /// Appends events to a task. `after` is the number of its last event that the worker knows of. If
    /// equal events have the numbers after it, they are returned and nothing is written.
    async fn append(
        &self,
        claim: Claim,
        after: u64,
        events: Vec<NewEvent>,
    ) -> Result<Appended, StoreError>;

    /// Ends a task. If this attempt has ended it before, with as many events, the reply is the same.
    async fn finish(&self, claim: Claim, finish: Finish) -> Result<Finished, StoreError>;

    /// Releases a task: it is queued again, or becomes dead or cancelled.
    async fn release(&self, claim: Claim, release: Release) -> Result<Released, StoreError>;

    /// Releases every task whose lease has expired at `now`. Its next attempt is due after
    /// `delay(lost attempts)`. Returns the events of all releases.
    async fn release_expired(
        &self,
        now: Timestamp,
        delay: fn(u32) -> Duration,
    ) -> Result<Vec<Event>, StoreError>;

    /// Releases every running task whose worker is not in `alive`, without waiting for its lease.
    async fn release_except(
        &self,
        alive: &[WorkerId],
        now: Timestamp,
    ) -> Result<Vec<Event>, StoreError>;

    /// Returns up to `limit` queued tasks that were due before `due_before`, by priority and then by age.
    async fn queued_tasks(
        &self,
        due_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<QueuedTask>, StoreError>;

    /// Ends a queued task as failed and deletes its idempotency key. Returns its events; `None` if the task
    /// is not queued.
    async fn fail_queued(
        &self,
        task: TaskId,
        error: &str,
        now: Timestamp,
    ) -> Result<Option<Vec<Event>>, StoreError>;

    /// Cancels a queued task, or requests the cancellation of a running one.
    async fn cancel(&self, task: TaskId, now: Timestamp) -> Result<Cancellation, StoreError>;

    /// Returns a task with its configuration and result.
    async fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError>;

    /// Returns one page of the tasks of a workspace, newest first.
    async fn tasks(&self, filter: TaskFilter) -> Result<Page, StoreError>;

    /// Returns up to `limit` events of a task with numbers greater than `after`, in order.
    async fn events(&self, task: TaskId, after: u64, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Stores the reply for an idempotency key, unless there is one. Returns the stored one.
    async fn save_reply(
        &self,
        key: IdempotencyKey,
        status: u16,
        body: String,
        now: Timestamp,
    ) -> Result<StoredReply, StoreError>;

    /// Returns the stored reply for a key; `None` if there is none yet, or the key belongs to a submission.
    async fn reply(&self, scope: &str, key: &str) -> Result<Option<StoredReply>, StoreError>;

    /// Acquires or renews the lease of an idempotency key, so that only `holder` executes its request.
    /// Returns false if another holder has it. A store that only one process uses returns true always:
    /// that process serialises the requests of a key itself.
    async fn acquire_key(
        &self,
        key: &IdempotencyKey,
        holder: &str,
        lease: Duration,
    ) -> Result<bool, StoreError>;

    /// Releases the lease of an idempotency key, if `holder` has it.
    async fn release_key(&self, key: &IdempotencyKey, holder: &str) -> Result<(), StoreError>;

    /// Stores a sealed credential, replacing one of the same name.
    async fn put_credential(
        &self,
        workspace: WorkspaceId,
        name: String,
        sealed: Sealed,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns a sealed credential, or `None` if there is none of this name.
    async fn credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Sealed>, StoreError>;

    /// Returns the names of a workspace's credentials, sorted.
    async fn credential_names(&self, workspace: WorkspaceId) -> Result<Vec<String>, StoreError>;

    /// Deletes a credential. Returns whether there was one.
    async fn delete_credential(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Deletes replies that are older than `replies`, and tasks that became terminal before `tasks`.
    /// Returns the number of deleted rows.
    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError>;

    /// Returns the totals over all workspaces, from the counters of their rows.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Succeeds if the database is available: SQLite commits a transaction, PostgreSQL answers a query.
    async fn ping(&self) -> Result<(), StoreError>;
}
