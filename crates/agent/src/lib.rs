//! Coding agents, each spoken to in its own way and heard in the same words.
//!
//! An [`Agent`] opens a [`Session`] in a workspace; a session takes one turn after the other until it is
//! closed. What happens meanwhile is told as [`Event`]s, and what goes wrong as a [`AgentFailure`].
#![forbid(unsafe_code)]

mod acp;
mod codex;
mod command_agent;
mod credentials;
mod event;
mod failure;
mod launch;
mod line_splitter;
mod one_line;
mod process;
mod program_lookup;
mod reporter;
mod rpc;
mod session_tools;
mod throttle;
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

/// Returns the agent that a workflow file asks for.
pub fn from_config(config: &ConductorConfig) -> Arc<dyn Agent> {
    let command = config.agent.command.as_deref().unwrap_or_default();
    let silence = config.codex.turn_timeout;
    match config.agent.kind {
        AgentKind::Command => {
            Arc::new(CommandAgent { launcher: Launcher::new(config, command), silence })
        }
        AgentKind::Codex => Arc::new(Codex::new(config)),
        AgentKind::Acp => Arc::new(Acp::new(config)),
    }
}

/// Tells whether the agent that a workflow file asks for is to leave its workspace as it is.
pub fn reads_only(config: &ConductorConfig) -> bool {
    match config.agent.kind {
        AgentKind::Codex => Codex::reads_only(config),
        AgentKind::Acp | AgentKind::Command => false,
    }
}

/// A kind of coding agent, ready to work.
#[async_trait::async_trait]
pub trait Agent: fmt::Debug + Send + Sync {
    /// Starts the agent in a workspace and makes it ready for its first turn.
    async fn open(&self, opening: OpenRequest) -> Result<Box<dyn Session>, OpenError>;
}

/// An agent at work in a workspace.
#[async_trait::async_trait]
pub trait Session: Send {
    /// Returns the conversation, if it can be taken up again by another session.
    fn thread(&self) -> Option<String>;

    /// Takes a turn, and returns what the agent said at last.
    ///
    /// When the turn fails the session is of no further use but to be closed.
    async fn turn(&mut self, prompt: &str) -> Result<String, AgentFailure>;

    /// Ends the agent and everything that it started, within a bounded time, whatever the agent does.
    async fn close(self: Box<Self>) -> Teardown;
}

/// Why there is no session, and what there is of its agent.
#[derive(Debug)]
pub struct OpenError {
    /// Why.
    pub failure: AgentFailure,
    /// What is left.
    pub teardown: Teardown,
}

impl From<AgentFailure> for OpenError {
    /// Says that no agent was started.
    fn from(failure: AgentFailure) -> Self {
        Self { failure, teardown: Teardown::Complete }
    }
}

/// What there is of an agent whose session was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Teardown {
    /// Nothing.
    Complete,
    /// A process that does not end although it was killed, since the kernel does something for it.
    Incomplete,
}

/// What a session is opened with.
#[derive(Debug)]
pub struct OpenRequest {
    /// What starts processes in workspaces.
    pub runner: Arc<Runner>,
    /// Where the agent works.
    pub workspace: Arc<Workspace>,
    /// What the work is called.
    pub title: String,
    /// The conversation to take up again, where the agent can.
    pub thread: Option<String>,
    /// More variables for the agent.
    pub environment: Vec<(String, String)>,
    /// Tools that the agent is offered.
    pub tools: Arc<dyn Tools>,
    /// Where events go. Nobody need listen.
    pub events: mpsc::Sender<Event>,
    /// Ends the agent in the middle of whatever it does.
    pub stop: CancellationToken,
}
