//! All sessions of a server: made by a handshake, ended by the client, by idleness or by the end.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rmcp::{ServerHandler, service::serve_server_with_ct, transport::TransportAdapterIdentity};
use tokio::time::MissedTickBehavior;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info};

use super::{
    handler_scope::{HandlerScope, SessionId, SessionOwner},
    options::HttpOptions,
    session::{Session, SessionTransport},
};
use crate::{limits::EXPIRY_INTERVAL, panic_shield::PanicShield};

/// There are as many sessions as there may be.
#[derive(Debug)]
pub(crate) struct TooManySessions;

/// The sessions by name.
pub(crate) struct SessionTable {
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    max: usize,
    /// How many one owner may have.
    max_per_owner: usize,
    idle: Duration,
    stop: CancellationToken,
    serve: Box<dyn Fn(SessionTransport) + Send + Sync>,
}

impl fmt::Debug for SessionTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionTable")
            .field("open", &self.lock().len())
            .finish_non_exhaustive()
    }
}

impl SessionTable {
    /// Makes an empty set. `calls` counts what runs for the sessions, `stop` ends all of them.
    pub(crate) fn new<H, F>(
        options: &HttpOptions,
        factory: Arc<F>,
        calls: TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Self>
    where
        H: ServerHandler,
        F: Fn(HandlerScope) -> H + Send + Sync + 'static,
    {
        let serve = move |transport: SessionTransport| {
            let id = transport.session().id().clone();
            let service = PanicShield::new(factory(HandlerScope::Session(id)), calls.clone());
            calls.spawn(serve(service, transport));
        };
        Arc::new(Self {
            open: Mutex::default(),
            max: options.max_sessions,
            max_per_owner: options.max_sessions_per_owner,
            idle: options.session_idle,
            stop,
            serve: Box::new(serve),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a session that waits for its handshake.
    pub(crate) fn open(&self, owner: &SessionOwner) -> Result<Arc<Session>, TooManySessions> {
        let (session, transport) = Session::new(owner.clone(), self.stop.child_token());
        let ended = {
            let mut open = self.lock();
            let ended = self.make_room(&mut open, owner)?;
            open.insert(session.id().clone(), Arc::clone(&session));
            ended
        };
        if let Some(ended) = ended {
            info!(session = %ended.id(), "ended a session for a new one of its owner");
            ended.end();
        }
        (self.serve)(transport);
        Ok(session)
    }

    /// Takes out what an owner with too many used longest ago, of those that do nothing.
    fn make_room(
        &self,
        open: &mut HashMap<SessionId, Arc<Session>>,
        owner: &SessionOwner,
    ) -> Result<Option<Arc<Session>>, TooManySessions> {
        let own = || open.values().filter(|session| session.belongs_to(owner));
        if own().count() < self.max_per_owner {
            return if open.len() < self.max { Ok(None) } else { Err(TooManySessions) };
        }
        let now = Instant::now();
        let idle = own().filter(|session| session.sweep(Duration::ZERO, now));
        let oldest = idle.min_by_key(|session| session.last_used()).ok_or(TooManySessions)?;
        let id = oldest.id().clone();
        Ok(open.remove(&id))
    }

    /// Finds a session by the name a client gave. Somebody else's is not found.
    pub(crate) fn find(&self, id: &str, owner: &SessionOwner) -> Option<Arc<Session>> {
        self.lock().get(id).filter(|session| session.belongs_to(owner)).cloned()
    }

    /// Ends a session; `false` if there is none of that name.
    pub(crate) fn close(&self, id: &str) -> bool {
        let session = self.lock().remove(id);
        if let Some(session) = &session {
            session.end();
        }
        session.is_some()
    }

    /// Ends the sessions that have been idle for too long.
    pub(crate) fn sweep(&self, now: Instant) {
        let mut expired = Vec::new();
        self.lock().retain(|_, session| {
            let keep = !session.sweep(self.idle, now);
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

    /// Sweeps from time to time, until the server stops; then ends every session.
    pub(crate) async fn expire_until_stopped(&self) {
        let mut ticks =
            tokio::time::interval(EXPIRY_INTERVAL.min(self.idle).max(MIN_EXPIRY_INTERVAL));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                _ = ticks.tick() => self.sweep(Instant::now()),
            }
        }
    }

    /// Ends all sessions.
    pub(crate) fn close_all(&self) {
        for (_, session) in self.lock().drain() {
            session.end();
        }
    }
}

/// The shortest time between two looks, for tests that expire sessions quickly.
const MIN_EXPIRY_INTERVAL: Duration = Duration::from_millis(10);

async fn serve<H: ServerHandler>(service: PanicShield<H>, transport: SessionTransport) {
    let session = Arc::clone(transport.session());
    let stop = session.stop().clone();
    // The SDK's handshake is a future of many kilobytes, which should not live as long as the session.
    let starting = Box::pin(serve_server_with_ct::<_, _, _, TransportAdapterIdentity>(
        service, transport, stop,
    ));
    match starting.await {
        // The reason for the end is already known to whoever ended the session.
        Ok(running) => drop(running.waiting().await),
        Err(error) => debug!(session = %session.id(), %error, "a handshake came to nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl ServerHandler for Silent {}

    #[tokio::test]
    async fn nobody_takes_the_places_of_others() {
        let options = HttpOptions::embedded().max_sessions(4).max_sessions_per_owner(2);
        let (calls, stop) = (TaskTracker::new(), CancellationToken::new());
        let sessions = SessionTable::new(&options, Arc::new(|_| Silent), calls, stop);
        let (one, other) = (SessionOwner("one".into()), SessionOwner("other".into()));
        let own: Vec<_> = (0..5).map(|_| sessions.open(&one).unwrap()).collect();
        let kept = own.iter().map(|session| sessions.find(session.id().as_str(), &one).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [false, false, false, true, true]);
        assert!(own[0].stop().is_cancelled() && !own[4].stop().is_cancelled());
        let used: Vec<_> = own[3..].iter().map(Session::open_stream).collect();
        assert!(sessions.open(&one).is_err(), "what is used is not ended");
        for _ in 0..2 {
            sessions.open(&other).unwrap();
        }
        drop(used);
        assert!(sessions.open(&one).is_ok(), "it takes the place of its own");
    }
}
