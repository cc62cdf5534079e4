//! Workspaces: one enclosed directory for each piece of work.
//!
//! [`Workspaces`] owns a root. Each workspace is a real directory directly below
//! it, with a record in the server's own `.carrel` directory beside them. Making
//! and removing hold an exclusive lock on the workspace, using it a shared one, so
//! several processes can work on one root.
//!
//! Every step that must survive a crash is written down before it is done:
//! a directory whose record does not say `ready` is never used, and one that is
//! being removed is removed at the next chance.
#![forbid(unsafe_code)]

mod blocking;
mod commands;
mod create;
mod error;
mod gc;
mod git;
mod hooks;
mod inspect;
mod json;
mod launch;
mod list;
mod live;
mod lock;
mod log;
mod manager;
mod quota;
mod record;
mod remove;
mod reserve;
mod root;
mod run;
mod trash;
mod trust;
mod usage;
mod verify;
mod volume;
mod watch;

pub use commands::Commands;
pub use create::{Create, Created};
pub use error::{CwdReason, Error, Place, PlaceRule};
pub use gc::{Gc, GcAction, GcReport};
pub use git::GitState;
pub use hooks::{Hook, HookEnd, HookError, HookRun, HookSettings, Hooks};
pub use launch::Workspace;
pub use list::{Listing, ListingState};
pub use live::Live;
pub use manager::{Options, Workspaces};
pub use quota::{Amount, Exceeded, Quota};
pub use record::{Record, State, TrackerName};
pub use remove::{Doomed, Remove, Removed, Target};
pub use reserve::Reservation;
pub use run::{
    Artifact, ArtifactRequest, Artifacts, Boundary, CommandForm, Completed, Desk, Diagnosis, Early,
    Feature, Grants, Layer, LimitReached, LimitRequest, Purpose, RunError, RunRequest, Runner,
    RunnerOptions, Walls, WriteLock, Writing, diagnose, state_directory,
};
pub use trash::Sweep;
pub use trust::{ChangeKind, MAX_CHANGES, OnChange, Settled, Trust, TrustChange};
pub use usage::{Freshness, Measured};
pub use verify::{Finding, Severity, verify};
pub use watch::{Overrun, Walk, Watcher};
