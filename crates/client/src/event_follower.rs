//! Event streams that resume after a broken connection.
//!
//! The cursor is the number of the last event that was handed to the caller. Every connection asks for the
//! events after it (`Last-Event-ID`), so that a caller sees each event once and in order however often the
//! connection breaks. A gap in the numbers is an error of the server, a repetition is dropped.
//!
//! Reconnecting waits 100 ms at first and at most 5 s, and honours `Retry-After`. Heartbeat comments count as
//! contact: a task may be silent for hours, a server may not for longer than the idle timeout. The follower
//! gives up when there was no contact for [`FollowOptions::retry_for`], when the server refuses for a reason
//! that queue does not cure, and at the event with a terminal status.

use std::collections::VecDeque;
use std::time::Duration;

use carrel_domain::TaskId;
use carrel_wire::{TaskEvent, TaskEventKind};
use futures_util::stream::{self, Stream};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::time::Instant;

use crate::body::next_chunk;
use crate::client::{ApiRequest, WorkspaceClient, excerpt};
use crate::error::{ClientError, Result};
use crate::limits::{MAX_EVENT_SIZE, STREAM_IDLE_TIMEOUT};
use crate::sse::{SseDecoder, SseEvent};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The delay before the first reconnection; it doubles up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// Options for following a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowOptions {
    /// The cursor: events after this number are returned; 0 for all.
    pub after: u64,
    /// The time without contact after which the follower gives up.
    pub retry_for: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { after: 0, retry_for: Duration::from_mins(2) }
    }
}

impl WorkspaceClient {
    /// Returns the events of a task, each once and in order, until the one with its final status.
    ///
    /// An error is the last item.
    pub fn follow_task(
        &self,
        task: TaskId,
        options: FollowOptions,
    ) -> impl Stream<Item = Result<TaskEvent>> + Send + use<> {
        let follower = EventFollower {
            client: self.clone(),
            task,
            cursor: options.after,
            retry_for: options.retry_for,
            reader: None,
            queue: VecDeque::new(),
            delay: FIRST_DELAY,
            last_contact: Instant::now(),
            finished: false,
        };
        stream::unfold(follower, |mut follower| async move {
            let item = follower.next().await?;
            Some((item, follower))
        })
    }
}

struct EventFollower {
    client: WorkspaceClient,
    task: TaskId,
    /// The cursor.
    cursor: u64,
    retry_for: Duration,
    reader: Option<Reader>,
    /// Events that were received and not returned yet.
    queue: VecDeque<TaskEvent>,
    delay: Duration,
    /// The time of the last contact with the server.
    last_contact: Instant,
    finished: bool,
}

struct Reader {
    body: Incoming,
    frames: SseDecoder,
}

enum ReadError {
    /// The server answered 204: the cursor is at the last event.
    Finished,
    /// The connection ended before the task did.
    Disconnected,
    Failed(ClientError),
}

impl EventFollower {
    async fn next(&mut self) -> Option<Result<TaskEvent>> {
        // The time that the caller took for the last event does not count as silence of the server.
        self.last_contact = Instant::now();
        while !self.finished {
            if let Some(event) = self.queue.pop_front() {
                self.cursor = event.id;
                self.delay = FIRST_DELAY;
                self.finished = event.ending().is_some();
                return Some(Ok(event));
            }
            match self.read().await {
                Ok(()) => {}
                Err(ReadError::Finished) => return None,
                Err(ReadError::Disconnected) => {
                    self.reader = None;
                    self.wait(None).await;
                }
                Err(ReadError::Failed(error)) => {
                    self.reader = None;
                    if !error.is_transient() || self.last_contact.elapsed() >= self.retry_for {
                        self.finished = true;
                        return Some(Err(error));
                    }
                    self.wait(error.retry_after()).await;
                }
            }
        }
        None
    }

    async fn wait(&mut self, requested: Option<Duration>) {
        let delay = requested.unwrap_or(self.delay).min(MAX_DELAY);
        self.delay = (self.delay * 2).min(MAX_DELAY);
        tokio::time::sleep(delay).await;
    }

    /// Reads one chunk, connecting first if needed, and queues its events.
    async fn read(&mut self) -> Result<(), ReadError> {
        if self.reader.is_none() {
            self.reader = Some(self.connect().await?);
        }
        let Some(reader) = &mut self.reader else { return Err(ReadError::Disconnected) };
        let chunk = match next_chunk(&mut reader.body, STREAM_IDLE_TIMEOUT).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) | Err(_) if self.last_contact.elapsed() < self.retry_for => {
                return Err(ReadError::Disconnected);
            }
            Ok(None) => return Err(self.protocol_error("a stream that ends before the task does")),
            Err(source) => return Err(ReadError::Failed(self.client.unreachable(source))),
        };
        let frames = reader.frames.take(&chunk);
        // Heartbeat comments complete no event, and still prove that the server is there.
        self.last_contact = Instant::now();
        let frames =
            frames.map_err(|_| self.protocol_error(&format!("an event above {MAX_EVENT_SIZE}")))?;
        for frame in frames {
            let event = decode(&frame).map_err(|what| self.protocol_error(&what))?;
            let newest = self.queue.back().map_or(self.cursor, |event| event.id);
            if event.id > newest + 1 {
                return Err(
                    self.protocol_error(&format!("event {} behind event {newest}", event.id))
                );
            }
            if event.id == newest + 1 {
                self.queue.push_back(event);
            }
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Reader, ReadError> {
        let path = format!("/api/tasks/{}/events", self.task);
        let request = ApiRequest {
            header: Some((LAST_EVENT, HeaderValue::from(self.cursor))),
            accept: "text/event-stream",
            ..ApiRequest::new(Method::GET, &path)
        };
        let response = self.client.send(request).await.map_err(ReadError::Failed)?;
        if response.status() == StatusCode::NO_CONTENT {
            return Err(ReadError::Finished);
        }
        let kind = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if !kind.starts_with(b"text/event-stream") {
            return Err(self.protocol_error(&format!("{} instead of events", excerpt(kind))));
        }
        Ok(Reader { body: response.into_body(), frames: SseDecoder::new(MAX_EVENT_SIZE) })
    }

    fn protocol_error(&self, what: &str) -> ReadError {
        ReadError::Failed(self.client.protocol(what))
    }
}

fn decode(frame: &SseEvent) -> Result<TaskEvent, String> {
    let id = frame.id.as_deref().and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| format!("an event with the number {:?}", frame.id))?;
    let data = serde_json::from_str(&frame.data);
    let data = data.map_err(|_| format!("event {id} with {}", excerpt(frame.data.as_bytes())))?;
    Ok(TaskEvent { id, event: TaskEventKind::from(frame.event.as_str()), data })
}
