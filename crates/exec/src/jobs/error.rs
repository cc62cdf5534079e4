//! Errors of the job registry.

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use super::id::{InvalidJobId, JobId, Owner};

/// The reason why a job could not be started or found.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job does not exist, was evicted after its end, or belongs to another owner.
    #[error("no such job: {id}")]
    NotFound {
        /// The requested job.
        id: JobId,
    },
    /// The text names no job.
    #[error(transparent)]
    InvalidId(#[from] InvalidJobId),
    /// The owner has as many running jobs as one owner may have.
    #[error("{owner} already has {limit} running jobs; one has to end before another starts")]
    OwnerFull {
        /// The owner.
        owner: Owner,
        /// The limit.
        limit: usize,
    },
    /// As many jobs run as the registry allows.
    #[error("already {limit} jobs are running; one has to end before another starts")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// The command has no log, so its output could not be read.
    #[error("a background job needs a log")]
    NoLog,
}

impl Coded for JobError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } | Self::InvalidId(_) => Code::JobNotFound,
            Self::OwnerFull { .. } | Self::Full { .. } => Code::TooManyJobs,
            Self::NoLog => Code::Internal,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::NotFound { id } => json!({ "job": id }),
            Self::InvalidId(InvalidJobId { text }) => json!({ "job": text }),
            Self::OwnerFull { owner, limit } => json!({ "owner": owner, "limit": limit }),
            Self::Full { limit } => json!({ "limit": limit }),
            Self::NoLog => json!({}),
        }
    }
}
