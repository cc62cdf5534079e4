//! The open sessions of a server, by id.
//!
//! A session enters the table with its handshake, so that the client's next request finds it, and
//! leaves it by `DELETE`, by expiry, when its handler ended, or when the
//! server stops. Where callers are authenticated each owner has a share of the table: past it, the
//! owner's own least recently used idle session makes way, and no other owner notices.
//!
//! Clients are supposed to end a session with `DELETE`; most just go away. A session expires when it
//! has had neither a running call, nor an open event stream, nor a message for
//! [`crate::SESSION_IDLE`]. Every [`EXPIRY_INTERVAL`] the table is scanned; an expired session leaves
//! it first and is ended afterwards, outside the table's lock.
//!
//! The table is memory only. After a restart every session id is unknown, and clients begin anew with
//! `initialize`, as the protocol prescribes for 404.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use carrel_domain::sync;
use rmcp::{service::serve_server_with_ct, transport::TransportAdapterIdentity};
use tokio::time::MissedTickBehavior;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info};

use super::{
    direct::SessionHandler,
    handler_scope::{HandlerScope, MakeHandler},
    options::{CallPath, HttpOptions},
    session::{Session, SessionTransport},
    session_id::{SessionId, SessionOwner},
};
use crate::{limits::EXPIRY_INTERVAL, panic_shield::PanicShield};

/// The shortest interval between two scans, for idle timeouts that tests set to milliseconds.
const MIN_EXPIRY_INTERVAL: Duration = Duration::from_millis(10);

/// The table, or the owner's share of it, is full of sessions in use.
#[derive(Debug)]
pub(crate) struct TooManySessions;

/// The open sessions of a server, by id.
pub(crate) struct SessionTable {
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    max: usize,
    max_per_owner: usize,
    idle_timeout: Duration,
    stop: CancellationToken,
    serve: Box<dyn Fn(SessionTransport) + Send + Sync>,
}

impl fmt::Debug for SessionTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.lock().len();
        formatter.debug_struct("SessionTable").field("open", &open).finish_non_exhaustive()
    }
}

impl SessionTable {
    /// Creates an empty table. Services of sessions run in `calls`; cancelling `stop` ends all of them.
    pub(crate) fn new(
        options: &HttpOptions,
        make: MakeHandler,
        calls: TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let path = options.call_path;
        let serve = move |transport: SessionTransport| {
            let Session { id, owner, .. } = &*transport.session;
            let scope = HandlerScope::Session { id: id.clone(), owner: owner.clone() };
            calls.spawn(serve(make(scope, &calls), transport, path));
        };
        Arc::new(Self {
            open: Mutex::default(),
            max: options.max_sessions,
            max_per_owner: options.max_sessions_per_owner,
            idle_timeout: options.session_idle,
            stop,
            serve: Box::new(serve),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        sync::lock(&self.open)
    }

    /// Creates a session whose service waits for `initialize`.
    pub(crate) fn open(&self, owner: &SessionOwner) -> Result<Arc<Session>, TooManySessions> {
        let (session, transport) = Session::new(owner.clone(), self.stop.child_token());
        let evicted = {
            let mut open = self.lock();
            let evicted = self.evict(&mut open, owner)?;
            open.insert(session.id.clone(), Arc::clone(&session));
            evicted
        };
        if let Some(evicted) = evicted {
            info!(session = %evicted.id, "ended a session for a new one of its owner");
            evicted.end();
        }
        (self.serve)(transport);
        Ok(session)
    }

    /// Removes the least recently used idle session of an owner whose share is full. Fails if all of
    /// the owner's sessions are in use, or if the table is full without the owner's doing.
    fn evict(
        &self,
        open: &mut HashMap<SessionId, Arc<Session>>,
        owner: &SessionOwner,
    ) -> Result<Option<Arc<Session>>, TooManySessions> {
        let own = || open.values().filter(|session| session.owner == *owner);
        if own().count() < self.max_per_owner {
            return if open.len() < self.max { Ok(None) } else { Err(TooManySessions) };
        }
        let now = Instant::now();
        let idle = own().filter(|session| session.is_idle(Duration::ZERO, now));
        let oldest = idle.min_by_key(|session| session.last_used()).ok_or(TooManySessions)?;
        let id = oldest.id.clone();
        Ok(open.remove(&id))
    }

    /// Finds a session by the id that a client sent. A session of another owner is not found, so its
    /// existence does not show.
    pub(crate) fn find(&self, id: &str, owner: &SessionOwner) -> Option<Arc<Session>> {
        self.lock().get(id).filter(|session| session.owner == *owner).cloned()
    }

    /// Removes a session, cancels its calls and ends its streams. Unknown ids are ignored.
    pub(crate) fn close(&self, id: &str) {
        let session = self.lock().remove(id);
        if let Some(session) = session {
            session.end();
        }
    }

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
            info!(session = %session.id, "ended an idle session");
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

    pub(crate) fn close_all(&self) {
        for (_, session) in self.lock().drain() {
            session.end();
        }
    }
}

async fn serve(service: PanicShield, transport: SessionTransport, path: CallPath) {
    let session = Arc::clone(&transport.session);
    let stop = session.stop.clone();
    let handler = match path {
        CallPath::Service => None,
        CallPath::Direct => Some(service.clone()),
    };
    // Boxed, because the SDK's handshake is a future of many kilobytes that would otherwise stay part of
    // this task for the life of the session.
    let handshake = Box::pin(serve_server_with_ct::<_, _, _, TransportAdapterIdentity>(
        service, transport, stop,
    ));
    match handshake.await {
        Ok(running) => {
            session.serve_directly(handler.map(|handler| {
                let peer = running.peer().clone();
                SessionHandler { handler, peer }
            }));
            // The code that ended the session has logged the reason.
            drop(running.waiting().await);
        }
        Err(error) => debug!(session = %session.id, %error, "a handshake failed"),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::ServerHandler;

    use super::*;
    use crate::http::handler_scope::shielded;

    struct IdleHandler;

    impl ServerHandler for IdleHandler {}

    #[tokio::test]
    async fn an_owner_past_its_share_replaces_its_own_idle_sessions_only() {
        let options =
            HttpOptions { max_sessions: 4, max_sessions_per_owner: 2, ..HttpOptions::embedded() };
        let calls = TaskTracker::new();
        let table =
            SessionTable::new(&options, shielded(|_| IdleHandler), calls, CancellationToken::new());
        let one = SessionOwner("one".into());
        let other = SessionOwner("other".into());
        let own: Vec<_> = (0..5).map(|_| table.open(&one).unwrap()).collect();
        let kept = own.iter().map(|session| table.find(session.id.as_str(), &one).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [false, false, false, true, true]);
        assert!(own[0].stop.is_cancelled() && !own[4].stop.is_cancelled());
        let used: Vec<_> = own[3..].iter().map(Session::open_stream).collect();
        assert!(table.open(&one).is_err(), "a session in use is not ended");
        for _ in 0..2 {
            table.open(&other).unwrap();
        }
        drop(used);
        assert!(table.open(&one).is_ok(), "it replaces a session of its own");
    }
}
