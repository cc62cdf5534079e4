//! How many jobs there may be, and for how long.

use std::time::Duration;

/// The bounds of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Jobs that run at the same time in the background, and as many that somebody waits for.
    pub running: usize,
    /// Jobs of one owner that run at the same time in the background, and as many that somebody waits
    /// for.
    pub running_per_owner: usize,
    /// Jobs that are over and can still be read. The one that ended first is forgotten first.
    pub ended: usize,
    /// Jobs of one owner that are over and can still be read, so that nobody's many short jobs
    /// make others forgotten.
    pub ended_per_owner: usize,
    /// How long a job may run whose command has no earlier deadline.
    pub lifetime: Duration,
}

impl JobLimits {
    /// Protects the machine's processes.
    pub const MAX_RUNNING: usize = 64;

    /// Keeps one owner from taking every place.
    pub const MAX_RUNNING_PER_OWNER: usize = 16;

    /// Protects memory and descriptors: each keeps its captured output and an open log.
    pub const MAX_ENDED: usize = 128;

    /// Keeps one owner from pushing out the others.
    pub const MAX_ENDED_PER_OWNER: usize = 16;

    /// Ends what everybody has forgotten.
    pub const MAX_LIFETIME: Duration = Duration::from_hours(24);
}

impl Default for JobLimits {
    fn default() -> Self {
        Self {
            running: Self::MAX_RUNNING,
            running_per_owner: Self::MAX_RUNNING_PER_OWNER,
            ended: Self::MAX_ENDED,
            ended_per_owner: Self::MAX_ENDED_PER_OWNER,
            lifetime: Self::MAX_LIFETIME,
        }
    }
}
