//! The limits of a job registry.

use std::time::Duration;

/// The limits of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Running background jobs, and as many awaited ones.
    pub running: usize,
    /// Running background jobs of one owner, and as many awaited ones.
    pub running_per_owner: usize,
    /// Ended jobs that can still be read.
    pub ended: usize,
    /// Ended jobs of one owner that can still be read, so that many short jobs of one owner do not evict
    /// those of others.
    pub ended_per_owner: usize,
    /// The longest run of a job.
    pub lifetime: Duration,
}

impl JobLimits {
    /// Protects the machine's processes.
    pub const MAX_RUNNING: usize = 64;

    /// Keeps one owner from taking every slot.
    pub const MAX_RUNNING_PER_OWNER: usize = 16;

    /// Protects memory and descriptors: each keeps its captured output and an open log.
    pub const MAX_ENDED: usize = 128;

    /// Keeps one owner from pushing out the others.
    pub const MAX_ENDED_PER_OWNER: usize = 16;

    /// Ends forgotten jobs.
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
