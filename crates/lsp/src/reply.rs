//! Answers, and the lack of one.

use std::time::{Duration, SystemTime};

/// The reply to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<T> {
    /// The answer, which holds for the files as they were at its time.
    Answer(Answer<T>),
    /// The server could not answer within the time of the query. It goes on with its work.
    NotReady(NotReady),
}

/// The answer of a server that was ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// The answer itself. Where it is empty, there is nothing.
    pub value: T,
    /// The server's name.
    pub server: &'static str,
    /// The reason why something may be missing; none for a complete answer.
    pub incomplete: Option<String>,
    /// Every write before this time is in the answer.
    pub as_of: SystemTime,
}

/// The work that a server has to do before it can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReady {
    /// The server's name.
    pub server: &'static str,
    /// The work, in the words of the server.
    pub pending: String,
    /// The time that it will take, if it goes on as it did so far.
    pub estimate: Option<Duration>,
}

impl<T> Reply<T> {
    /// Returns the answer; none if the server was not ready.
    pub fn answer(self) -> Option<Answer<T>> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::NotReady(_) => None,
        }
    }
}

impl<T> Answer<T> {
    /// Returns whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_none()
    }
}
