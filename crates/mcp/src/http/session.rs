//! One client of a revision with a handshake.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::body::Bytes;
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
    handler_scope::{ReplyConnection, SessionId, SessionOwner},
    session_streams::{CallRejected, SessionStreams, Stream},
};
use crate::{
    json_rpc,
    limits::{CHANNEL_CAPACITY, STREAM_RETENTION},
};

/// The session is over and takes no more messages.
#[derive(Debug)]
pub(crate) struct SessionClosed;

/// Why a call was not started.
#[derive(Debug)]
pub(crate) enum StartError {
    SessionClosed,
    Rejected(CallRejected),
}

/// A session: messages in through `inbox`, messages out by `routes`.
#[derive(Debug)]
pub(crate) struct Session {
    id: SessionId,
    /// Who began it.
    owner: SessionOwner,
    /// Messages are boxed because a channel holds room for many of them from the start.
    inbox: mpsc::Sender<Box<ClientJsonRpcMessage>>,
    routes: Mutex<SessionStreams>,
    /// Cancels the calls and ends the streams.
    stop: CancellationToken,
    last_used: Mutex<Instant>,
    open_streams: AtomicUsize,
    initialized: AtomicBool,
    sends_priming_event: AtomicBool,
}

impl Session {
    /// Makes a session and the transport by which the SDK serves it.
    pub(crate) fn new(
        owner: SessionOwner,
        stop: CancellationToken,
    ) -> (Arc<Self>, SessionTransport) {
        let (inbox, messages) = mpsc::channel(CHANNEL_CAPACITY);
        let session = Arc::new(Self {
            id: SessionId::generate(),
            owner,
            inbox,
            routes: Mutex::default(),
            stop,
            last_used: Mutex::new(Instant::now()),
            open_streams: AtomicUsize::new(0),
            initialized: AtomicBool::new(false),
            sends_priming_event: AtomicBool::new(false),
        });
        let transport = SessionTransport { session: Arc::clone(&session), messages };
        (session, transport)
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Whether it answers to this one.
    pub(crate) fn belongs_to(&self, owner: &SessionOwner) -> bool {
        self.owner == *owner
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    fn routes(&self) -> MutexGuard<'_, SessionStreams> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a call. The place in the inbox is taken first, so that a caller who stops waiting
    /// never leaves a call behind that nobody runs.
    pub(crate) async fn start(
        &self,
        mut request: JsonRpcRequest<ClientRequest>,
    ) -> Result<Stream, StartError> {
        let place = self.inbox.reserve().await.map_err(|_| StartError::SessionClosed)?;
        let progress = request.request.get_meta().get_progress_token();
        let stream =
            self.routes().open(request.id.clone(), progress).map_err(StartError::Rejected)?;
        let connection = ReplyConnection::new(Arc::clone(&stream.log), self.sends_priming_event());
        request.request.extensions_mut().insert(connection);
        self.touch();
        place.send(Box::new(JsonRpcMessage::Request(request)));
        Ok(stream)
    }

    /// Takes a message that needs no reply. A cancelled call has its stream ended, since the SDK
    /// will not reply to it.
    pub(crate) async fn accept(&self, message: ClientJsonRpcMessage) -> Result<(), SessionClosed> {
        let cancelled: Option<RequestId> = json_rpc::cancelled_call(&message).cloned();
        self.touch();
        self.inbox.send(Box::new(message)).await.map_err(|_| SessionClosed)?;
        if let Some(identifier) = cancelled {
            self.routes().cancel(&identifier);
        }
        Ok(())
    }

    /// Makes a stream resumable.
    pub(crate) fn keep(&self, stream: &Stream) {
        self.routes().keep(stream, Instant::now());
    }

    /// Finds a stream by its number.
    pub(crate) fn find(&self, number: u64) -> Option<Stream> {
        self.routes().find(number)
    }

    /// Whether the handshake succeeded.
    pub(crate) fn initialized(&self) -> bool {
        self.initialized.load(Ordering::Relaxed)
    }

    /// Whether streams begin with an empty event. Clients of older revisions trip over it.
    pub(crate) fn sends_priming_event(&self) -> bool {
        self.sends_priming_event.load(Ordering::Relaxed)
    }

    fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an open stream until the result is dropped.
    pub(crate) fn open_stream(self: &Arc<Self>) -> OpenStream {
        self.open_streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::clone(self))
    }

    /// Whether nothing has happened for `idle`. Also forgets what is too old to be resumed.
    pub(crate) fn sweep(&self, idle: Duration, now: Instant) -> bool {
        let mut routes = self.routes();
        routes.forget_finished(STREAM_RETENTION, now);
        !routes.busy()
            && self.open_streams.load(Ordering::Relaxed) == 0
            && now.saturating_duration_since(self.last_used()) >= idle
    }

    /// Cancels the calls. Their streams end with their replies, the standalone one at once.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.routes().end_standalone();
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
        self.routes().deliver(message, bytes, Instant::now());
        Ok(())
    }
}

/// An open stream of a session.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Session>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open_streams.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

/// The SDK's side of a session. Sending never waits: messages go straight to their stream.
#[derive(Debug)]
pub(crate) struct SessionTransport {
    session: Arc<Session>,
    messages: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
}

impl SessionTransport {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }
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
        self.session.routes().end_all();
        Ok(())
    }
}
