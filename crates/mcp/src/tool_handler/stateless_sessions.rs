//! Sessions of clients whose protocol revision has none.
//!
//! In the revision 2026-07-28 every request stands alone, but tools still need a session: a file can
//! be changed only after it was read in the same one. A client names its own with a handle of its
//! choice in `_meta`. Handles of different owners never meet, even with equal text. Sessions are held
//! in memory only: after a restart, after an hour without use, or when 1024 newer ones exist, a handle
//! begins anew and files have to be read again.
//!
//! A request without a handle has a session of its own, which ends with it. Clients that never heard of
//! handles would otherwise share one, and each could change the files that another has read. Such a client
//! passes the hash of a file from one request to the next, and the id of a job.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrel_domain::sync;
use carrel_tools::Session;

use crate::http::SessionOwner;

/// The time without use after which a session is forgotten.
const IDLE_TIMEOUT: Duration = Duration::from_hours(1);

/// Bounds memory. The session that was used longest ago is forgotten first.
const MAX_SESSIONS: usize = 1024;

/// A longer handle is cut to this many bytes, since the client chooses it and the server keeps it.
const MAX_HANDLE_BYTES: usize = 128;

/// The sessions by owner and handle.
#[derive(Debug, Default)]
pub(super) struct StatelessSessions {
    sessions: Mutex<HashMap<(SessionOwner, String), UsedSession>>,
    /// Requests without a handle so far, which number them in audit events.
    requests: AtomicU64,
}

#[derive(Debug)]
struct UsedSession {
    session: Arc<Session>,
    last_used: Instant,
}

impl StatelessSessions {
    /// Returns the session of a handle, creating it if there is none; a new one without a handle.
    pub(super) fn session(&self, owner: &SessionOwner, handle: Option<&str>) -> Arc<Session> {
        if let Some(handle) = handle {
            return self.named(owner, handle);
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        Session::for_request(owner.into(), session_id("request", owner, &number.to_string()))
    }

    fn named(&self, owner: &SessionOwner, handle: &str) -> Arc<Session> {
        let handle = &handle[..handle.floor_char_boundary(MAX_HANDLE_BYTES)];
        let key = (owner.clone(), handle.to_owned());
        let mut sessions = sync::lock(&self.sessions);
        let now = Instant::now();
        if let Some(used) = sessions.get_mut(&key) {
            used.last_used = now;
            return Arc::clone(&used.session);
        }
        sessions.retain(|_, used| now.duration_since(used.last_used) < IDLE_TIMEOUT);
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, used)| used.last_used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| sessions.remove(&key));
        }
        let session = Session::of_owner(owner.into(), session_id("handle", owner, handle));
        sessions.insert(key, UsedSession { session: Arc::clone(&session), last_used: now });
        session
    }
}

/// Returns the id that audit events show, so it must differ wherever owner or handle do. Quoting the owner
/// keeps `a b` + `c` apart from `a` + `b c`.
fn session_id(kind: &str, owner: &SessionOwner, name: &str) -> String {
    if owner.0.is_empty() {
        return format!("{kind}:{name}");
    }
    format!("{kind}:{:?} {name}", owner.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_session_and_their_number_is_bounded() {
        let sessions = StatelessSessions::default();
        let owner = SessionOwner::default();
        let one = sessions.session(&owner, Some("a"));
        assert!(Arc::ptr_eq(&one, &sessions.session(&owner, Some("a"))));
        for number in 0..MAX_SESSIONS + 10 {
            sessions.session(&owner, Some(&number.to_string()));
        }
        assert_eq!(sessions.sessions.lock().unwrap().len(), MAX_SESSIONS);
        assert_eq!(
            sessions.session(&owner, Some(&"x".repeat(1000))).id().len(),
            "handle:".len() + MAX_HANDLE_BYTES
        );
    }

    #[test]
    fn requests_without_a_handle_share_an_owner_and_no_session() {
        let sessions = StatelessSessions::default();
        let owner = SessionOwner::default();
        let (one, other) = (sessions.session(&owner, None), sessions.session(&owner, None));
        assert!(!Arc::ptr_eq(&one, &other));
        assert_ne!(one.id(), other.id());
        assert_eq!(one.owner(), other.owner());
        assert_eq!(sessions.sessions.lock().unwrap().len(), 0, "nothing is kept");
        let named = sessions.session(&owner, Some("request:1"));
        assert_ne!(one.id(), named.id());
    }

    #[test]
    fn the_same_handle_of_two_owners_is_two_sessions() {
        let sessions = StatelessSessions::default();
        let long = "o".repeat(2 * MAX_HANDLE_BYTES);
        let one = SessionOwner(format!("{long}1").into());
        let other = SessionOwner(format!("{long}2").into());
        let of_one = sessions.session(&one, Some("a"));
        let of_other = sessions.session(&other, Some("a"));
        assert!(!Arc::ptr_eq(&of_one, &of_other));
        assert_ne!(of_one.id(), of_other.id());
        assert_ne!(of_one.owner(), of_other.owner());
    }
}
