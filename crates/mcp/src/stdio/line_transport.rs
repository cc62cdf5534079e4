//! The SDK's transport over lines, with an answer for whatever is not a message.

use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex, PoisonError},
};

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

/// What outlives the transport: the news that the input ended, and the task that writes.
pub(super) struct StdioEnds {
    pub(super) input_ended: CancellationToken,
    pub(super) writer: JoinHandle<()>,
}

/// Messages as lines. Writing happens in a task of its own, so that a reply is never cut in half
/// when the SDK stops waiting for something, and so that reading goes on while a client is slow.
pub(super) struct LineTransport<R> {
    lines: LineReader<R>,
    output: Option<mpsc::Sender<Vec<u8>>>,
    /// A reply of the transport itself that still has to find room in the output.
    unsent: Option<Vec<u8>>,
    running: Arc<Mutex<HashSet<RequestId>>>,
    started: bool,
    input_ended: CancellationToken,
    output_broken: CancellationToken,
}

/// What to do with a line.
enum Verdict {
    Deliver(Box<ClientJsonRpcMessage>),
    Reply(Vec<u8>),
    Ignore,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    /// Starts the task that writes.
    pub(super) fn start<W>(reader: R, writer: W) -> (Self, StdioEnds)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (output, waiting) = mpsc::channel(CHANNEL_CAPACITY);
        let (input_ended, output_broken) = (CancellationToken::new(), CancellationToken::new());
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

    fn judge(&mut self, line: &[u8]) -> Verdict {
        match json_rpc::parse(line) {
            Ok(message) => self.admit(message),
            Err(MessageError::Syntax(reason)) => {
                reply(None, ErrorData::parse_error(format!("not JSON: {reason}"), None))
            }
            Err(MessageError::Shape(identifier, reason)) => {
                reply(identifier, ErrorData::invalid_request(reason, None))
            }
            Err(MessageError::UnknownNotification) => Verdict::Ignore,
        }
    }

    fn admit(&mut self, message: ClientJsonRpcMessage) -> Verdict {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
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
        // The SDK does not answer a cancelled call, so this is the last that is heard of it.
        if let Some(identifier) = json_rpc::cancelled_call(&message) {
            running.remove(identifier);
        }
        // The SDK takes anything but a request as its first message for the end of the session.
        if self.started { Verdict::Deliver(Box::new(message)) } else { Verdict::Ignore }
    }

    /// Sends the transport's own reply. It stays in place until there is room, since the SDK may
    /// drop this future at any await.
    async fn send_unsent(&mut self) -> Option<()> {
        if self.unsent.is_some() {
            let room = self.output.as_ref()?.reserve().await.ok()?;
            room.send(self.unsent.take()?);
        }
        Some(())
    }

    async fn next_message(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.send_unsent().await?;
            let verdict = match self.lines.next().await {
                Ok(InputLine::Whole(line)) => self.judge(&line),
                Ok(InputLine::TooLong) => reply(None, too_large()),
                Ok(InputLine::End) => return None,
                Err(error) => {
                    warn!(%error, "could not read from the client");
                    return None;
                }
            };
            match verdict {
                Verdict::Deliver(message) => return Some(*message),
                Verdict::Reply(bytes) => self.unsent = Some(bytes),
                Verdict::Ignore => {}
            }
        }
    }
}

fn reply(identifier: Option<RequestId>, error: ErrorData) -> Verdict {
    Verdict::Reply(json_rpc::error_bytes(identifier, error))
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
        if let Some(identifier) = json_rpc::answered_call(&message) {
            self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(identifier);
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

/// Writes what comes, and flushes whenever nothing more is waiting.
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
            debug!(%error, "the client does not take messages any more");
            broken.cancel();
            return;
        }
    }
    // A last flush may fail when the client is gone; there is nobody left to tell.
    let _ = writer.flush().await;
}
