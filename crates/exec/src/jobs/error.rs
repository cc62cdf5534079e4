//! Errors of the job registry.

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use super::id::{InvalidJobId, JobId};

/// The reason why a job could not be started or found. A job of another owner is not found, like one that never existed or was evicted.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum JobError {
    #[error("no such job: {id}")]
    NotFound { id: JobId },
    #[error(transparent)]
    InvalidId(#[from] InvalidJobId),
    #[error("you already have {limit} running jobs; one has to end before another starts")]
    OwnerFull { limit: usize },
    #[error("already {limit} jobs are running; one has to end before another starts")]
    Full { limit: usize },
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
            Self::OwnerFull { limit } | Self::Full { limit } => json!({ "limit": limit }),
            Self::NoLog => json!({}),
        }
    }
}
