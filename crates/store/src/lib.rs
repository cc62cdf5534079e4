//! What the service remembers: workspaces, tasks and their events, replies to repeated requests,
//! sealed credentials; and what the conductor remembers, with the tracker that is built in.
//!
//! [`Store`] is the trait of the service, [`Journal`] and [`IssueStore`] are those of the conductor. [`Sqlite`] keeps everything in one file and needs nothing installed;
//! [`Postgres`] serves any number of processes. A state changes by compare and set, together with the event that tells of it, in one transaction;
//! what has been answered has been written to the disk.
#![forbid(unsafe_code)]

mod error;
mod facts;
mod issues;
mod journal;
mod model;
mod postgres;
mod sqlite;
mod store;
mod tenure;
pub mod tls;

pub use error::StoreError;
pub use issues::{
    Comment, IssueChange, IssueFilter, IssueOutcome, IssueStore, NewComment, NewIssue, StoredIssue,
};
pub use journal::{Journal, JournalRecord, NewRun, RunFilter, RunRecord};
pub use model::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Counts, Event, EventKind, Finish,
    Finished, Heartbeat, IdempotencyKey, Migration, NewEvent, NewTask, Page, QueuedTask, Release,
    Released, Sealed, StoredReply, Submission, Task, TaskFilter, WorkerId, WorkerRecord, Workspace,
};
pub use postgres::{Postgres, PostgresOptions};
pub use sqlite::{Sqlite, SqliteOptions};
pub use store::Store;
pub use tenure::{Tenure, TenureOutcome};
