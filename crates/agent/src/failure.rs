//! Why an agent did not do what it was asked.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Why an agent did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentFailure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What is wrong, without any secret.
    pub message: String,
}

impl AgentFailure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn stopped() -> Self {
        Self::new(FailureKind::Stopped, "the agent was stopped")
    }
}

/// Works until somebody stops it. What is done by then counts.
pub(crate) async fn unless_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, AgentFailure>>,
) -> Result<T, AgentFailure> {
    tokio::select! {
        biased;
        done = work => done,
        () = stop.cancelled() => Err(AgentFailure::stopped()),
    }
}

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no such program.
    NotFound,
    /// The agent could not be started in its workspace.
    Launch,
    /// A request was not answered in time.
    ResponseTimeout,
    /// A request was refused.
    ResponseError,
    /// The turn went on without a sign of life for too long.
    TurnTimeout,
    /// The process ended in the middle.
    Exited,
    /// The turn failed.
    TurnFailed,
    /// The turn was cancelled by the agent.
    TurnCancelled,
    /// The agent asks a question.
    InputRequired,
    /// The agent wants to do something that it may not.
    ApprovalRequired,
    /// The provider wants fewer requests.
    RateLimited {
        /// How long to wait, if it said so.
        retry_after: Option<Duration>,
    },
    /// Somebody stopped it.
    Stopped,
}

impl FailureKind {
    /// Returns the name that logs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "agent_not_found",
            Self::Launch => "invalid_workspace_cwd",
            Self::ResponseTimeout => "response_timeout",
            Self::ResponseError => "response_error",
            Self::TurnTimeout => "turn_timeout",
            Self::Exited => "port_exit",
            Self::TurnFailed => "turn_failed",
            Self::TurnCancelled => "turn_cancelled",
            Self::InputRequired => "turn_input_required",
            Self::ApprovalRequired => "approval_required",
            Self::RateLimited { .. } => "rate_limited",
            Self::Stopped => "stopped",
        }
    }
}
