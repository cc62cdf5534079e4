//! Tasks in workspaces.
//!
//! [`Tasks`] takes requests, and lets whoever asked follow what becomes of them. A [`Worker`] claims
//! tasks and runs their steps through the tools. [`HostedWorkspaces`] opens the workspaces on this machine. The
//! store is the truth; the [`EventHub`] only makes news arrive sooner.
//!
//! ```text
//! request ──► Tasks ──► store ──► Worker ──► tools in a OpenWorkspace
//!                └──── EventHub ◄────────┘
//! ```
#![forbid(unsafe_code)]

mod backoff;
mod bus;
pub mod credentials;
mod error;
mod event_hub;
mod event_stream;
mod event_writer;
mod execution;
mod free_space;
mod hosted_workspaces;
pub mod limits;
mod output_lines;
mod presence;
mod quota;
pub mod repository;
mod request;
mod slots;
mod step;
mod sweep;
mod tasks;
mod usage_cache;
mod worker;

pub use bus::{
    Bus, BusError, BusHealth, Hint, HintReader, InvalidHint, LocalBus, RedisAddressError, RedisBus,
    RedisService,
};
pub use error::ServiceError;
pub use event_hub::EventHub;
pub use event_stream::{FollowItem, follow};
pub use free_space::{FreeSpaceReserve, InvalidReserve};
pub use hosted_workspaces::{
    HostedWorkspaces, HostedWorkspacesOptions, OpenWorkspace, WorkspaceSpec,
};
pub use presence::WORKER_TTL;
pub use quota::quota_from_gibibytes;
pub use request::{InvalidRequest, Submit};
pub use slots::{Slot, Slots};
pub use step::{Action, Step};
pub use sweep::Sweep;
pub use tasks::{Cancelled, OnEnqueueFailure, Receipt, Tasks};
pub use worker::{Worker, WorkerEndpoint, WorkerOptions};
