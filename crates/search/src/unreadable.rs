//! What could not be read during a search.

use std::path::PathBuf;

use carrel_domain::message_of;
use serde::Serialize;

/// The most unreadable files that a report names; the rest is counted.
pub const MAX_READ_FAILURES: usize = 20;

/// A file or directory that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadFailure {
    /// Where it is, relative to the workspace's root.
    #[serde(with = "carrel_domain::lossy_path")]
    pub path: PathBuf,
    /// Why it could not be read.
    pub reason: String,
}

impl ReadFailure {
    pub(crate) fn new(path: PathBuf, reason: impl Into<String>) -> Self {
        Self { path, reason: reason.into() }
    }

    /// Tells of an error at a path, which the error itself need not repeat.
    pub(crate) fn of(path: PathBuf, error: &carrel_fsroot::Error) -> Self {
        let reason = error.problem().to_string();
        match std::error::Error::source(error) {
            Some(cause) => Self::new(path, format!("{reason}: {}", message_of(cause))),
            None => Self::new(path, reason),
        }
    }
}

/// Everything that could not be read, of which only the first are named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadFailures {
    /// How many there are.
    pub total: u64,
    /// The first [`MAX_READ_FAILURES`] in the order of paths.
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
