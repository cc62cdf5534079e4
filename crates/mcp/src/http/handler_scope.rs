//! The lifetime of a handler.

use super::session_id::{SessionId, SessionOwner};

/// The requests that one handler is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerScope {
    /// All calls of one session: state of the handler is state of the session.
    Session {
        /// The session's id.
        id: SessionId,
        /// The caller that the session belongs to.
        owner: SessionOwner,
    },
    /// One request of the revision without sessions.
    Request,
}
