//! The lifetime of a handler.

use super::session_id::SessionId;

/// The requests that one handler is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerScope {
    /// All calls of one session: state of the handler is state of the session.
    Session(SessionId),
    /// One request of the revision without sessions.
    Request,
}
