//! The interfaces through which calls arrive.

use serde::Serialize;

/// The interface of a call, as audit events and spans name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// MCP over stdin and stdout.
    Stdio,
    /// MCP over HTTP.
    Http,
    /// The command line.
    Cli,
    /// The REST API.
    Rest,
    /// A step of a task.
    Task,
    /// The coding agent that works on an issue for the conductor.
    Agent,
}

impl Interface {
    /// Returns the name in events and spans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Cli => "cli",
            Self::Rest => "rest",
            Self::Task => "task",
            Self::Agent => "agent",
        }
    }

    /// Tells whether clients get content and facts as one JSON value instead of two parts.
    pub fn wants_data(self) -> bool {
        match self {
            Self::Rest | Self::Task => true,
            Self::Stdio | Self::Http | Self::Cli | Self::Agent => false,
        }
    }
}
