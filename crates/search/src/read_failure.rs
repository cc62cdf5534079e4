//! Files and directories that could not be read during a search. They are counted, and the first
//! are listed, but never end it.

use std::path::PathBuf;

use carrel_domain::message_of;

use crate::node::vanished;

/// Bounds the failures that a report lists; all are counted.
pub const MAX_READ_FAILURES: usize = 20;

/// A file or directory that could not be read, by its path relative to the workspace's root.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the path, and the reason is its message")]
pub struct ReadFailure {
    pub path: PathBuf,
    pub reason: String,
}

/// The read failures of a search: the number of all, and the first in path order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the total")]
pub struct ReadFailures {
    pub total: u64,
    /// At most [`MAX_READ_FAILURES`].
    pub first: Vec<ReadFailure>,
}

impl ReadFailures {
    pub(crate) fn add(&mut self, path: PathBuf, reason: impl Into<String>) {
        self.total += 1;
        if self.first.len() < MAX_READ_FAILURES {
            self.first.push(ReadFailure { path, reason: reason.into() });
        }
    }

    /// Adds an error without the path that it repeats, unless the entry vanished since it was
    /// listed.
    pub(crate) fn add_error(&mut self, path: PathBuf, error: &carrel_fsroot::Error) {
        let problem = error.problem();
        match std::error::Error::source(error) {
            _ if vanished(problem) => {}
            Some(cause) => self.add(path, format!("{problem}: {}", message_of(cause))),
            None => self.add(path, problem.to_string()),
        }
    }

    /// Adds the failures of a later part of the search.
    pub(crate) fn merge(&mut self, other: Self) {
        self.total += other.total;
        let room = MAX_READ_FAILURES - self.first.len();
        self.first.extend(other.first.into_iter().take(room));
    }
}
