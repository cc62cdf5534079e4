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

use axum::{body::Bytes, http::request::Parts};
use carrel_domain::sync;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientJsonRpcMessage, ClientRequest, GetExtensions as _, GetMeta as _, JsonRpcMessage,
        JsonRpcRequest, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    service::RequestContext,
    transport::Transport,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::error;

use super::{
    direct::{self, InlineCall, PlainRequest, ResultShape, SessionHandler},
    reply_connection::ReplyConnection,
    session_id::{SessionId, SessionOwner},
    session_streams::{CallRejected, SessionStreams, Stream},
};
use crate::{
    json_rpc,
    limits::{CHANNEL_CAPACITY, SHUTDOWN_GRACE, STREAM_RETENTION},
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
    /// Serves calls that take the short way; none before the handshake, after the end, or if none may.
    direct: Mutex<Option<SessionHandler>>,
    direct_calls: TaskTracker,
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
            direct: Mutex::default(),
            direct_calls: TaskTracker::new(),
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

    /// Lets plain calls take the short way to the handler, or ends that.
    pub(crate) fn serve_directly(&self, handler: Option<SessionHandler>) {
        *sync::lock(&self.direct) = handler;
    }

    /// Returns the handler if a plain call may take the short way to it now.
    pub(crate) fn direct_handler(&self) -> Option<(SessionHandler, ResultShape)> {
        let handler = sync::lock(&self.direct).clone()?;
        let shape = handler.shape()?;
        (!self.stop.is_cancelled()).then_some((handler, shape))
    }

    /// Starts a call the short way and returns its stream. The caller has to poll it.
    pub(crate) fn start_directly(
        self: &Arc<Self>,
        (handler, shape): (SessionHandler, ResultShape),
        request: PlainRequest,
        parts: Parts,
    ) -> Result<(Stream, InlineCall<()>), CallRejected> {
        let PlainRequest { identifier, method, meta } = request;
        let mut context = RequestContext::new(identifier.clone(), handler.peer);
        context.meta = meta;
        context.ct = self.stop.child_token();
        let stream = self.streams().open_direct(&identifier, context.ct.clone())?;
        context.extensions.insert(parts);
        let connection = ReplyConnection::new(Arc::clone(&stream.log), self.sends_priming_event());
        context.extensions.insert(connection);
        self.touch();
        let (session, own) = (Arc::clone(self), stream.clone());
        let running = self.direct_calls.token();
        let work = async move {
            let result = handler.handler.dispatch(method, context, shape).await;
            session.reply(&own, &identifier, result);
            drop(running);
        };
        Ok((stream, InlineCall::resumable(Box::pin(work), self.direct_calls.clone())))
    }

    fn reply(
        &self,
        stream: &Stream,
        identifier: &RequestId,
        result: Result<ServerResult, ErrorData>,
    ) {
        let message = direct::reply(identifier.clone(), result);
        match serde_json::to_vec(&message) {
            Ok(bytes) => {
                self.streams().reply(identifier, stream, Bytes::from(bytes), Instant::now());
            }
            Err(error) => {
                error!(%error, "could not encode a reply");
                self.streams().cancel(identifier);
            }
        }
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
        // The SDK has waited for its own calls by now.
        self.session.serve_directly(None);
        self.session.direct_calls.close();
        // Calls that need longer have no reply.
        let _ = timeout(SHUTDOWN_GRACE, self.session.direct_calls.wait()).await;
        self.session.streams().end_all();
        Ok(())
    }
}
