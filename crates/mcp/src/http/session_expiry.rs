//! Expiry of idle sessions.
//!
//! Clients are supposed to end a session with `DELETE`; most just go away. A session expires when it
//! has had neither a running call, nor an open event stream, nor a message for
//! [`crate::SESSION_IDLE`]. Every [`EXPIRY_INTERVAL`] the table is scanned; an expired session leaves
//! it first and is ended afterwards, outside the table's lock. The client's next request gets 404,
//! upon which the protocol tells it to send `initialize` again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::MissedTickBehavior;
use tracing::info;

use super::session_table::SessionTable;
use crate::limits::EXPIRY_INTERVAL;

/// The shortest interval between two scans, for idle timeouts that tests set to milliseconds.
const MIN_EXPIRY_INTERVAL: Duration = Duration::from_millis(10);

impl SessionTable {
    /// Ends the sessions that are expired at `now`.
    pub(crate) fn expire(&self, now: Instant) {
        let mut expired = Vec::new();
        self.lock().retain(|_, session| {
            let keep = !session.is_idle(self.idle_timeout, now);
            if !keep {
                expired.push(Arc::clone(session));
            }
            keep
        });
        for session in expired {
            info!(session = %session.id(), "ended an idle session");
            session.end();
        }
    }

    /// Scans for expired sessions until the server stops.
    pub(crate) async fn expire_until_stopped(&self) {
        let interval = EXPIRY_INTERVAL.min(self.idle_timeout).max(MIN_EXPIRY_INTERVAL);
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                _ = ticks.tick() => self.expire(Instant::now()),
            }
        }
    }
}
