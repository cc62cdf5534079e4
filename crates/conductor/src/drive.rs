//! Doing what the loop decides.
//!
//! A [`Conductor`] is the one owner of a [`crate::State`]. It hands events to [`crate::decide`], writes down
//! what is to be remembered, and only then begins what is to be done, each thing in a task of its own:
//! questions to the tracker, runs of agents, removals. What comes of them are further events. People and
//! programs look at it and give orders through a [`Handle`].
//!
//! What holds over a restart: an entry is on the disk before its agent starts, and a run is noted as
//! ended only when nothing of it is left. A conductor that is killed takes its agents along, since each
//! command ends with its owner; the next one waits until their workspaces are free before it begins
//! anything there.

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
mod turn_fingerprint;
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
pub use handle::{CommandError, Handle, TimedNotice};
pub use report::Report;
pub use setup::scope_of;
pub use start_error::StartError;
pub use webhook_secret::SecretReceipt;

/// What a conductor is made from.
#[derive(Debug)]
pub struct Options {
    /// The workflow file, all of it checked.
    pub workflow: Workflow,
    /// Where the environment comes from when the file has changed.
    pub environment: fn() -> Environment,
    /// What remembers.
    pub journal: Arc<dyn Journal>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// What runs agents.
    pub runner: Arc<Runner>,
    /// What runs hooks.
    pub commands: LazySpawner,
    /// What makes trackers and agents of settings.
    pub factories: Factories,
    /// What the workspaces of the tracker's issues are known by.
    pub tracker_name: TrackerName,
    /// The directory for locks and transcripts. It exists.
    pub data: PathBuf,
    /// How long to go on.
    pub poll_mode: PollMode,
    /// Ends everything in an orderly way.
    pub stop: CancellationToken,
}

/// How long a conductor goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollMode {
    /// Until it is told to stop.
    Continuous,
    /// Until everything that one look at the tracker dispatched has had its turn.
    Once,
}

/// What makes trackers and agents of settings, whenever those change.
#[derive(Clone)]
pub struct Factories {
    /// Makes the tracker.
    pub tracker: Arc<TrackerFactory>,
    /// Makes the agent.
    pub agent: Arc<AgentFactory>,
    /// Makes Carrel's own tools for an agent.
    pub tools: Arc<ToolsFactory>,
}

/// Makes a tracker of settings.
pub type TrackerFactory =
    dyn Fn(&ConductorConfig) -> Result<Arc<dyn Tracker>, TrackerError> + Send + Sync;

/// Makes an agent of settings.
pub type AgentFactory = dyn Fn(&ConductorConfig) -> Arc<dyn Agent> + Send + Sync;

/// Makes Carrel's own tools for the agent of an issue; none if the settings ask for none.
pub type ToolsFactory = dyn Fn(ToolsRequest) -> BoxFuture<'static, Result<Option<Arc<dyn Tools>>, String>>
    + Send
    + Sync;

/// Where the agent of an issue works.
#[derive(Clone, Debug)]
pub struct ToolsRequest {
    /// The settings that its run began with.
    pub workflow: Arc<Workflow>,
    /// What runs commands.
    pub runner: Arc<Runner>,
    /// The one workspace that its tools are about.
    pub workspace: Arc<Workspace>,
}

impl std::fmt::Debug for Factories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Makers").finish_non_exhaustive()
    }
}
