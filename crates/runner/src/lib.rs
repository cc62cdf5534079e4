//! Commands in a workspace.
//!
//! A [`Runner`] runs the commands of a server. A [`RunRequest`] is checked against its preset, the
//! operator's policy and the workspace; the command starts in a sandbox cell of that workspace, with
//! its limits; its disk use is watched while it writes; afterwards the trust check restores the
//! files that would run later outside the sandbox, and a [`Completed`] says how it all went.
//!
//! ```text
//! WorkspaceHandle + RunRequest ──► Runner::run ──► Completed
//!                                    │ cell_cache     one cell for each workspace and kind of access
//!                                    │ limits         rlimits, control group, sampled limits
//!                                    │ quota_watcher  kills a command that fills the disk
//!                                    └ trust          compares and restores what would run later
//! ```
//!
//! The life of a workspace, its root, record, lock and hooks, is the crate `workspace` below this
//! one. Hooks with `hooks.sandbox: true` come back up through [`SandboxedHooks`].
#![forbid(unsafe_code)]

mod artifacts;
mod cell_cache;
mod change_claim;
mod command_run;
mod completed;
mod diagnosis;
mod direct_exec;
mod environment;
mod error;
mod fork_mount;
mod home_directory;
mod hook_sandbox;
mod limits;
mod prefork;
mod private_directory;
mod quota_watcher;
mod real_path_cache;
mod request;
mod reservation;
mod runner;
mod sandbox_cell;
mod scratch_directory;
mod server_directory;
mod snapshot_directory;
mod span;
mod ssh_agent;
mod symbol_index_file;
mod trust;
mod workspace_handle;
mod write_lock;

pub use artifacts::{Artifact, ArtifactRequest, Artifacts};
pub use completed::{Completed, LimitReached, SandboxReport};
pub use diagnosis::{Diagnosis, Layer, diagnose};
pub use error::RunError;
pub use hook_sandbox::SandboxedHooks;
pub use prefork::Prefork;
pub use quota_watcher::{QuotaWatcher, UsageWalk};
pub use request::{CommandClass, CommandForm, Grants, LimitRequest, MessageSource, RunRequest};
pub use reservation::Reservation;
pub use runner::{Feature, Runner, RunnerMode, RunnerOptions, SandboxMode, state_directory};
pub use trust::{ChangeKind, MAX_CHANGES, TrustBaseline, TrustChange, TrustReport};
pub use workspace_handle::WorkspaceHandle;
pub use write_lock::{WriteGuard, WriteLock};
