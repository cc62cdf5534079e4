//! Tokens of an identity provider, verified with the keys that it publishes (JWKS).
//!
//! Verification uses the keys in memory. [`Provider::run`] fetches them at the start and every [`REFRESH`]; a
//! token with an unknown key id triggers a fetch as well, at most every [`UNKNOWN_KEY_PAUSE`], so that key
//! rotation works without delay and an attacker cannot make the server hammer its provider. When the provider
//! is unreachable, keys stay valid for [`MAX_STALE`]; after that every token is rejected with 503, not
//! accepted.
//!
//! The algorithm follows from the key (RS256 or ES256), never from the token's header, and headers that bring
//! or locate a key are refused.

mod claims;
mod fetch;
mod key;
mod set;
mod settings;

use std::sync::{Arc, RwLock};
use std::time::Duration;

use carrel_client::HttpClient;
use carrel_domain::{Timestamp, sync};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::set::{KeySet, KeySetError};
pub use self::settings::{ClaimNames, ProviderOptions, ProviderSettingsError};
use super::caller::Caller;
use super::error::{AuthError, RejectReason};
use super::jwt::is_signed_with_a_secret;

/// Interval at which keys are fetched.
pub const REFRESH: Duration = Duration::from_mins(5);

/// Time for which keys are used after the last successful fetch. A client that cannot reach the provider for
/// an hour gets no fresh tokens either, and a revoked key must not stay valid behind a broken connection.
pub const MAX_STALE: Duration = Duration::from_hours(1);

/// The shortest interval between two fetches for unknown keys.
pub const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(10);

/// The first and the longest delay after a failed fetch.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_mins(1);

/// An identity provider. Clones share its keys.
#[derive(Clone, Debug)]
pub struct Provider {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: ProviderOptions,
    connections: HttpClient,
    keys: RwLock<Option<Fetched>>,
    /// The time of the last fetch. Locked during a fetch, so that requests wait for one instead of starting
    /// several.
    last_fetch: Mutex<Option<Instant>>,
}

#[derive(Clone, Debug)]
struct Fetched {
    keys: Arc<KeySet>,
    at: Instant,
}

impl Provider {
    /// Creates a provider without keys.
    pub fn new(options: ProviderOptions) -> Self {
        let inner = Inner {
            options,
            connections: HttpClient::new(),
            keys: RwLock::default(),
            last_fetch: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns `true` if a token is for this provider rather than for the server's own secret.
    pub fn is_for(&self, token: &str) -> bool {
        self.inner.options.is_exclusive() || !is_signed_with_a_secret(token)
    }

    /// Returns `true` if there are keys that are not too old.
    pub fn is_ready(&self) -> bool {
        self.keys().is_some()
    }

    /// Verifies a token. An unknown key id triggers one fetch.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Caller, AuthError> {
        if let Some(known) = self.verify_with_known(token, now)? {
            return Ok(known);
        }
        self.refetch().await;
        let known = self.verify_with_known(token, now)?;
        known.ok_or(AuthError::unauthenticated(RejectReason::Signature))
    }

    /// Returns `None` if the key id is unknown.
    fn verify_with_known(&self, token: &str, now: Timestamp) -> Result<Option<Caller>, AuthError> {
        let keys = self.keys().ok_or(AuthError::NoKeys)?;
        let caller = match keys.open(token) {
            Ok(payload) => claims::caller(payload, &self.inner.options, now),
            Err(KeySetError::UnknownKey) => return Ok(None),
            Err(KeySetError::Rejected(reason)) => Err(reason),
        };
        caller.map(Some).map_err(AuthError::unauthenticated)
    }

    fn keys(&self) -> Option<Arc<KeySet>> {
        let keys = sync::read(&self.inner.keys);
        let fresh = keys.as_ref().filter(|fetched| fetched.at.elapsed() < MAX_STALE)?;
        Some(Arc::clone(&fresh.keys))
    }

    /// Fetches the keys, unless they were fetched a moment ago.
    async fn refetch(&self) {
        let mut last_fetch = self.inner.last_fetch.lock().await;
        if last_fetch.is_some_and(|at| at.elapsed() < UNKNOWN_KEY_PAUSE) {
            return;
        }
        *last_fetch = Some(Instant::now());
        // The failure is logged; `run` retries.
        let _ = self.fetch().await;
    }

    /// Fetches the keys periodically until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let mut retry = FIRST_RETRY;
        loop {
            let fetched = {
                let mut last_fetch = self.inner.last_fetch.lock().await;
                *last_fetch = Some(Instant::now());
                tokio::select! {
                    () = stop.cancelled() => return,
                    fetched = self.fetch() => fetched,
                }
            };
            let pause = if fetched {
                retry = FIRST_RETRY;
                REFRESH
            } else {
                let pause = retry;
                retry = (retry * 2).min(MAX_RETRY);
                pause
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn fetch(&self) -> bool {
        let Inner { options, connections, keys, .. } = &*self.inner;
        match fetch::keys(connections, &options.url).await {
            Ok(set) => {
                let count = set.len();
                let fetched = Fetched { keys: Arc::new(set), at: Instant::now() };
                let before = sync::write(keys).replace(fetched);
                if before.is_none_or(|before| before.keys.len() != count) {
                    info!(count, "the keys of the token provider are there");
                }
                true
            }
            Err(error) => {
                let error = carrel_domain::message_of(&error);
                let usable = self.is_ready();
                warn!(%error, usable, "could not fetch the keys of the token provider, trying again");
                false
            }
        }
    }
}
