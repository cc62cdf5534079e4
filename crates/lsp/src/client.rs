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
        let tasks = [carrel_exec::spawn_task(reader), carrel_exec::spawn_task(writer)]
            .map(AbortOnDropHandle::new);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::METHOD_NOT_FOUND;
    use pretty_assertions::assert_eq;
    use std::time::Duration;
    use tokio::io::{DuplexStream, duplex};

    /// A peer that notes notifications and knows one request.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Peer for Notes {
        fn notified(&self, method: &str, params: Value) {
            sync::lock(&self.0).push(format!("{method} {params}"));
        }

        fn asked(&self, method: &str, params: &Value) -> Result<Value, ResponseError> {
            match method {
                "double" => Ok(json!(params["number"].as_i64().unwrap_or_default() * 2)),
                other => Err(ResponseError { code: METHOD_NOT_FOUND, message: other.to_owned() }),
            }
        }
    }

    /// The server's end of a connection.
    struct Server {
        frames: FrameReader<DuplexStream>,
        output: DuplexStream,
    }

    impl Server {
        async fn read(&mut self) -> Value {
            serde_json::from_slice(&self.frames.next().await.unwrap()).unwrap()
        }

        async fn write(&mut self, message: Value) {
            self.output.write_all(&frame(message.to_string().as_bytes())).await.unwrap();
        }
    }

    fn connection() -> (Client, Server, Arc<Notes>) {
        let (output, to_client) = duplex(1 << 16);
        let (from_client, input) = duplex(1 << 16);
        let notes = Arc::<Notes>::default();
        let client = Client::new(output, input, Arc::clone(&notes) as Arc<dyn Peer>);
        (client, Server { frames: FrameReader::new(from_client), output: to_client }, notes)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[tokio::test]
    async fn replies_find_their_requests_in_any_order() {
        let (client, mut server, _) = connection();
        let serving = async {
            let (one, two) = (server.read().await, server.read().await);
            for request in [two, one] {
                let reply = json!({ "id": request["id"], "result": request["params"] });
                server.write(reply).await;
            }
        };
        let (params, others) = (json!([1]), json!([2]));
        let (one, two, ()) = tokio::join!(
            client.request("a", &params, soon()),
            client.request("b", &others, soon()),
            serving
        );
        assert_eq!((one, two), (Ok(params), Ok(others)));
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_cancelled_and_its_late_reply_ignored() {
        let (client, mut server, _) = connection();
        let late = client.request("slow", &Value::Null, Instant::now()).await;
        assert_eq!(late, Err(RequestError::TimedOut));
        assert_eq!(server.read().await["method"], "slow");
        let cancel = server.read().await;
        assert_eq!(
            (&cancel["method"], &cancel["params"]["id"]),
            (&json!("$/cancelRequest"), &json!(1))
        );
        server.write(json!({ "id": 1, "result": "late" })).await;
        let params = Value::Null;
        let (result, ()) = tokio::join!(client.request("next", &params, soon()), async {
            let request = server.read().await;
            server.write(json!({ "id": request["id"], "result": "next" })).await;
        });
        assert_eq!(result, Ok(json!("next")));
    }

    #[tokio::test]
    async fn a_dropped_request_is_cancelled_as_well() {
        let (client, mut server, _) = connection();
        let params = Value::Null;
        let mut asking = Box::pin(client.request("slow", &params, soon()));
        tokio::select! {
            _ = &mut asking => panic!("there is no reply"),
            request = server.read() => assert_eq!(request["method"], "slow"),
        }
        drop(asking);
        assert_eq!(server.read().await["method"], "$/cancelRequest");
    }

    #[tokio::test]
    async fn requests_of_the_server_are_answered_while_a_reply_is_awaited() {
        let (client, mut server, notes) = connection();
        let serving = async {
            let request = server.read().await;
            server.write(json!({ "method": "note", "params": 7 })).await;
            server
                .write(json!({ "id": "x", "method": "double", "params": { "number": 21 } }))
                .await;
            server.write(json!({ "id": 1, "method": "unknown" })).await;
            let (doubled, unknown) = (server.read().await, server.read().await);
            assert_eq!((&doubled["id"], &doubled["result"]), (&json!("x"), &json!(42)));
            assert_eq!(
                (&unknown["id"], &unknown["error"]["code"]),
                (&json!(1), &json!(METHOD_NOT_FOUND))
            );
            server.write(json!({ "id": request["id"], "result": null })).await;
        };
        let params = Value::Null;
        let (result, ()) = tokio::join!(client.request("a", &params, soon()), serving);
        assert_eq!(result, Ok(Value::Null));
        assert_eq!(*sync::lock(&notes.0), ["note 7"]);
    }

    #[tokio::test]
    async fn what_is_no_message_is_skipped_and_what_is_no_frame_ends_the_connection() {
        let (client, mut server, _) = connection();
        let serving = async {
            server.read().await;
            server.output.write_all(&frame(b"{ this is no JSON")).await.unwrap();
            server.write(json!([1, 2])).await;
            server.output.write_all(b"nonsense\r\n\r\n").await.unwrap();
        };
        let params = Value::Null;
        let (result, ()) = tokio::join!(client.request("a", &params, soon()), serving);
        let reason = "it wrote a message without Content-Length";
        assert_eq!(result, Err(RequestError::Closed(reason.into())));
        let later = client.request("b", &params, soon()).await;
        assert_eq!(later, Err(RequestError::Closed(reason.into())));
        assert!(client.is_closed() && client.reserve(1).await.is_err());
    }

    #[tokio::test]
    async fn a_server_that_dies_in_the_middle_ends_every_request() {
        let (client, mut server, _) = connection();
        let params = Value::Null;
        let serving = async move {
            server.read().await;
            server.output.write_all(b"Content-Length: 100\r\n\r\n{").await.unwrap();
        };
        let (one, two, ()) = tokio::join!(
            client.request("a", &params, soon()),
            client.request("b", &params, soon()),
            serving
        );
        let closed =
            |result: &Result<Value, RequestError>| matches!(result, Err(RequestError::Closed(_)));
        assert!(closed(&one) && closed(&two), "{one:?} {two:?}");
    }

    #[tokio::test]
    async fn a_server_that_reads_nothing_and_asks_for_ever_is_given_up() {
        let (client, mut server, _) = connection();
        let asking = carrel_exec::spawn_task(async move {
            let request = json!({ "id": 1, "method": "x".repeat(1000) });
            let body = frame(request.to_string().as_bytes());
            // The client closes its end when it has given up.
            while server.output.write_all(&body).await.is_ok() {}
            server
        });
        let result = client.request("a", &Value::Null, soon()).await;
        let expected = RequestError::Closed("it does not read its input".into());
        assert_eq!(result, Err(expected));
        asking.await.unwrap();
    }

    #[tokio::test]
    async fn a_batch_is_sent_in_one_go() {
        let (client, mut server, _) = connection();
        let mut batch = client.reserve(2).await.unwrap();
        batch.notify("one", &json!(1));
        batch.notify("two", &json!(2));
        drop(batch);
        assert_eq!(server.read().await["method"], "one");
        assert_eq!(server.read().await["method"], "two");
    }
}
