//! Failures of agents.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// A result of this crate, with an agent's failure unless another error is named.
pub(crate) type Result<T, E = AgentFailure> = std::result::Result<T, E>;

/// The failure of a session or turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentFailure {
    /// The kind, which decides whether the conductor retries, waits or blocks.
    pub kind: FailureKind,
    /// The description, without secrets.
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

/// Awaits `work`, or fails with [`FailureKind::Stopped`] when `stop` is cancelled. Work does not begin
/// after that, and work that completes at the same time wins.
pub(crate) async fn unless_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    if stop.is_cancelled() {
        return Err(AgentFailure::stopped());
    }
    tokio::select! {
        biased;
        done = work => done,
        () = stop.cancelled() => Err(AgentFailure::stopped()),
    }
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The agent's program does not exist.
    NotFound,
    /// The process could not be started in the workspace.
    Launch,
    /// The agent did not reply to a request in time.
    ResponseTimeout,
    /// The agent replied with an error or a malformed result.
    ResponseError,
    /// The agent sent nothing for the configured time.
    TurnTimeout,
    /// The process exited during the session.
    Exited,
    /// The agent reported that the turn failed.
    TurnFailed,
    /// The agent reported that the turn was cancelled.
    TurnCancelled,
    /// The agent asks a question that only a person can answer.
    InputRequired,
    /// The agent requests an approval that the policy does not give.
    ApprovalRequired,
    /// The provider reported a rate limit.
    RateLimited {
        /// The wait, if the provider named one.
        retry_after: Option<Duration>,
    },
    /// The session was stopped from outside.
    Stopped,
}

impl FailureKind {
    pub(crate) fn err<T>(self, message: impl Into<String>) -> Result<T> {
        Err(AgentFailure::new(self, message))
    }

    /// Returns the stable name of the kind, for logs and events.
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
