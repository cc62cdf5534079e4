//! The task service: a durable queue of tasks that run in workspaces.
//!
//! [`Tasks`] submits, cancels and follows tasks. A [`Worker`] claims them and runs their steps through
//! the tools. [`HostedWorkspaces`] opens the workspaces on this machine's volume. [`Sweep`] takes tasks
//! back from workers that died. The store is the only source of truth; the [`EventHub`] inside a process
//! and the [`Bus`] between processes only shorten the way, and losing a message costs time alone.
//!
//! ```text
//! request ──► Tasks ──► store ──► Worker ──► tools in an OpenWorkspace
//!                └─── EventHub ◄─────┘
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
mod fork_host;
mod fork_sweep;
mod free_space;
mod hosted_forks;
mod hosted_tries;
mod hosted_workspaces;
pub mod limits;
mod open_workspace;
mod output_lines;
mod quota;
mod registration;
pub mod repository;
mod request;
mod slots;
mod snapshot_sweep;
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
pub use event_stream::FollowItem;
pub use free_space::{FreeSpaceReserve, InvalidReserve};
pub use hosted_workspaces::{HostedWorkspaces, HostedWorkspacesOptions, WorkspaceSpec};
pub use open_workspace::OpenWorkspace;
pub use quota::quota_from_gibibytes;
pub use registration::WORKER_TTL;
pub use request::{InvalidRequest, TaskSubmission};
pub use slots::{Slot, Slots};
pub use step::{Action, Step};
pub use sweep::Sweep;
pub use tasks::{Cancelled, OnEnqueueFailure, Receipt, Tasks};
pub use worker::{Worker, WorkerEndpoint, WorkerOptions};
