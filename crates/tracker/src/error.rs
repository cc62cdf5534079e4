//! Why a tracker did not answer.

use std::time::Duration;

/// Why a tracker did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TrackerError {
    /// Whose fault it is.
    pub kind: TrackerErrorKind,
    /// What is wrong, without any secret.
    pub message: String,
    /// How long it wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackerErrorKind {
    /// The settings name something that is not there.
    Config,
    /// There is no secret, or the tracker does not take it.
    Secret,
    /// No connection, or no answer in time.
    Request,
    /// An answer with a status that refuses.
    Status(u16),
    /// An answer that makes no sense.
    Response,
    /// An answer that says there is more, and not where.
    Pagination,
    /// Too many requests.
    RateLimited,
}

impl TrackerErrorKind {
    /// Returns the name that logs use.
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

/// Returns a time in whole seconds, none of which is too short.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl TrackerError {
    /// Says what is wrong, with nothing known about how long it lasts.
    pub fn new(kind: TrackerErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// Says that too much was asked for, and when to ask again.
    pub(crate) fn limited(provider: &str, retry_after: Duration) -> Self {
        let seconds = whole_seconds(retry_after);
        let message =
            format!("{provider} has had too many requests and wants none for {seconds} s");
        Self { kind: TrackerErrorKind::RateLimited, message, retry_after: Some(retry_after) }
    }

    /// Says that an answer makes no sense.
    pub(crate) fn strange(provider: &str, what: &str) -> Self {
        Self::new(TrackerErrorKind::Response, format!("{provider} answered without {what}"))
    }

    /// Says that the rest of a list cannot be found.
    pub(crate) fn lost(provider: &str, what: &str) -> Self {
        Self::new(
            TrackerErrorKind::Pagination,
            format!("{provider} says that there is more, but {what}"),
        )
    }

    /// Says that a setting cannot be used.
    pub(crate) fn setting(name: &str, rule: &str) -> Self {
        Self::new(TrackerErrorKind::Config, format!("tracker.provider.{name} {rule}"))
    }
}
