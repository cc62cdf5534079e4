//! Errors of trackers.

use std::time::Duration;

/// A result of this crate, with the error of a tracker unless another is named.
pub(crate) type Result<T, E = TrackerError> = std::result::Result<T, E>;

/// The failure of a request to a tracker. The message names the provider and a remedy where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TrackerError {
    /// The kind, which names the side that can repair it.
    pub kind: TrackerErrorKind,
    /// The description for operators and agents: provider, request, reason and a hint, without secrets.
    pub message: String,
    /// The wait that a rate limit asks for, between one second and one hour.
    pub retry_after: Option<Duration>,
}

/// The kind of a tracker error, by the side that can repair it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackerErrorKind {
    /// A setting is missing or invalid; nothing was sent. The operator has to change the workflow file.
    Config,
    /// The secret is missing, or the tracker rejects it with 401 or an authentication error.
    Secret,
    /// No connection, or no response in time. The next poll tries again.
    Request,
    /// A response with another unsuccessful status, such as 404 for a project that the secret cannot see.
    Status(u16),
    /// A successful response without the expected contents: not JSON, or another shape.
    Response,
    /// A list that does not end, or announces a page without its cursor.
    Pagination,
    /// A rate limit of the tracker, or one that is still in force here; see [`TrackerError::retry_after`].
    RateLimited,
}

impl TrackerErrorKind {
    /// Returns the stable name of the kind, for logs and tool replies.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "invalid_tracker_config",
            Self::Secret => "missing_tracker_secret",
            Self::Request => "tracker_request",
            Self::Status(_) => "tracker_status",
            Self::Response => "tracker_response",
            Self::Pagination => "tracker_pagination",
            Self::RateLimited => "tracker_rate_limited",
        }
    }
}

/// Returns a time in seconds, rounded up.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl TrackerError {
    /// Creates an error without a wait.
    pub fn new(kind: TrackerErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    pub(crate) fn rate_limited(provider: &str, retry_after: Duration) -> Self {
        let seconds = whole_seconds(retry_after);
        let message = format!("{provider} reported a rate limit for {seconds} s");
        Self { kind: TrackerErrorKind::RateLimited, message, retry_after: Some(retry_after) }
    }

    /// Creates the error of a response without `what`.
    pub(crate) fn malformed(provider: &str, what: &str) -> Self {
        Self::new(TrackerErrorKind::Response, format!("{provider} sent a response without {what}"))
    }

    /// Creates the error of a list whose next page cannot be requested.
    pub(crate) fn pagination(provider: &str, what: &str) -> Self {
        let message = format!("{provider} announced another page, but {what}");
        Self::new(TrackerErrorKind::Pagination, message)
    }

    pub(crate) fn invalid_setting(name: &str, rule: &str) -> Self {
        Self::new(TrackerErrorKind::Config, format!("tracker.provider.{name} {rule}"))
    }
}
