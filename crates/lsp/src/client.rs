//! The client's end of a connection to a language server.
//!
//! Replies come in any order and find their requests by number; numbers are never used again, so a late reply
//! belongs to none. A request that is given up, at its deadline or because its caller has gone, is cancelled at the server.
//! Requests of the server are answered from the task that reads, by a [`Peer`] that never waits: the answers have a
//! queue of their own, so that a server which waits for one is never waited for. One that leaves more unread than
//! the queue holds is given up.
//!
//! ```text
//! request, notify ──► outgoing ──┐
//!                                ├──► writer ──► server ──► reader ──► waiting requests
//!            answers of the peer ┘                            └──────► peer
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use carrel_domain::sync;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use crate::framing::{FrameReader, frame};
use crate::message::{self, Message, ResponseError};

/// Messages that wait for the server to read them. A batch of document changes fits in.
pub(crate) const MAX_OUTGOING: usize = 512;

/// Answers that wait for the server to read them.
const MAX_ANSWERS: usize = 256;

/// The receiver of what a server sends on its own. Neither function may block.
pub(crate) trait Peer: Send + Sync + 'static {
    fn notified(&self, method: &str, params: Value);
    fn asked(&self, method: &str, params: &Value) -> Result<Value, ResponseError>;
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("no reply in time")]
    TimedOut,
    #[error(transparent)]
    Refused(#[from] ResponseError),
    /// The connection has ended.
    #[error("{0}")]
    Closed(Arc<str>),
}

/// A connection to a language server. Dropping it ends its tasks and closes both streams.
pub(crate) struct Client {
    waiting: Arc<WaitingRequests>,
    outgoing: mpsc::Sender<Vec<u8>>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

#[derive(Default)]
struct WaitingRequests {
    state: Mutex<WaitingState>,
    closed: CancellationToken,
}

#[derive(Default)]
struct WaitingState {
    last_id: i64,
    replies: HashMap<i64, oneshot::Sender<Result<Value, ResponseError>>>,
    end: Option<Arc<str>>,
}

/// Room in the queue for a number of messages, which are then sent without waiting.
pub(crate) struct Batch<'c>(mpsc::PermitIterator<'c, Vec<u8>>);

/// A request in flight. Dropping it cancels the request, unless its reply has come.
struct PendingRequest<'c> {
    client: &'c Client,
    id: i64,
}

impl Client {
    /// Starts to read and write.
    pub(crate) fn new(
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        peer: Arc<dyn Peer>,
    ) -> Self {
        let waiting = Arc::<WaitingRequests>::default();
        let (outgoing, messages) = mpsc::channel(MAX_OUTGOING);
        let (answers, answered) = mpsc::channel(MAX_ANSWERS);
        let reader = read(FrameReader::new(output), Arc::clone(&waiting), answers, peer);
        let writer = write(input, answered, messages, Arc::clone(&waiting));
        let tasks = [tokio::spawn(reader), tokio::spawn(writer)].map(AbortOnDropHandle::new);
        Self { waiting, outgoing, _tasks: tasks }
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        until: Instant,
    ) -> Result<Value, RequestError> {
        let (id, reply) = self.waiting.register()?;
        let pending = PendingRequest { client: self, id };
        let body = message::request(id, method, params);
        let exchange = async {
            self.send(frame(&body)).await?;
            reply.await.map_err(|_| self.closed())?.map_err(RequestError::Refused)
        };
        let result = timeout_at(until, exchange).await.unwrap_or(Err(RequestError::TimedOut));
        drop(pending);
        result
    }

    /// Sends a notification as soon as the queue has room.
    pub(crate) async fn notify(&self, method: &str, params: &Value) -> Result<(), RequestError> {
        self.send(frame(&message::notification(method, params))).await
    }

