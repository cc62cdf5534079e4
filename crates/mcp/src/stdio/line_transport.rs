//! The SDK's transport over lines.
//!
//! Errors of the transport itself are replied to here, before the SDK sees a message: lines that are not
//! messages or too long, a request id that is in use, more than [`MAX_IN_FLIGHT`] running calls. Writing
//! happens in a task of its own, so that a reply is never cut in half when the SDK drops a future, and so
//! that reading goes on while a client reads slowly.

use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex},
};

use carrel_domain::sync;
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::line_reader::{InputLine, LineReader};
use crate::{
    json_rpc::{self, MessageError},
    limits::{CHANNEL_CAPACITY, MAX_IN_FLIGHT, MAX_MESSAGE_BYTES},
};

/// The parts that outlive the transport: the signal that the input ended, and the writer task.
pub(super) struct StdioEnds {
    pub(super) input_ended: CancellationToken,
    pub(super) writer: JoinHandle<()>,
}

/// Reads messages as lines and queues replies for the writer task.
pub(super) struct LineTransport<R> {
    lines: LineReader<R>,
    output: Option<mpsc::Sender<Vec<u8>>>,
    /// A reply of the transport itself that waits for capacity of the output.
    unsent: Option<Vec<u8>>,
    running: Arc<Mutex<HashSet<RequestId>>>,
    started: bool,
    input_ended: CancellationToken,
    output_broken: CancellationToken,
}

/// The handling of one line.
enum LineAction {
    Deliver(Box<ClientJsonRpcMessage>),
    Reply(Vec<u8>),
    Ignore,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    /// Starts the writer task.
    pub(super) fn start<W>(reader: R, writer: W) -> (Self, StdioEnds)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (output, waiting) = mpsc::channel(CHANNEL_CAPACITY);
        let input_ended = CancellationToken::new();
        let output_broken = CancellationToken::new();
        let writer = tokio::spawn(write_all(writer, waiting, output_broken.clone()));
        let ends = StdioEnds { input_ended: input_ended.clone(), writer };
        let transport = Self {
            lines: LineReader::new(reader, MAX_MESSAGE_BYTES),
            output: Some(output),
            unsent: None,
            running: Arc::default(),
            started: false,
            input_ended,
            output_broken,
        };
        (transport, ends)
    }

    fn parse_line(&mut self, line: &[u8]) -> LineAction {
        match json_rpc::parse(line) {
            Ok(message) => self.admit(message),
            Err(MessageError::Syntax(reason)) => {
                reply(None, ErrorData::parse_error(format!("not JSON: {reason}"), None))
            }
            Err(MessageError::Shape(identifier, reason)) => {
                reply(identifier, ErrorData::invalid_request(reason, None))
            }
            Err(MessageError::UnknownNotification) => LineAction::Ignore,
        }
    }

    fn admit(&mut self, message: ClientJsonRpcMessage) -> LineAction {
        let mut running = sync::lock(&self.running);
        if let JsonRpcMessage::Request(request) = &message {
            let identifier = request.id.clone();
            if running.len() >= MAX_IN_FLIGHT {
                return reply(Some(identifier), json_rpc::overloaded("too many calls are running"));
            }
            if !running.insert(identifier.clone()) {
                let error = ErrorData::invalid_request("the identifier is already in use", None);
                return reply(Some(identifier), error);
            }
            self.started = true;
        }
        // The SDK does not reply to a cancelled call, so its id is free from here on.
        if let Some(identifier) = json_rpc::cancelled_call(&message) {
            running.remove(identifier);
        }
        // The SDK ends the session if its first message is not a request.
        if self.started { LineAction::Deliver(Box::new(message)) } else { LineAction::Ignore }
    }

    /// Sends the transport's own reply. It stays in `unsent` until there is capacity, since the SDK may drop
    /// this future at any await.
    async fn send_unsent(&mut self) -> Option<()> {
        if self.unsent.is_some() {
            let permit = self.output.as_ref()?.reserve().await.ok()?;
            permit.send(self.unsent.take()?);
        }
        Some(())
    }

    async fn next_message(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.send_unsent().await?;
            let action = match self.lines.next().await {
                Ok(InputLine::Whole(line)) => self.parse_line(&line),
                Ok(InputLine::TooLong) => reply(None, too_large()),
                Ok(InputLine::End) => return None,
                Err(error) => {
                    warn!(%error, "could not read from the client");
                    return None;
                }
            };
            match action {
                LineAction::Deliver(message) => return Some(*message),
                LineAction::Reply(bytes) => self.unsent = Some(bytes),
                LineAction::Ignore => {}
            }
        }
    }
}

fn reply(identifier: Option<RequestId>, error: ErrorData) -> LineAction {
    LineAction::Reply(json_rpc::error_bytes(identifier, error))
}

fn too_large() -> ErrorData {
    let message = format!("a message may have at most {MAX_MESSAGE_BYTES} bytes");
    ErrorData::invalid_request(message, None)
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        if let Some(identifier) = json_rpc::replied_call(&message) {
            sync::lock(&self.running).remove(identifier);
        }
        let output = self.output.clone();
        async move {
            let bytes = serde_json::to_vec(&message)?;
            let output = output.ok_or(io::ErrorKind::NotConnected)?;
            output.send(bytes).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let broken = self.output_broken.clone();
        let message = tokio::select! {
            message = self.next_message() => message,
            () = broken.cancelled() => None,
        };
        if message.is_none() {
            self.input_ended.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output = None;
        Ok(())
    }
}

/// Writes queued lines, and flushes whenever the queue is empty.
async fn write_all<W: AsyncWrite + Unpin>(
    writer: W,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    broken: CancellationToken,
) {
    let mut writer = BufWriter::new(writer);
    while let Some(mut line) = waiting.recv().await {
        line.push(b'\n');
        let mut written = writer.write_all(&line).await;
        if written.is_ok() && waiting.is_empty() {
            written = writer.flush().await;
        }
        if let Err(error) = written {
            debug!(%error, "the client closed its input");
            broken.cancel();
            return;
        }
    }
    // The client may be gone by now; the process is ending either way.
    let _ = writer.flush().await;
}
