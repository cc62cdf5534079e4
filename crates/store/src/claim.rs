//! Claims: the right of one worker to write about one task.
//!
//! Claiming a task increments its attempt number. [`Claim`] is the pair of task and attempt, and serves as
//! the fencing token of every write: heartbeat, append, finish and release take effect only while the task
//! is `running` with exactly this attempt. A claim holds until its lease expires and a sweep releases the
//! task; from that transaction on each write of the old attempt returns `Lost` and changes nothing, even
//! if the old worker still runs and its clock is wrong. An expired lease that no sweep has noticed yet
//! still holds.
//!
//! A worker that is cut off from the store for longer than its lease meets the fence when it comes back:
//!
//! ```text
//! worker A   claim → attempt 1          (cut off)              append(attempt 1) → Lost
//! sweep                        lease expired: release → queued
//! worker B                                claim → attempt 2    append(attempt 2) → Written
//! ```

use std::time::Duration;

use carrel_domain::{TaskId, TaskStatus, Timestamp, VolumeId};
use serde_json::Value;

use crate::event::{Event, NewEvent};
use crate::task::Task;
use crate::workspace::WorkerId;

/// A worker's request for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The worker that will own the task.
    pub worker: WorkerId,
    /// The duration of the lease, until the first heartbeat.
    pub lease: Duration,
    /// The most running tasks of one workspace, over all workers. Workspaces that have as many are skipped.
    pub per_workspace: u32,
    /// The volume of the worker. It gets tasks of workspaces on this volume; a workspace without a volume
    /// is assigned to it with the claim.
    pub volume: VolumeId,
}

/// The fencing token of one attempt at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The task.
    pub task: TaskId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// A claimed task.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The fencing token for all writes of the attempt.
    pub claim: Claim,
    /// The task, `running`.
    pub task: Task,
    /// The events of the claim, to publish.
    pub events: Vec<Event>,
}

/// The reply to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The lease is extended.
    Held {
        /// A cancellation was requested; the worker has to end the task.
        cancel_requested: bool,
    },
    /// The attempt is no longer the current one; the worker has to stop.
    Lost,
}

/// The result of appending events.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// The events are durable, with these numbers.
    Written(Vec<Event>),
    /// The attempt is no longer the current one, or other events have the same numbers. Nothing was written.
    Lost,
}

/// The end of a task, as its worker reports it.
#[derive(Clone, Debug)]
pub struct Finish {
    /// A terminal status. A task whose cancellation was requested becomes `cancelled` instead.
    pub status: TaskStatus,
    /// The result; any JSON.
    pub result: Value,
    /// The error message, unless the task completed.
    pub error: Option<String>,
    /// The duration of the attempt.
    pub took: Duration,
    /// The events before the terminal one that were not appended yet.
    pub events: Vec<NewEvent>,
    /// The number of the last event that the worker knows of. Must be the task's last.
    pub after: u64,
    /// The time of the end.
    pub now: Timestamp,
}

/// The result of finishing a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Finished {
    /// The task is terminal.
    Done {
        /// The terminal status: that of the worker, or `cancelled`.
        status: TaskStatus,
        /// The remaining events with their numbers, the terminal one last.
        events: Vec<Event>,
    },
    /// The attempt is no longer the current one. Nothing was written.
    Lost,
}

/// The release of a running task, which goes back to the queue.
#[derive(Clone, Debug)]
pub struct Release {
    /// The reason, for the event and for the error of a task that becomes dead.
    pub reason: String,
    /// The earliest time of the next attempt.
    pub due: Timestamp,
    /// The time of the release.
    pub now: Timestamp,
    /// The attempt counts towards `max_attempts`. A worker that stops in an orderly way releases tasks
    /// without counting.
    pub counts_as_lost: bool,
}

/// The result of a release.
#[derive(Clone, Debug, PartialEq)]
pub enum Released {
    /// The task is released.
    Done {
        /// `queued`; `dead` if it was the last attempt; `cancelled` if a cancellation was requested.
        status: TaskStatus,
        /// The events of the release, to publish.
        events: Vec<Event>,
    },
    /// The attempt was no longer the current one. Nothing was written.
    Lost,
}
