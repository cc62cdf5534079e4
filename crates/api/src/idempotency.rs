//! RequestCounts that may be sent again: the same key and body get the first answer.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use carrel_domain::{Code, WorkspaceId, hex, sync};
use carrel_store::{IdempotencyKey, Store, StoreError, StoredReply};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::auth::{Caller, random};
use crate::response::{ErrorResponse, RouteResult, bytes_response, json_response};
use crate::state::Api;

/// The header with the caller's key.
pub(crate) const KEY_HEADER: &str = "idempotency-key";

/// Characters of a key.
pub(crate) const MAX_KEY_CHARS: usize = 255;

/// How long another process may have a key without a sign of life.
const LEASE: Duration = Duration::from_secs(10);

/// How often to look whether another process has answered.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Keys whose first request is being answered.
pub(crate) type InFlight = Mutex<HashMap<(String, String), Arc<tokio::sync::Mutex<()>>>>;

/// What a request that may be repeated answers with.
pub(crate) type WorkResult = Result<(StatusCode, Value), ErrorResponse>;

/// A request that changes something.
pub(crate) struct IdempotentRequest<'a> {
    pub(crate) api: &'a Api,
    pub(crate) scope: KeyScope<'a>,
    /// What it does.
    pub(crate) route: &'static str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

/// Where a request changes something. Keys of one scope mean nothing in another.
#[derive(Clone, Copy)]
pub(crate) enum KeyScope<'a> {
    Workspace(WorkspaceId),
    /// It concerns no workspace yet: the keys are the caller's own.
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

/// Returns the key of a request.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, ErrorResponse> {
    let Some(value) = headers.get(KEY_HEADER) else { return Ok(None) };
    let key = value.to_str().unwrap_or_default().trim();
    let length = key.chars().count();
    if length == 0 || length > MAX_KEY_CHARS {
        return Err(ErrorResponse::field("Idempotency-Key", "is 1 to 255 visible characters"));
    }
    Ok(Some(key.to_owned()))
}

impl<'a> IdempotentRequest<'a> {
    /// Does it once for each key. The caller is one who may do it: the first answer is theirs to see.
    pub(crate) fn run_once(
        self,
        work: impl Future<Output = WorkResult> + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = RouteResult> + Send + 'a>> {
        Box::pin(self.run_with_key(Box::pin(work)))
    }

    async fn run_with_key(self, work: impl Future<Output = WorkResult>) -> RouteResult {
        let Some(key) = key(self.headers)? else { return respond(work.await) };
        let repeat = IdempotencyKey {
            scope: format!("{} {}", self.scope.scope(), self.route),
            key,
            digest: Sha256::digest(self.body).into(),
        };
        let turn = InFlightGuard::new(self.api, (repeat.scope.clone(), repeat.key.clone()));
        let _own = turn.lock.lock().await;
        self.run_or_replay(repeat, work).await
    }

    async fn run_or_replay(
        &self,
        repeat: IdempotencyKey,
        work: impl Future<Output = WorkResult>,
    ) -> RouteResult {
        let store = self.api.inner.tasks.store();
        let hold = loop {
            if let Some(first) = store.reply(&repeat.scope, &repeat.key).await? {
                return replay(&repeat, &first);
            }
            match KeyLease::take(store, &repeat).await? {
                Some(hold) => break hold,
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        };
        // Whoever had it before may have been answered since.
        if let Some(first) = store.reply(&repeat.scope, &repeat.key).await? {
            return replay(&repeat, &first);
        }
        let done = hold.during(work).await;
        let (status, body) = match &done {
            Ok((status, body)) => (*status, body.clone()),
            Err(failed) => (failed.status(), failed.body().clone()),
        };
        // What may go better the next time is not held against it.
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return respond(done);
        }
        let text = body.to_string();
        let now = self.api.now();
        let kept = store.save_reply(repeat.clone(), status.as_u16(), text, now).await?;
        replay(&repeat, &kept)
    }
}

/// A key that no other process answers meanwhile. It is given back when this is dropped.
struct KeyLease {
    store: Arc<dyn Store>,
    repeat: IdempotencyKey,
    holder: String,
}

impl KeyLease {
    /// Takes a key, unless another process has it.
    async fn take(
        store: &Arc<dyn Store>,
        repeat: &IdempotencyKey,
    ) -> Result<Option<Self>, StoreError> {
        let holder = hex::encode(&random::<16>());
        let taken = store.acquire_key(repeat, &holder, LEASE).await?;
        let (store, repeat) = (Arc::clone(store), repeat.clone());
        Ok(taken.then(|| Self { store, repeat, holder }))
    }

    /// Does something, and keeps the key meanwhile.
    async fn during(&self, work: impl Future<Output = WorkResult>) -> WorkResult {
        let keeping = async {
            loop {
                tokio::time::sleep(LEASE / 4).await;
                if let Err(error) = self.store.acquire_key(&self.repeat, &self.holder, LEASE).await
                {
                    warn!(%error, "could not keep an idempotency key, trying again");
                }
            }
        };
        tokio::select! {
            done = work => done,
            () = keeping => unreachable!("it goes on for ever"),
        }
    }
}

impl Drop for KeyLease {
    fn drop(&mut self) {
        let (store, repeat) = (Arc::clone(&self.store), self.repeat.clone());
        let holder = std::mem::take(&mut self.holder);
        tokio::spawn(async move {
            // It runs out by itself if this does not work.
            let _ = store.release_key(&repeat, &holder).await;
        });
    }
}

/// A scope in the row of those who asked with the same key. It is forgotten when the last one leaves,
/// whether answered or gone.
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
        // One is in the row itself, and one is here.
        if waiting.get(&self.name).is_some_and(|turn| Arc::strong_count(turn) <= 2) {
            waiting.remove(&self.name);
        }
    }
}

fn respond(done: WorkResult) -> RouteResult {
    done.map(|(status, body)| json_response(status, &body))
}

fn replay(repeat: &IdempotencyKey, first: &StoredReply) -> RouteResult {
    if first.digest != repeat.digest {
        let message = format!("idempotency key {:?} was used for another request", repeat.key);
        let detail = json!({ "idempotency_key": repeat.key });
        return Err(ErrorResponse::new(Code::IdempotencyMismatch, message, detail));
    }
    let status = StatusCode::from_u16(first.status).unwrap_or(StatusCode::OK);
    let response: Response = bytes_response(status, "application/json", first.body.clone());
    Ok(response)
}
