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
use crate::records::RecordStore;
use crate::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Event, Finish, Finished, Heartbeat,
    IdempotencyKey, NewEvent, NewTask, Release, Released, Submission, WorkerId,
};

/// The durable state of the service: its records, and the queue of tasks. See the module documentation
/// for its promises.
#[async_trait]
pub trait Store: RecordStore {
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

    /// Deletes replies that are older than `replies`, and tasks that became terminal before `tasks`.
    /// Returns the number of deleted rows.
    async fn delete_before(&self, replies: Timestamp, tasks: Timestamp) -> Result<u64, StoreError>;

    /// Succeeds if the database is available: SQLite commits a transaction, PostgreSQL answers a query.
    async fn ping(&self) -> Result<(), StoreError>;
}
