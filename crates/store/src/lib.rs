//! The durable state of the service and of the conductor.
//!
//! [`Store`] is the trait of the service: workspaces, tasks and their events, replies to repeated
//! requests, sealed credentials. Its plain records are the supertrait [`RecordStore`]. [`Journal`] is the conductor's write-ahead journal and [`IssueStore`] the
//! embedded tracker. [`Sqlite`] implements all three in one file and needs nothing installed;
//! [`Postgres`] serves any number of processes. Both pass the same suites (`testkit`).
//!
//! Two rules hold everywhere. A status changes by compare and set, in one transaction with the event that
//! reports it. An operation returns only after its transaction is on the disk, so that an
//! acknowledged write survives a power cut.
#![forbid(unsafe_code)]

mod claim;
mod database;
mod error;
mod event;
mod idempotency;
mod issues;
mod journal;
mod lifecycle;
mod migration;
mod postgres;
mod records;
mod sqlite;
mod store;
mod task;
mod tenure;
pub mod tls;
mod value;
mod workspace;

pub use claim::{
    Appended, Claim, ClaimRequest, Claimed, Finish, Finished, Heartbeat, Release, Released,
};
pub use error::StoreError;
pub use event::{Event, EventKind, NewEvent};
pub use idempotency::{IdempotencyKey, StoredReply};
pub use issues::{
    Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue, StoredIssue,
};
pub use journal::{Journal, JournalRecord, NewRun, RunFilter, RunRecord};
pub use migration::Migration;
pub use postgres::{Postgres, PostgresOptions};
pub use records::RecordStore;
pub use sqlite::{Sqlite, SqliteOptions};
pub use store::Store;
pub use task::{Cancellation, Counts, NewTask, Page, QueuedTask, Submission, Task, TaskFilter};
pub use tenure::{Tenure, TenureOutcome};
pub use workspace::{Sealed, WorkerId, WorkerRecord, Workspace};
