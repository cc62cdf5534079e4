//! Errors that end a search, with the codes that interfaces report for them.

use carrel_domain::{Code, Coded};

/// A search that could not start, or was cancelled.
///
/// Files that cannot be read during a search are no error; the report lists them as
/// [`ReadFailures`](crate::ReadFailures).
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages define variants and fields")]
pub enum Error {
    #[error(transparent)]
    Path(#[from] carrel_fsroot::Error),
    /// The pattern is invalid or takes too much memory; the explanation is that of the regex
    /// engine.
    #[error("invalid regular expression: {explanation}")]
    Pattern { explanation: String },
    #[error("invalid glob `{glob}` at character {position}: {reason}")]
    Glob {
        glob: String,
        /// Character at which the glob becomes invalid, counted from 1.
        position: usize,
        reason: String,
    },
    #[error("unknown file type `{name}`{}", suggestion(similar))]
    UnknownType { name: String, similar: Vec<String> },
    #[error("{what} has more than {limit} bytes")]
    TooLong { what: &'static str, limit: usize },
    #[error("more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    #[error("the search was cancelled")]
    Cancelled,
}

fn suggestion(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) }
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Path(error) => error.code(),
            Self::Pattern { .. } | Self::Glob { .. } => Code::InvalidPattern,
            Self::UnknownType { .. } | Self::TooLong { .. } | Self::TooMany { .. } => {
                Code::InvalidArguments
            }
            Self::Cancelled => Code::Cancelled,
        }
    }
}
