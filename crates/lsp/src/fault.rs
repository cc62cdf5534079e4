//! Why a query has no answer: inside, where a fault may have a remedy, and outside.

use std::path::PathBuf;
use std::sync::Arc;

use crate::client::RequestError;
use crate::message::ResponseError;

/// Why a server gave no answer. The caller tries again, takes a new server, or reports it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// A new server has to take the place of this one.
    #[error("{0}")]
    Restart(&'static str),
    /// The connection has ended.
    #[error("{0}")]
    Ended(Arc<str>),
    #[error("no reply in time")]
    TimedOut,
    /// Files have changed since the server was brought up to date.
    #[error("the files of the answer have changed meanwhile")]
    Stale,
    #[error(transparent)]
    Refused(ResponseError),
    /// The query itself cannot be answered.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl From<RequestError> for Fault {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::TimedOut => Self::TimedOut,
            RequestError::Refused(error) => Self::Refused(error),
            RequestError::Closed(reason) => Self::Ended(reason),
        }
    }
}

/// Why a language server gives no answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum QueryError {
    #[error("no language server is known for {}; the tools that work by syntax alone have none either", path.display())]
    NoLanguage { path: PathBuf },
    #[error(
        "no language server for {language} is installed; install one of these where commands find it, or in the project: {candidates}"
    )]
    NotInstalled { language: &'static str, candidates: String },
    #[error("{server} could not be started: {reason}; to install it: {installation}")]
    NotStarted { server: &'static str, reason: String, installation: &'static str },
    #[error(
        "{server} has ended {times} times within {minutes} minutes and is not started again before that time is over; at last: {reason}"
    )]
    KeepsEnding { server: &'static str, times: usize, minutes: u64, reason: Arc<str> },
    #[error(
        "{running} language servers are running and all of them are in use; wait for one of them, or raise language_servers.most or language_servers.memory in policy.toml"
    )]
    TooMany { running: usize },
    #[error("{server} cannot tell {what}")]
    Unsupported { server: &'static str, what: &'static str },
    #[error("{server} refuses: {message}")]
    Refused { server: &'static str, message: String },
    #[error("{server} sent what is no answer: {reason}")]
    Malformed { server: &'static str, reason: String },
    #[error(
        "{server} would change {path}, which is outside of the workspace; change it there by hand"
    )]
    Outside { server: &'static str, path: String },
    #[error("{} is not UTF-8 or larger than {} MiB, and language servers cannot read it", path.display(), crate::stamp::MAX_DOCUMENT_BYTES >> 20)]
    NotText { path: PathBuf },
    #[error("{} has {length} bytes, and the position is byte {offset}; read the file again", path.display())]
    NoSuchPosition { path: PathBuf, offset: usize, length: usize },
    #[error("{} has changed since the position was found; read the file again", path.display())]
    HasChanged { path: PathBuf },
    #[error("the files kept changing while {server} answered; try again when they are at rest")]
    KeepsChanging { server: &'static str },
    #[error("the language servers of this workspace are being ended")]
    Closing,
    #[error(transparent)]
    Files(#[from] carrel_fsroot::Error),
    #[error(transparent)]
    Walk(#[from] carrel_search::Error),
    #[error("file work was interrupted: {0}")]
    Interrupted(String),
}

/// Does file work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static, E: Into<QueryError> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, QueryError> {
    match carrel_exec::blocking(work).await {
        Ok(done) => done.map_err(Into::into),
        Err(error) => Err(QueryError::Interrupted(error.to_string())),
    }
}
