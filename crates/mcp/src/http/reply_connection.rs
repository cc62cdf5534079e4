//! The connection that waits for the reply of a call, as a handler sees it.

use std::sync::Arc;

use super::event_log::EventLog;

/// The connection on which a client waits for the reply to a call. It is among the extensions of a
/// request that belongs to a session.
#[derive(Clone, Debug)]
pub struct ReplyConnection {
    log: Arc<EventLog>,
    resumable: bool,
}

impl ReplyConnection {
    pub(crate) fn new(log: Arc<EventLog>, resumable: bool) -> Self {
        Self { log, resumable }
    }

    /// Closes the connection while the call goes on; the client reconnects for the reply. Returns
    /// `false`, without an effect, if the client's revision cannot resume streams.
    pub fn release(&self) -> bool {
        if self.resumable {
            self.log.detach_reader();
        }
        self.resumable
    }
}
