//! The interfaces through which calls arrive.

use serde::Serialize;

/// Which door a call came through.
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
    /// The agent of an issue.
    Agent,
}

impl Interface {
    /// Returns its name, as events have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Cli => "cli",
            Self::Rest => "rest",
            Self::Task => "task",
            Self::Agent => "agent",
        }
    }

    /// Tells whether answers go to a program that takes bulk and facts as one value.
    pub(crate) fn wants_data(self) -> bool {
        match self {
            Self::Rest | Self::Task => true,
            Self::Stdio | Self::Http | Self::Cli | Self::Agent => false,
        }
    }
}
