//! One session of a client whose revision has a handshake.
//!
//! A session joins HTTP requests, which come and go, to the SDK's service, which wants one lasting
//! transport. Messages of the client go through the `inbox` channel; messages of the server are routed
//! by [`SessionStreams`] to the event log of the call they belong to. Both directions are decoupled from
//! connections: a reply is logged whether or not a connection reads it.
//!
//! The life of a session: `initialize` opens it and runs the handshake; the reply to it sets
//! `initialized` and the features of the agreed revision. Each message and each closed stream renews
//! `last_used`. The end, by `DELETE`, expiry, eviction or shutdown, cancels `stop`: the SDK cancels the
//! running calls, their replies still reach their streams, and closing the transport ends what is left.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::body::Bytes;
use carrel_domain::sync;
use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ClientRequest, GetExtensions as _, GetMeta as _, JsonRpcMessage,
        JsonRpcRequest, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::Transport,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    reply_connection::ReplyConnection,
    session_id::{SessionId, SessionOwner},
    session_streams::{CallRejected, SessionStreams, Stream},
};
use crate::{
    json_rpc,
    limits::{CHANNEL_CAPACITY, STREAM_RETENTION},
};

/// The service of the session has ended and accepts no more messages.
#[derive(Debug)]
pub(crate) struct SessionClosed;

/// A call that could not be handed to the service.
#[derive(Debug)]
pub(crate) enum StartError {
    SessionClosed,
    Rejected(CallRejected),
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(super) id: SessionId,
    pub(super) owner: SessionOwner,
    /// Messages are boxed, because a channel allocates for its whole capacity at once.
    inbox: mpsc::Sender<Box<ClientJsonRpcMessage>>,
    streams: Mutex<SessionStreams>,
    pub(super) stop: CancellationToken,
    last_used: Mutex<Instant>,
    open_streams: AtomicUsize,
    initialized: AtomicBool,
    sends_priming_event: AtomicBool,
}

impl Session {
    /// Creates a session and the transport over which the SDK serves it.
    pub(crate) fn new(
        owner: SessionOwner,
        stop: CancellationToken,
    ) -> (Arc<Self>, SessionTransport) {
        let (inbox, messages) = mpsc::channel(CHANNEL_CAPACITY);
        let session = Arc::new(Self {
            id: SessionId::generate(),
            owner,
            inbox,
            streams: Mutex::default(),
            stop,
            last_used: Mutex::new(Instant::now()),
            open_streams: AtomicUsize::new(0),
            initialized: AtomicBool::new(false),
            sends_priming_event: AtomicBool::new(false),
        });
        let transport = SessionTransport { session: Arc::clone(&session), messages };
        (session, transport)
    }

    fn streams(&self) -> MutexGuard<'_, SessionStreams> {
        sync::lock(&self.streams)
    }

    /// Starts a call and returns its stream. A slot of the inbox is reserved first: after that nothing
    /// waits, so a dropped future never leaves a stream behind whose call does not run.
    pub(crate) async fn start(
        &self,
        mut request: JsonRpcRequest<ClientRequest>,
    ) -> Result<Stream, StartError> {
        let slot = self.inbox.reserve().await.map_err(|_| StartError::SessionClosed)?;
        let progress = request.request.get_meta().get_progress_token();
        let stream =
            self.streams().open(request.id.clone(), progress).map_err(StartError::Rejected)?;
        let connection = ReplyConnection::new(Arc::clone(&stream.log), self.sends_priming_event());
        request.request.extensions_mut().insert(connection);
        self.touch();
        slot.send(Box::new(JsonRpcMessage::Request(request)));
        Ok(stream)
    }

    /// Accepts a notification or a reply. The stream of a cancelled call ends here, since the SDK will
    /// not reply to it.
    pub(crate) async fn accept(&self, message: ClientJsonRpcMessage) -> Result<(), SessionClosed> {
        let cancelled: Option<RequestId> = json_rpc::cancelled_call(&message).cloned();
        self.touch();
        self.inbox.send(Box::new(message)).await.map_err(|_| SessionClosed)?;
        if let Some(identifier) = cancelled {
            self.streams().cancel(&identifier);
        }
        Ok(())
    }

    pub(crate) fn retain(&self, stream: &Stream) {
        self.streams().retain(stream, Instant::now());
    }

    pub(crate) fn find(&self, number: u64) -> Option<Stream> {
        self.streams().find(number)
    }

    pub(crate) fn initialized(&self) -> bool {
        self.initialized.load(Ordering::Relaxed)
    }

    /// Returns whether streams begin with an event without data. Clients of revisions before 2025-11-25
    /// fail to parse it as a message.
    pub(crate) fn sends_priming_event(&self) -> bool {
        self.sends_priming_event.load(Ordering::Relaxed)
    }

    fn touch(&self) {
        *sync::lock(&self.last_used) = Instant::now();
    }

    pub(crate) fn last_used(&self) -> Instant {
        *sync::lock(&self.last_used)
    }

    /// Counts an open event stream until the returned value is dropped.
    pub(crate) fn open_stream(self: &Arc<Self>) -> OpenStream {
        self.open_streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(self))
    }

    /// Returns whether the session has neither a running call nor an open stream and was not used for
    /// `timeout`. Drops finished streams past their retention on the way.
    pub(crate) fn is_idle(&self, timeout: Duration, now: Instant) -> bool {
        let mut streams = self.streams();
        streams.drop_finished(STREAM_RETENTION, now);
        !streams.has_running_calls()
            && self.open_streams.load(Ordering::Relaxed) == 0
            && now.saturating_duration_since(self.last_used()) >= timeout
    }

    /// Cancels the calls. Their streams end with their replies, the standalone stream ends at once.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.streams().end_standalone();
    }

    fn deliver(&self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        if let JsonRpcMessage::Response(response) = message
            && let ServerResult::InitializeResult(result) = &response.result
        {
            let sends_priming_event = result.protocol_version >= ProtocolVersion::V_2025_11_25;
            self.sends_priming_event.store(sends_priming_event, Ordering::Relaxed);
            self.initialized.store(true, Ordering::Relaxed);
        }
        let bytes = Bytes::from(serde_json::to_vec(message)?);
        self.streams().deliver(message, bytes, Instant::now());
        Ok(())
    }
}

/// Counts as an open event stream of a session until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Session>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open_streams.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

/// The SDK's side of a session. Sending never waits: a message goes straight to its event log.
#[derive(Debug)]
pub(crate) struct SessionTransport {
    pub(super) session: Arc<Session>,
    messages: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
}

impl Transport<RoleServer> for SessionTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        std::future::ready(self.session.deliver(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.messages.recv().await.map(|message| *message)
    }

    async fn close(&mut self) -> io::Result<()> {
        self.messages.close();
        self.session.streams().end_all();
        Ok(())
    }
}
