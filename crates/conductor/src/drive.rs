//! The drive loop: performs what [`crate::decide`] decides.
//!
//! A [`Conductor`] is the one owner of a [`crate::State`]. It passes events to `decide`, writes the changed
//! issues to the journal, and only then performs the other effects, each in a task of its own: queries to
//! the tracker, runs, removals. Their results come back through one queue as further events, so the loop
//! itself never waits for anything but the journal. Operators and the API read its state and send
//! commands through a [`Handle`].
//!
//! Crash safety rests on two orders. An issue is journaled before its run starts, so every run that may
//! exist is recorded; and a run is journaled as ended only when none of its processes is left. A conductor
//! that is killed takes its agents with it, since every command ends with the process that started it. The
//! next conductor acquires the tenure of the tracker, which fences the writes of one that is still alive
//! elsewhere, and waits for the workspace of each interrupted run: a process holds the lock of its
//! workspace as long as it lives (`takeover`). The decisions about interrupted runs are in
//! `decide/takeover.rs`.

mod agent_run;
mod conductor;
mod conductor_directory;
mod effects;
mod event_loop;
mod handle;
mod issue_tools;
mod journal;
mod notice_log;
mod redaction;
mod report;
mod setup;
mod start_error;
mod takeover;
mod transcript;
mod webhook_secret;
mod workflow_watcher;

use std::path::PathBuf;
use std::sync::Arc;

use carrel_agent::{Agent, Tools};
use carrel_config::{ConductorConfig, Environment, Workflow};
use carrel_domain::Clock;
use carrel_exec::LazySpawner;
use carrel_runner::Runner;
use carrel_store::Journal;
use carrel_tracker::{Tracker, TrackerError};
use carrel_workspace::{TrackerName, Workspace};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub use conductor::Conductor;
pub use handle::{CommandError, Handle};
pub use report::Report;
pub use setup::scope_of;
pub use start_error::StartError;
pub use webhook_secret::SecretReceipt;

/// Everything that a conductor needs. The caller decides where time, journal and processes come from.
#[derive(Debug)]
pub struct Options {
    /// The workflow file, validated. Its path is watched for changes.
    pub workflow: Workflow,
    /// Reads the environment anew when the workflow file has changed.
    pub environment: fn() -> Environment,
    /// The write-ahead journal, in the data directory or in a shared database.
    pub journal: Arc<dyn Journal>,
    /// The clock for due times and timestamps.
    pub clock: Arc<dyn Clock>,
    /// Runs agents in their sandbox.
    pub runner: Arc<Runner>,
    /// Starts hooks.
    pub commands: LazySpawner,
    /// Creates tracker, agents and tools from settings.
    pub factories: Factories,
    /// The tracker's name in the records of its workspaces. Issues of another tracker with the same
    /// identifier get other workspaces.
    pub tracker_name: TrackerName,
    /// The data directory, which exists; lock and transcripts are below it.
    pub data: PathBuf,
    /// Continuous polling, or a single pass.
    pub poll_mode: PollMode,
    /// Stops all runs and then the conductor.
    pub stop: CancellationToken,
}

/// The number of polls of a conductor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollMode {
    /// Polls until it is stopped.
    Continuous,
    /// Polls once, dispatches each issue of that poll once and ends when all runs have ended.
    Once,
}

/// Constructors that are called at the start and after each change of the workflow file.
#[derive(Clone)]
pub struct Factories {
    /// Creates the tracker.
    pub tracker: Arc<TrackerFactory>,
    /// Creates the agent.
    pub agent: Arc<AgentFactory>,
    /// Creates Carrel's own tools for an agent.
    pub tools: Arc<ToolsFactory>,
    /// Takes snapshots of workspaces.
    pub snapshots: Arc<SnapshotFactory>,
}

/// Creates a tracker from settings.
pub type TrackerFactory =
    dyn Fn(&ConductorConfig) -> Result<Arc<dyn Tracker>, TrackerError> + Send + Sync;

/// Creates an agent from settings.
pub type AgentFactory = dyn Fn(&ConductorConfig) -> Arc<dyn Agent> + Send + Sync;

/// Creates Carrel's own tools for the agent of an issue; `None` if the workflow file enables none.
pub type ToolsFactory = dyn Fn(ToolsRequest) -> BoxFuture<'static, Result<Option<Arc<dyn Tools>>, String>>
    + Send
    + Sync;

/// The workspace of a run that needs tools.
#[derive(Clone, Debug)]
pub struct ToolsRequest {
    /// The workflow file in force when the run started.
    pub workflow: Arc<Workflow>,
    /// Runs the commands of the tools.
    pub runner: Arc<Runner>,
    /// The workspace that the tools are confined to.
    pub workspace: Arc<Workspace>,
}

/// Takes a snapshot of a workspace before a turn, and returns its number; `None` if the operator wants none.
pub type SnapshotFactory =
    dyn Fn(SnapshotRequest) -> BoxFuture<'static, Result<Option<String>, String>> + Send + Sync;

/// The turn before which a snapshot is taken.
#[derive(Clone, Debug)]
pub struct SnapshotRequest {
    /// Has the operator's policy.
    pub runner: Arc<Runner>,
    /// The workspace of the run.
    pub workspace: Arc<Workspace>,
    /// The issue's identifier.
    pub issue: String,
    /// The number of the turn in its run.
    pub turn: u64,
}

impl std::fmt::Debug for Factories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Factories").finish_non_exhaustive()
    }
}
