//! What a handler learns about whom it serves.

use std::{borrow::Borrow, fmt, sync::Arc};

use rmcp::transport::common::server_side_http;

use super::event_log::EventLog;

/// The name of a session: unguessable, made by the server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    pub(crate) fn generate() -> Self {
        Self(server_side_http::session_id())
    }

    /// The name as the client knows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whose a request is, put among its extensions by a server that knows its callers. A session answers
/// to the one who began it, and to nobody else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionOwner(pub Arc<str>);

/// What a handler is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerScope {
    /// All calls of one session. State of the handler is state of the session.
    Session(SessionId),
    /// A single request of the revision without sessions.
    Request,
}

/// The connection on which a client waits for the reply to a call. A handler finds it among the
/// extensions of a request, if the call belongs to a session.
#[derive(Clone, Debug)]
pub struct ReplyConnection {
    log: Arc<EventLog>,
    resumable: bool,
}

impl ReplyConnection {
    pub(crate) fn new(log: Arc<EventLog>, resumable: bool) -> Self {
        Self { log, resumable }
    }

    /// Lets go of the connection while the call goes on; the client comes back for the reply. Says
    /// `false`, and does nothing, if the client's revision does not know how to.
    pub fn release(&self) -> bool {
        if self.resumable {
            self.log.interrupt();
        }
        self.resumable
    }
}
