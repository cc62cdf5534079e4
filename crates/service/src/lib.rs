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
mod books;
mod bus;
pub mod credentials;
mod error;
mod execution;
mod feed;
mod floor;
mod follow;
mod journal;
pub mod limits;
mod lines;
mod presence;
mod quota;
pub mod repository;
mod request;
mod slots;
mod spaces;
mod step;
mod sweep;
mod tasks;
mod worker;

pub use bus::{
    Alone, Bus, BusError, Health, Hint, Hints, Redis, RedisAddressError, RedisService, Unreadable,
};
pub use error::ServiceError;
pub use feed::Feed;
pub use floor::{Floor, InvalidFloor};
pub use follow::{Followed, follow};
pub use presence::ALIVE;
pub use quota::{MAX_QUOTA_GB, MIN_QUOTA_GB, quota_of_gibibytes};
pub use request::{InvalidRequest, Submit, TaskRequest};
pub use slots::{Slot, Slots};
pub use spaces::{NewSpace, Space, Spaces, SpacesOptions};
pub use step::{Action, OnError, Step};
pub use sweep::Sweep;
pub use tasks::{Cancelled, OnEnqueueFailure, Receipt, Tasks};
pub use worker::{Place, Worker, WorkerOptions};
