//! The lifetime of a handler.

use std::sync::Arc;

use rmcp::ServerHandler;
use tokio_util::task::TaskTracker;

use super::session_id::{SessionId, SessionOwner};
use crate::panic_shield::PanicShield;

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

/// Makes handlers; their running calls are counted in the tracker.
pub(crate) type MakeHandler = Arc<dyn Fn(HandlerScope, &TaskTracker) -> PanicShield + Send + Sync>;

/// Erases the types of a factory and of its handlers.
pub(crate) fn shielded<H, F>(factory: F) -> MakeHandler
where
    H: ServerHandler,
    F: Fn(HandlerScope) -> H + Send + Sync + 'static,
{
    Arc::new(move |scope, calls| PanicShield::new(factory(scope), calls.clone()))
}
