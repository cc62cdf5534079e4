//! Requests that may be sent again: the same key and body get the first answer.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use carrel_domain::{Code, WorkspaceId};
use carrel_store::{IdempotencyKey, Store, StoreError, StoredReply};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing::warn;

use crate::answer::{Answered, Failed, bytes_answer, json_answer};
use crate::auth::{Caller, hex, random};
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
pub(crate) type Done = Result<(StatusCode, Value), Failed>;

/// A request that changes something.
pub(crate) struct Change<'a> {
    pub(crate) api: &'a Api,
    pub(crate) place: Place<'a>,
    /// What it does.
    pub(crate) route: &'static str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

/// Where a request changes something. Keys of one place mean nothing in another.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Workspace(WorkspaceId),
    /// It concerns no workspace yet: the keys are the caller's own.
    Caller(&'a Caller),
}

impl Place<'_> {
    fn scope(self) -> String {
        match self {
            Self::Workspace(id) => id.to_string(),
            Self::Caller(caller) => caller.identity(),
        }
    }
}

/// Returns the key of a request.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, Failed> {
    let Some(value) = headers.get(KEY_HEADER) else { return Ok(None) };
    let key = value.to_str().unwrap_or_default().trim();
    let length = key.chars().count();
    if length == 0 || length > MAX_KEY_CHARS {
        return Err(Failed::field("Idempotency-Key", "is 1 to 255 visible characters"));
    }
    Ok(Some(key.to_owned()))
}

impl<'a> Change<'a> {
    /// Does it once for each key. The caller is one who may do it: the first answer is theirs to see.
    pub(crate) fn once(
        self,
        work: impl Future<Output = Done> + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = Answered> + Send + 'a>> {
        Box::pin(self.do_once(Box::pin(work)))
    }

    async fn do_once(self, work: impl Future<Output = Done>) -> Answered {
        let Some(key) = key(self.headers)? else { return answer(work.await) };
        let repeat = IdempotencyKey {
            scope: format!("{} {}", self.place.scope(), self.route),
            key,
            digest: Sha256::digest(self.body).into(),
        };
        let turn = Turn::new(self.api, (repeat.scope.clone(), repeat.key.clone()));
        let _own = turn.lock.lock().await;
        self.first_or_again(repeat, work).await
    }

    async fn first_or_again(
        &self,
        repeat: IdempotencyKey,
        work: impl Future<Output = Done>,
    ) -> Answered {
        let store = self.api.inner.tasks.store();
        let hold = loop {
            if let Some(first) = store.reply(&repeat.scope, &repeat.key).await? {
                return again(&repeat, &first);
            }
            match Hold::take(store, &repeat).await? {
                Some(hold) => break hold,
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        };
        // Whoever had it before may have been answered since.
        if let Some(first) = store.reply(&repeat.scope, &repeat.key).await? {
            return again(&repeat, &first);
        }
        let done = hold.during(work).await;
        let (status, body) = match &done {
            Ok((status, body)) => (*status, body.clone()),
            Err(failed) => (failed.status(), failed.body().clone()),
        };
        // What may go better the next time is not held against it.
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return answer(done);
        }
        let text = body.to_string();
        let now = self.api.now();
        let kept = store.save_reply(repeat.clone(), status.as_u16(), text, now).await?;
        again(&repeat, &kept)
    }
}

/// A key that no other process answers meanwhile. It is given back when this is dropped.
struct Hold {
    store: Arc<dyn Store>,
    repeat: IdempotencyKey,
    holder: String,
}

impl Hold {
    /// Takes a key, unless another process has it.
    async fn take(
        store: &Arc<dyn Store>,
        repeat: &IdempotencyKey,
    ) -> Result<Option<Self>, StoreError> {
        let holder = hex(&random::<16>());
        let taken = store.acquire_key(repeat, &holder, LEASE).await?;
        let (store, repeat) = (Arc::clone(store), repeat.clone());
        Ok(taken.then(|| Self { store, repeat, holder }))
    }

    /// Does something, and keeps the key meanwhile.
    async fn during(&self, work: impl Future<Output = Done>) -> Done {
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

impl Drop for Hold {
    fn drop(&mut self) {
        let (store, repeat) = (Arc::clone(&self.store), self.repeat.clone());
        let holder = std::mem::take(&mut self.holder);
        tokio::spawn(async move {
            // It runs out by itself if this does not work.
            let _ = store.release_key(&repeat, &holder).await;
        });
    }
}

/// A place in the row of those who asked with the same key. It is forgotten when the last one leaves,
/// whether answered or gone.
struct Turn<'a> {
    api: &'a Api,
    name: (String, String),
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> Turn<'a> {
    fn new(api: &'a Api, name: (String, String)) -> Self {
        let mut waiting = api.inner.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = Arc::clone(waiting.entry(name.clone()).or_default());
        Self { api, name, lock }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut waiting = self.api.inner.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        // One is in the row itself, and one is here.
        if waiting.get(&self.name).is_some_and(|turn| Arc::strong_count(turn) <= 2) {
            waiting.remove(&self.name);
        }
    }
}

fn answer(done: Done) -> Answered {
    done.map(|(status, body)| json_answer(status, &body))
}

fn again(repeat: &IdempotencyKey, first: &StoredReply) -> Answered {
    if first.digest != repeat.digest {
        let message = format!("idempotency key {:?} was used for another request", repeat.key);
        let detail = json!({ "idempotency_key": repeat.key });
        return Err(Failed::new(Code::IdempotencyMismatch, message, detail));
    }
    let status = StatusCode::from_u16(first.status).unwrap_or(StatusCode::OK);
    let response: Response = bytes_answer(status, "application/json", first.body.clone());
    Ok(response)
}
