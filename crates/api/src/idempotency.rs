//! Idempotency keys: a repeated mutation gets the first reply.
//!
//! A client that loses the response of a `POST` cannot know whether the server acted. With an
//! `Idempotency-Key` it sends the same request again; the key, the route and the workspace (or the caller,
//! for routes without one) identify the mutation, and the digest of the body tells a repetition from a
//! different request, which is answered with `E_IDEMPOTENCY_MISMATCH`. Replies are kept for 24 hours.
//!
//! While the first request runs, a second one with its key waits:
//!
//! - In the same process it waits for an in-memory lock ([`InFlightGuard`]).
//! - In another process it polls the store until the reply is there. The first one holds a lease on the key
//!   ([`KeyLease`]) and extends it while it works, so that the crash of its process frees the key after ten
//!   seconds.
//!
//! A crash between the mutation and the stored reply runs the mutation again on a retry. Mutations that must
//! not run twice (task submission) store the key in the same transaction instead. Replies with 429 or 5xx are
//! not stored: a retry may succeed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use carrel_domain::{Code, WorkspaceId, hex, sync};
use carrel_store::{IdempotencyKey, Store, StoreError, StoredReply};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::auth::{Caller, random};
use crate::response::{ErrorResponse, Result, RouteResult, bytes_response, json_response};
use crate::state::Api;

pub(crate) const KEY_HEADER: &str = "idempotency-key";

pub(crate) const MAX_KEY_CHARS: usize = 255;

/// The lease of a key. A process that crashed blocks it for this long.
const LEASE: Duration = Duration::from_secs(10);

/// Interval at which the store is asked for the reply of another process.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) type InFlight = Mutex<HashMap<(String, String), Arc<tokio::sync::Mutex<()>>>>;

pub(crate) type WorkResult = Result<Value>;

pub(crate) struct IdempotentRequest<'a> {
    pub(crate) api: &'a Api,
    pub(crate) scope: KeyScope<'a>,
    /// The name of the route. The same key on two routes means two mutations.
    pub(crate) route: &'static str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    /// The status of a success.
    pub(crate) status: StatusCode,
}

/// The owner of a key. The same key means nothing to another owner.
#[derive(Clone, Copy)]
pub(crate) enum KeyScope<'a> {
    Workspace(WorkspaceId),
    /// The caller, for routes that concern no workspace.
    Caller(&'a Caller),
}

impl KeyScope<'_> {
    fn scope(self) -> String {
        match self {
            Self::Workspace(id) => id.to_string(),
            Self::Caller(caller) => caller.identity(),
        }
    }
}

pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get(KEY_HEADER) else { return Ok(None) };
    let key = value.to_str().unwrap_or_default().trim();
    let length = key.chars().count();
    if length == 0 || length > MAX_KEY_CHARS {
        return Err(ErrorResponse::field("Idempotency-Key", "is 1 to 255 visible characters"));
    }
    Ok(Some(key.to_owned()))
}

