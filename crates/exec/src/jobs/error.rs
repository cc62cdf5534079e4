//! Why a registry of jobs refuses something.

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use super::id::{InvalidJobId, JobId, Owner};

/// Why a registry of jobs refuses something.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There is no such job, or it ended so long ago that it was forgotten, or it is somebody
    /// else's.
    #[error("no such job: {id}")]
    NotFound {
        /// The job that was asked for.
        id: JobId,
    },
    /// The text names no job.
    #[error(transparent)]
    InvalidId(#[from] InvalidJobId),
    /// The owner has as many running jobs as one owner may have.
    #[error("{owner} already has {limit} running jobs; one has to end before another starts")]
    OwnerFull {
        /// Whose jobs they are.
        owner: Owner,
        /// How many may run.
        limit: usize,
    },
    /// As many jobs run as may run altogether.
    #[error("already {limit} jobs are running; one has to end before another starts")]
    Full {
        /// How many may run.
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
