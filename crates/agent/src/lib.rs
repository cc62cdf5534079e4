//! Coding agents behind one trait: Codex, agents of the Agent Client Protocol, and plain commands.
//!
//! An [`Agent`] opens a [`Session`] in a workspace; a session runs one turn after the other until it is
//! closed. Progress is reported as [`Event`]s through a channel, failures as [`AgentFailure`]s. Every agent
//! runs in the same sandbox as any command (`launch`), and gets its tools either through its own protocol
//! or through an MCP relay (`tool_relay`); the tools themselves run outside the sandbox.
#![forbid(unsafe_code)]

mod acp;
mod codex;
mod command_agent;
mod credentials;
mod event;
mod failure;
mod launch;
mod line_splitter;
mod process;
mod program_lookup;
mod reporter;
mod request_decision;
mod rpc;
mod session_tools;
mod token_usage;
mod tool_relay;
mod tools;

pub use event::{Event, Tokens};
pub use failure::{AgentFailure, FailureKind};
pub use tool_relay::{relay, remove_stale_sockets};
pub use tools::{Progress, ToolCall, ToolResult, Tools};

use std::fmt;
use std::sync::Arc;

use carrel_config::{AgentKind, ConductorConfig};
use carrel_runner::Runner;
use carrel_workspace::Workspace;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use acp::Acp;
use codex::Codex;
use command_agent::CommandAgent;
use launch::Launcher;

/// Creates the agent that a workflow file configures.
pub fn from_config(config: &ConductorConfig) -> Arc<dyn Agent> {
    let command = config.agent.command.as_deref().unwrap_or_default();
    let silence_timeout = config.codex.turn_timeout;
    match config.agent.kind {
        AgentKind::Command => {
            Arc::new(CommandAgent { launcher: Launcher::new(config, command), silence_timeout })
        }
        AgentKind::Codex => Arc::new(Codex::new(config)),
        AgentKind::Acp => Arc::new(Acp::new(config)),
    }
}

/// Returns true if the configured agent gets a read-only workspace.
pub fn reads_only(config: &ConductorConfig) -> bool {
    match config.agent.kind {
        AgentKind::Codex => Codex::reads_only(config),
        AgentKind::Acp | AgentKind::Command => false,
    }
}

/// A configured coding agent.
#[async_trait::async_trait]
pub trait Agent: fmt::Debug + Send + Sync {
    /// Starts the agent in a workspace, up to the point where it takes its first turn.
    async fn open(&self, request: OpenRequest) -> Result<Box<dyn Session>, OpenError>;
}

/// A running agent in a workspace.
#[async_trait::async_trait]
pub trait Session: Send {
    /// Returns the id of the conversation, if another session can resume it.
    fn thread(&self) -> Option<String>;

    /// Runs a turn, and returns the agent's last message.
    ///
    /// After a failure the session can only be closed.
    async fn turn(&mut self, prompt: &str) -> Result<String, AgentFailure>;

    /// Ends the agent and every process that it started, in bounded time even if the agent does not
    /// cooperate.
    async fn close(self: Box<Self>) -> Teardown;
}

/// The failure to open a session.
#[derive(Debug)]
pub struct OpenError {
    /// The cause.
    pub failure: AgentFailure,
    /// The state of the agent's processes.
    pub teardown: Teardown,
}

impl From<AgentFailure> for OpenError {
    /// Creates the error of an agent that was never started.
    fn from(failure: AgentFailure) -> Self {
        Self { failure, teardown: Teardown::Complete }
    }
}

/// The state of an agent's processes after its session was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Teardown {
    /// All have ended.
    Complete,
    /// A process was killed and has not ended, for example because it is in uninterruptible sleep. It still
    /// holds the workspace lock.
    Incomplete,
}

/// The parameters of a session.
#[derive(Debug)]
pub struct OpenRequest {
    /// Starts the agent's process in its sandbox.
    pub runner: Arc<Runner>,
    /// The workspace that the agent works in.
    pub workspace: Arc<Workspace>,
    /// The title of the conversation, where the agent shows one.
    pub title: String,
    /// The conversation to resume, for agents that can.
    pub thread: Option<String>,
    /// Additional environment variables of the agent.
    pub environment: Vec<(String, String)>,
    /// Tools that the agent may call.
    pub tools: Arc<dyn Tools>,
    /// Receives the events. A closed channel is ignored; a full one slows the agent down.
    pub events: mpsc::Sender<Event>,
    /// Ends the current turn with [`FailureKind::Stopped`].
    pub stop: CancellationToken,
}