impl<'a> IdempotentRequest<'a> {
    /// Runs `work`, or returns the stored reply of the first request with this key.
    ///
    /// Callers check authorization before: a repetition is answered without running `work`.
    pub(crate) fn run_once(
        self,
        work: impl Future<Output = WorkResult> + Send + 'a,
    ) -> BoxFuture<'a, RouteResult> {
        Box::pin(self.run_with_key(Box::pin(work)))
    }

    async fn run_with_key(self, work: BoxFuture<'_, WorkResult>) -> RouteResult {
        let Some(name) = key(self.headers)? else { return self.respond(work.await) };
        let key = IdempotencyKey {
            scope: format!("{} {}", self.scope.scope(), self.route),
            key: name,
            digest: Sha256::digest(self.body).into(),
        };
        let turn = InFlightGuard::new(self.api, (key.scope.clone(), key.key.clone()));
        let _own = turn.lock.lock().await;
        self.run_or_replay(key, work).await
    }

    async fn run_or_replay(
        &self,
        key: IdempotencyKey,
        work: BoxFuture<'_, WorkResult>,
    ) -> RouteResult {
        let store = self.api.options.tasks.store();
        let hold = loop {
            if let Some(first) = store.reply(&key.scope, &key.key).await? {
                return replay(&key, &first);
            }
            match KeyLease::take(store, &key).await? {
                Some(hold) => break hold,
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        // The process that held the lease before may have stored its reply meanwhile.
        if let Some(first) = store.reply(&key.scope, &key.key).await? {
            return replay(&key, &first);
        }
        let done = hold.during(work).await;
        let (status, body) = match &done {
            Ok(body) => (self.status, body),
            Err(failed) => (failed.status(), failed.body()),
        };
        // An overload or a failure of the server may pass; a retry runs again.
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return self.respond(done);
        }
        let text = body.to_string();
        let now = self.api.now();
        let stored = store.save_reply(key.clone(), status.as_u16(), text, now).await?;
        let mut response = replay(&key, &stored)?;
        if let Err(failed) = &done {
            failed.mark(&mut response);
        }
        Ok(response)
    }

    fn respond(&self, done: WorkResult) -> RouteResult {
        done.map(|body| json_response(self.status, &body))
    }
}

/// A lease on a key in the store. Dropping it releases the key.
struct KeyLease {
    store: Arc<dyn Store>,
    key: IdempotencyKey,
    holder: String,
}

impl KeyLease {
    /// Takes the lease, or returns `None` if another process holds it.
    async fn take(
        store: &Arc<dyn Store>,
        key: &IdempotencyKey,
    ) -> Result<Option<Self>, StoreError> {
        let holder = hex::encode(&random::<16>());
        let taken = store.acquire_key(key, &holder, LEASE).await?;
        let (store, key) = (Arc::clone(store), key.clone());
        Ok(taken.then(|| Self { store, key, holder }))
    }

    async fn during(&self, work: BoxFuture<'_, WorkResult>) -> WorkResult {
        let extending = async {
            loop {
                tokio::time::sleep(LEASE / 4).await;
                if let Err(error) = self.store.acquire_key(&self.key, &self.holder, LEASE).await {
                    warn!(%error, "could not keep an idempotency key, trying again");
                }
            }
        };
        tokio::select! {
            done = work => done,
            () = extending => unreachable!("the loop has no end"),
        }
    }
}

impl Drop for KeyLease {
    fn drop(&mut self) {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let holder = std::mem::take(&mut self.holder);
        tokio::spawn(async move {
            // If this fails, the lease expires by itself.
            let _ = store.release_key(&key, &holder).await;
        });
    }
}

/// A reference to the in-memory lock of a key. The last reference removes the lock, also when its request was
/// dropped.
struct InFlightGuard<'a> {
    api: &'a Api,
    name: (String, String),
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> InFlightGuard<'a> {
    fn new(api: &'a Api, name: (String, String)) -> Self {
        let mut waiting = sync::lock(&api.inner.in_flight);
        let lock = Arc::clone(waiting.entry(name.clone()).or_default());
        Self { api, name, lock }
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        let mut waiting = sync::lock(&self.api.inner.in_flight);
        // The map holds one reference, and this guard the other.
        if waiting.get(&self.name).is_some_and(|turn| Arc::strong_count(turn) <= 2) {
            waiting.remove(&self.name);
        }
    }
}

fn replay(key: &IdempotencyKey, first: &StoredReply) -> RouteResult {
    if first.digest != key.digest {
        let message = format!("idempotency key {:?} was used for another request", key.key);
        let detail = json!({ "idempotency_key": key.key });
        return Err(ErrorResponse::new(Code::IdempotencyMismatch, message, detail));
    }
    let status = StatusCode::from_u16(first.status).unwrap_or(StatusCode::OK);
    Ok(bytes_response(status, "application/json", first.body.clone()))
}
