//! Answering one relay.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::CHUNK_BYTES;
use super::mcp::{self, RelayRequest};
use crate::line_splitter::{LineSplitter, OutputLine};
use crate::reporter::Reporter;
use crate::session_tools::{SessionTools, ToolOutcome};
use crate::tools::{Progress, ToolCall};

/// How many calls of one relay wait or run. More are not read until one is over.
const MAX_CALLS: usize = 64;

/// News about calls that wait to be told. More are left out: the next says more.
const MAX_NOTICES: usize = 16;

/// How often it is looked whether a relay that asks for nothing more still waits for answers.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A relay that is talked to. When this is dropped, the calls that nobody waits for any more are
/// cancelled.
pub(super) struct RelayConnection {
    stream: UnixStream,
    tools: Arc<SessionTools>,
    reporter: Reporter,
    calls: JoinSet<(Value, ToolOutcome)>,
    /// What ends each call, by the id that the agent gave it.
    running: HashMap<String, CancellationToken>,
    /// What the agent calls itself.
    client: Option<String>,
    /// News about calls.
    notices: (mpsc::Sender<Value>, mpsc::Receiver<Value>),
}

impl Drop for RelayConnection {
    fn drop(&mut self) {
        self.running.values().for_each(CancellationToken::cancel);
    }
}

impl RelayConnection {
    pub(super) fn new(stream: UnixStream, tools: Arc<SessionTools>, reporter: Reporter) -> Self {
        let (calls, running) = (JoinSet::new(), HashMap::new());
        let notices = mpsc::channel(MAX_NOTICES);
        Self { stream, tools, reporter, calls, running, client: None, notices }
    }

    /// Answers until the relay asks for nothing more. Calls run beside each other, and beside all else
    /// that is asked for.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let (mut splitter, mut chunk) = (LineSplitter::default(), vec![0; CHUNK_BYTES]);
        loop {
            tokio::select! {
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    self.tell(done).await?;
                }
                Some(notice) = self.notices.1.recv() => self.write(&notice).await?,
                length = self.stream.read(&mut chunk), if self.calls.len() < MAX_CALLS => {
                    let length = length?;
                    if length == 0 {
                        return self.finish().await;
                    }
                    for line in splitter.push(&chunk[..length]) {
                        let OutputLine::Text(line) = line else { return Ok(()) };
                        self.heed(&line).await?;
                    }
                }
            }
        }
    }

    /// Answers what is left, as long as anybody waits for it.
    async fn finish(&mut self) -> io::Result<()> {
        while !self.calls.is_empty() {
            tokio::select! {
                Some(done) = self.calls.join_next() => self.tell(done).await?,
                Some(notice) = self.notices.1.recv() => self.write(&notice).await?,
                () = tokio::time::sleep(LOOK_EVERY) => {
                    if self.stream.ready(Interest::WRITABLE).await?.is_write_closed() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn heed(&mut self, line: &str) -> io::Result<()> {
        match mcp::read(line, self.tools.list()) {
            RelayRequest::Reply(answer) => self.write(&answer).await,
            RelayRequest::Initialize { client, answer } => {
                self.client = client;
                self.write(&answer).await
            }
            RelayRequest::Call { id, tool, arguments, progress } => {
                let cancel = self.tools.cancellation();
                self.running.insert(id.to_string(), cancel.clone());
                let notices = self.notices.0.clone();
                let call = self.tools.begin(ToolCall {
                    client: self.client.clone(),
                    progress: progress.map(|token| Progress { token, notices }),
                    ..ToolCall::new(tool, arguments, cancel)
                });
                self.calls.spawn(async move { (id, call.await) });
                Ok(())
            }
            RelayRequest::Cancel(id) => {
                if let Some(cancel) = self.running.remove(&id.to_string()) {
                    cancel.cancel();
                }
                Ok(())
            }
            RelayRequest::Ignored => Ok(()),
        }
    }

    /// Tells what came of a call. One that the agent has cancelled is not answered.
    async fn tell(&mut self, done: Result<(Value, ToolOutcome), JoinError>) -> io::Result<()> {
        let (id, used) = done.map_err(io::Error::other)?;
        self.reporter.something(used.event, Some(&used.tool)).await;
        // None is told after the answer that it leads to.
        while let Ok(notice) = self.notices.1.try_recv() {
            self.write(&notice).await?;
        }
        if self.running.remove(&id.to_string()).is_none() {
            return Ok(());
        }
        self.write(&mcp::told(&id, &used)).await
    }

    async fn write(&mut self, answer: &Value) -> io::Result<()> {
        self.stream.write_all(format!("{answer}\n").as_bytes()).await
    }
}