    /// Waits for room for `count` notifications, at most [`MAX_OUTGOING`].
    pub(crate) async fn reserve(&self, count: usize) -> Result<Batch<'_>, RequestError> {
        let permits = self.outgoing.reserve_many(count).await.map_err(|_| self.closed())?;
        if self.is_closed() { Err(self.closed()) } else { Ok(Batch(permits)) }
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.waiting.closed.is_cancelled()
    }

    async fn send(&self, message: Vec<u8>) -> Result<(), RequestError> {
        tokio::select! {
            biased;
            () = self.waiting.closed.cancelled() => Err(self.closed()),
            sent = self.outgoing.send(message) => sent.map_err(|_| self.closed()),
        }
    }

    fn closed(&self) -> RequestError {
        let end = sync::lock(&self.waiting.state).end.clone();
        RequestError::Closed(end.unwrap_or_else(|| "the connection is closed".into()))
    }
}

impl Batch<'_> {
    /// Sends one of the notifications; one beyond the number that was reserved is dropped.
    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        let permit = self.0.next();
        debug_assert!(permit.is_some(), "more notifications than were reserved");
        if let Some(permit) = permit {
            permit.send(frame(&message::notification(method, params)));
        }
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let is_waiting = sync::lock(&self.client.waiting.state).replies.remove(&self.id).is_some();
        if is_waiting {
            let cancel = message::notification("$/cancelRequest", &json!({ "id": self.id }));
            // Without room the server reads nothing, and would not read this either.
            let _ = self.client.outgoing.try_send(frame(&cancel));
        }
    }
}

impl WaitingRequests {
    fn register(
        &self,
    ) -> Result<(i64, oneshot::Receiver<Result<Value, ResponseError>>), RequestError> {
        let mut state = sync::lock(&self.state);
        if let Some(end) = &state.end {
            return Err(RequestError::Closed(Arc::clone(end)));
        }
        let (sender, receiver) = oneshot::channel();
        state.last_id += 1;
        let id = state.last_id;
        state.replies.insert(id, sender);
        Ok((id, receiver))
    }

    fn resolve(&self, id: i64, result: Result<Value, ResponseError>) {
        let Some(reply) = sync::lock(&self.state).replies.remove(&id) else {
            debug!(id, "a reply to a request that was given up");
            return;
        };
        // The request may have been given up in this moment.
        let _ = reply.send(result);
    }

    fn close(&self, reason: &str) {
        let mut state = sync::lock(&self.state);
        state.end.get_or_insert_with(|| reason.into());
        state.replies.clear();
        drop(state);
        self.closed.cancel();
    }
}

async fn read(
    mut frames: FrameReader<impl AsyncRead + Unpin>,
    waiting: Arc<WaitingRequests>,
    answers: mpsc::Sender<Vec<u8>>,
    peer: Arc<dyn Peer>,
) {
    let end = loop {
        let body = match frames.next().await {
            Ok(body) => body,
            Err(error) => break error.to_string(),
        };
        match Message::parse(&body) {
            Some(Message::Response { id, result }) => waiting.resolve(id, result),
            Some(Message::Notification { method, params }) => peer.notified(&method, params),
            Some(Message::Request { id, method, params }) => {
                let answer = message::response(&id, peer.asked(&method, &params));
                if answers.try_send(frame(&answer)).is_err() {
                    break "it does not read its input".to_owned();
                }
            }
            None => debug!(bytes = body.len(), "a message that is no JSON-RPC"),
        }
    };
    waiting.close(&end);
}

async fn write(
    mut input: impl AsyncWrite + Unpin,
    mut answers: mpsc::Receiver<Vec<u8>>,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
    waiting: Arc<WaitingRequests>,
) {
    loop {
        let message = tokio::select! {
            biased;
            Some(answer) = answers.recv() => answer,
            message = outgoing.recv() => match message {
                Some(message) => message,
                None => return,
            },
        };
        let written = async {
            input.write_all(&message).await?;
            input.flush().await
        };
        if let Err(error) = written.await {
            debug!(%error, "a language server has closed its input");
            return waiting.close("it closed its input");
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}
