//! The one-time link to the console page, which the server prints when it starts.
//!
//! The link carries a random token that is valid once, for ten minutes. Redeeming it sets a session cookie
//! and removes the token from the address bar by a redirect. Only a hash of the token is kept.

use std::sync::Mutex;
use std::time::Duration;

use carrel_domain::{Fingerprint, Secret, Timestamp, TokenScopes, hex, sync};

use super::authority::Grant;
use super::caller::{Caller, Coverage};
use super::random::random;
use super::session_cookie::SESSION_LIFETIME;

/// Lifetime of the link.
pub const LINK_LIFETIME: Duration = Duration::from_mins(10);

const SUBJECT: &str = "console";

/// A one-time token for a session with all scopes in all workspaces.
#[derive(Debug)]
pub struct ConsoleLink {
    /// The token and its end, until it is redeemed.
    waiting: Mutex<Option<(Fingerprint, Timestamp)>>,
}

impl ConsoleLink {
    /// Creates a link. The returned token has 128 random bits and is not kept.
    pub fn new(now: Timestamp) -> (Self, Secret) {
        let token = hex::encode(&random::<16>());
        let waiting = (Fingerprint::of(token.as_bytes()), now.after(LINK_LIFETIME));
        (Self { waiting: Mutex::new(Some(waiting)) }, Secret::new(token))
    }

    /// Returns a caller with all rights for the right token, once.
    ///
    /// A wrong token does not consume the link: guessing must not lock the operator out.
    pub fn redeem(&self, token: &str, now: Timestamp) -> Option<Caller> {
        let mut slot = sync::lock(&self.waiting);
        slot.take_if(|(_, expires_at)| now >= *expires_at);
        slot.take_if(|(expected, _)| expected.matches(token.as_bytes()))?;
        Some(Caller {
            subject: Some(SUBJECT.to_owned()),
            coverage: Coverage::All,
            scopes: TokenScopes::ALL,
            expires_at: now.after(SESSION_LIFETIME),
        })
    }
}

impl Grant {
    /// Returns the grant for a session cookie.
    pub fn session(caller: &Caller) -> Self {
        Self {
            subject: caller.subject.clone(),
            scopes: caller.scopes,
            ..Self::new(caller.coverage.clone(), SESSION_LIFETIME)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const START: i64 = 1_700_000_000_000;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(START).after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_link_opens_everything_once() {
        let (link, token) = ConsoleLink::new(at(0));
        assert_eq!(token.expose().len(), 32);
        let caller = link.redeem(token.expose(), at(599)).unwrap();
        assert_eq!((caller.coverage, caller.scopes), (Coverage::All, TokenScopes::ALL));
        assert_eq!(caller.expires_at, at(599 + 12 * 3600));
        assert_eq!(link.redeem(token.expose(), at(599)), None);
    }

    #[test]
    fn a_link_ends_after_ten_minutes_for_good() {
        let (link, token) = ConsoleLink::new(at(0));
        assert_eq!(link.redeem(token.expose(), at(600)), None);
        assert_eq!(link.redeem(token.expose(), at(1)), None, "a clock that goes back");
    }

    #[test]
    fn guessing_neither_opens_nor_ends_a_link() {
        let (link, token) = ConsoleLink::new(at(0));
        let (_, other) = ConsoleLink::new(at(0));
        for guess in ["", "0", other.expose(), &token.expose()[1..], &token.expose().to_uppercase()]
        {
            if guess != token.expose() {
                assert_eq!(link.redeem(guess, at(1)), None, "{guess}");
            }
        }
        assert!(link.redeem(token.expose(), at(1)).is_some());
        assert!(!format!("{link:?}").contains(token.expose()));
    }

    #[test]
    fn of_concurrent_redemptions_one_succeeds() {
        let (link, token) = ConsoleLink::new(at(0));
        let barrier = std::sync::Barrier::new(8);
        let follow = || {
            barrier.wait();
            link.redeem(token.expose(), at(1)).is_some()
        };
        let admitted = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(follow)).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
        });
        assert_eq!(admitted, 1);
    }
}
