//! Tasks in workspaces.
//!
//! [`Tasks`] takes requests, and lets whoever asked follow what becomes of them. A [`Worker`] claims
//! tasks and runs their steps through the tools. [`Spaces`] opens the workspaces on this machine. The
//! store is the truth; the [`Feed`] only makes news arrive sooner.
//!
//! ```text
//! request ──► Tasks ──► store ──► Worker ──► tools in a Space
//!                └──── Feed ◄────────┘
//! ```
#![forbid(unsafe_code)]

mod backoff;
pub mod credentials;
mod error;
mod execution;
mod feed;
mod floor;
mod follow;
mod journal;
pub mod limits;
mod lines;
mod quota;
pub mod repository;
mod request;
mod spaces;
mod step;
mod sweep;
mod tasks;
mod worker;

pub use error::ServiceError;
pub use feed::Feed;
pub use floor::{Floor, InvalidFloor};
pub use follow::{Followed, follow};
pub use quota::{MAX_QUOTA_GB, quota_of_gibibytes};
pub use request::{InvalidRequest, Submit, TaskRequest};
pub use spaces::{NewSpace, Space, Spaces, SpacesOptions};
pub use step::{Action, OnError, Step};
pub use sweep::Sweep;
pub use tasks::{Cancelled, Receipt, Tasks};
pub use worker::{Worker, WorkerOptions};
