//! Files and directories that could not be read during a search. They are counted, and the first
//! are listed, but never end it.

use std::path::PathBuf;

use carrel_domain::message_of;
/// Bounds the failures that a report lists; all are counted.
pub const MAX_READ_FAILURES: usize = 20;

/// A file or directory that could not be read, by its path relative to the workspace's root.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the path, and the reason is its message")]
pub struct ReadFailure {
    pub path: PathBuf,
    pub reason: String,
}

impl ReadFailure {
    pub(crate) fn new(path: PathBuf, reason: impl Into<String>) -> Self {
        Self { path, reason: reason.into() }
    }

    /// Creates a failure from an error, without the path that the error repeats.
    pub(crate) fn of(path: PathBuf, error: &carrel_fsroot::Error) -> Self {
        let reason = error.problem().to_string();
        match std::error::Error::source(error) {
            Some(cause) => Self::new(path, format!("{reason}: {}", message_of(cause))),
            None => Self::new(path, reason),
        }
    }
}

/// The read failures of a search: the number of all, and the first in path order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the total")]
pub struct ReadFailures {
    pub total: u64,
    /// At most [`MAX_READ_FAILURES`].
    pub first: Vec<ReadFailure>,
}

impl Extend<ReadFailure> for ReadFailures {
    fn extend<I: IntoIterator<Item = ReadFailure>>(&mut self, all: I) {
        for unreadable in all {
            self.total += 1;
            if self.first.len() < MAX_READ_FAILURES {
                self.first.push(unreadable);
            }
        }
    }
}
