//! Tokens of a provider, verified with the keys that it publishes.
//!
//! A [`Provider`] answers from the keys it has. [`Provider::run`] fetches them at the start and from
//! time to time; a token with a key that nobody knows makes it look again, at most every few seconds.
//! Keys outlive a provider that does not answer by [`MAX_STALE`], and no longer. Without keys nobody is
//! let in.

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

use self::set::{KeySet, UnknownKey};
pub use self::settings::{ClaimNames, ProviderOptions, ProviderSettingsError};
use super::caller::Caller;
use super::error::{AuthError, RejectReason};
use super::jwt::is_signed_with_a_secret;

/// How often the keys are fetched.
pub const REFRESH: Duration = Duration::from_mins(5);

/// How long keys are used after the provider last showed them. Whoever cannot reach it for an hour has
/// no fresh tokens either, and a key that was withdrawn must not live on behind a broken line.
pub const MAX_STALE: Duration = Duration::from_hours(1);

/// How often at most an unknown key makes the set be fetched again.
pub const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(10);

/// The first and the longest pause after a failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Whoever signs tokens elsewhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: ProviderOptions,
    connections: HttpClient,
    keys: RwLock<Option<Fetched>>,
    /// When the keys were last asked for. Held while they are.
    asked: Mutex<Option<Instant>>,
}

#[derive(Clone, Debug)]
struct Fetched {
    keys: Arc<KeySet>,
    at: Instant,
}

impl Provider {
    /// Makes a provider without keys.
    pub fn new(options: ProviderOptions) -> Self {
        let inner = Inner {
            options,
            connections: HttpClient::new(),
            keys: RwLock::default(),
            asked: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Tells whether a token is to be verified by this provider, and not with the server's own key.
    pub fn is_for(&self, token: &str) -> bool {
        self.inner.options.is_exclusive() || !is_signed_with_a_secret(token)
    }

    /// Tells whether there are keys to verify with.
    pub fn is_ready(&self) -> bool {
        self.keys().is_some()
    }

    /// Returns the caller that a token stands for.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Caller, AuthError> {
        if let Some(known) = self.verify_with_known(token, now)? {
            return Ok(known);
        }
        self.look_again().await;
        let known = self.verify_with_known(token, now)?;
        known.ok_or(AuthError::unauthenticated(RejectReason::Signature))
    }

    /// Returns nothing if the key is not known.
    fn verify_with_known(&self, token: &str, now: Timestamp) -> Result<Option<Caller>, AuthError> {
        let keys = self.keys().ok_or(AuthError::NoKeys)?;
        let payload = match keys.open(token) {
            Ok(payload) => payload.map_err(AuthError::unauthenticated)?,
            Err(UnknownKey) => return Ok(None),
        };
        let options = &self.inner.options;
        claims::caller(payload, options, now).map(Some).map_err(AuthError::unauthenticated)
    }

    fn keys(&self) -> Option<Arc<KeySet>> {
        let keys = sync::read(&self.inner.keys);
        let fresh = keys.as_ref().filter(|fetched| fetched.at.elapsed() < MAX_STALE)?;
        Some(Arc::clone(&fresh.keys))
    }

    /// Fetches the keys unless somebody just did.
    async fn look_again(&self) {
        let mut asked = self.inner.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < UNKNOWN_KEY_PAUSE) {
            return;
        }
        *asked = Some(Instant::now());
        // What is wrong is in the log, and the next turn of `run` says it again.
        let _ = self.fetch().await;
    }

    /// Keeps the keys fresh until the server stops.
    pub async fn run(self, stop: CancellationToken) {
        let mut retry = RETRY.0;
        loop {
            let fetched = {
                let mut asked = self.inner.asked.lock().await;
                *asked = Some(Instant::now());
                tokio::select! {
                    () = stop.cancelled() => return,
                    fetched = self.fetch() => fetched,
                }
            };
            let pause = if fetched {
                retry = RETRY.0;
                REFRESH
            } else {
                let pause = retry;
                retry = (retry * 2).min(RETRY.1);
                pause
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Fetches the keys once, and tells whether it worked.
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
