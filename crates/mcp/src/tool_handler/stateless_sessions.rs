//! Sessions of clients whose revision of the protocol has none: they name their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use carrel_tools::Session;

/// What a client without a handle gets.
const SHARED: &str = "shared";

/// A handle that nobody used for this long is forgotten; its files have to be read again.
const IDLE: Duration = Duration::from_hours(1);

/// Protects memory. The handle that was used longest ago is forgotten first.
const MAX_HANDLES: usize = 1024;

/// A longer handle is cut.
const MAX_HANDLE_BYTES: usize = 128;

/// The sessions by their handles.
#[derive(Debug, Default)]
pub(super) struct Handles(Mutex<HashMap<String, (Arc<Session>, Instant)>>);

impl Handles {
    /// Returns the session of a handle, and begins it if need be.
    pub(super) fn session(&self, handle: Option<&str>) -> Arc<Session> {
        let handle = handle.unwrap_or(SHARED);
        let handle = &handle[..handle.floor_char_boundary(MAX_HANDLE_BYTES)];
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some((session, used)) = known.get_mut(handle) {
            *used = now;
            return Arc::clone(session);
        }
        known.retain(|_, (_, used)| now.duration_since(*used) < IDLE);
        if known.len() >= MAX_HANDLES {
            let oldest = known.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(handle, _)| handle.clone());
            oldest.map(|handle| known.remove(&handle));
        }
        let session = Session::new(format!("handle:{handle}"));
        known.insert(handle.to_owned(), (Arc::clone(&session), now));
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_session_and_their_number_is_bounded() {
        let handles = Handles::default();
        let one = handles.session(Some("a"));
        assert!(Arc::ptr_eq(&one, &handles.session(Some("a"))));
        assert!(!Arc::ptr_eq(&one, &handles.session(None)));
        for number in 0..MAX_HANDLES + 10 {
            handles.session(Some(&number.to_string()));
        }
        assert_eq!(handles.0.lock().unwrap().len(), MAX_HANDLES);
        assert_eq!(
            handles.session(Some(&"x".repeat(1000))).id().len(),
            "handle:".len() + MAX_HANDLE_BYTES
        );
    }
}
