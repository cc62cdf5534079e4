//! Why a search was refused.

use carrel_domain::{Code, Coded};

/// Why a search was refused. What goes wrong with single files during a search is no
/// error but part of the report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path to search cannot be opened.
    #[error(transparent)]
    Path(#[from] carrel_fsroot::Error),
    /// The pattern is no regular expression, or one that takes too much memory.
    #[error("invalid regular expression: {explanation}")]
    Pattern {
        /// What the regular expression engine says.
        explanation: String,
    },
    /// A glob cannot be understood.
    #[error("invalid glob `{glob}` at character {place}: {reason}")]
    Glob {
        /// The glob as it was given.
        glob: String,
        /// The character at which it stops making sense, counted from 1.
        place: usize,
        /// What is wrong.
        reason: String,
    },
    /// No file type has this name.
    #[error("unknown file type `{name}`{}", suggestion(near))]
    UnknownType {
        /// The name that was given.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// A pattern or glob is too long.
    #[error("{what} has more than {limit} bytes")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// The longest allowed.
        limit: usize,
    },
    /// Too many globs or types are given.
    #[error("more than {limit} {what} are given")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The most allowed.
        limit: usize,
    },
    /// The caller gave up.
    #[error("the search was cancelled")]
    Cancelled,
}

fn suggestion(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it are {}", near.join(", ")) }
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
