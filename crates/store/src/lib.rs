//! What the service remembers: workspaces, tasks and their events, replies to repeated requests,
//! sealed credentials.
//!
//! [`Store`] is the one trait. [`Sqlite`] keeps everything in one file and needs nothing installed;
//! [`Postgres`] serves any number of processes. A state changes by compare and set, together with the event that tells of it, in one transaction;
//! what has been answered has been written to the disk.
#![forbid(unsafe_code)]

mod error;
mod facts;
mod model;
mod postgres;
mod sqlite;
mod store;

pub use error::StoreError;
pub use model::{
    Appended, Cancellation, Claim, ClaimRequest, Claimed, Counts, Event, EventKind, Finish,
    Finished, HandBack, HandedBack, Heartbeat, Migration, NewEvent, NewTask, Page, Repeat, Sealed,
    StoredReply, Submission, Task, TaskFilter, Waiting, WorkerId, WorkerRecord, Workspace,
};
pub use postgres::{Postgres, PostgresOptions};
pub use sqlite::{Sqlite, SqliteOptions};
pub use store::Store;
