//! The events of a task, across broken connections.

use std::collections::VecDeque;
use std::time::Duration;

use carrel_domain::TaskId;
use carrel_wire::{TaskEvent, TaskEventKind};
use futures_util::stream::{self, Stream};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::time::Instant;

use crate::body::next_piece;
use crate::client::{ApiRequest, WorkspaceClient, excerpt};
use crate::error::ClientError;
use crate::limits::{MAX_EVENT_SIZE, STREAM_IDLE_TIMEOUT};
use crate::sse::{SseDecoder, SseEvent};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long the first and the longest pause between two tries are.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How events are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowOptions {
    /// The number of the last event that was seen.
    pub after: u64,
    /// How long to try to reach a server that does not answer.
    pub retry_for: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { after: 0, retry_for: Duration::from_mins(2) }
    }
}

impl WorkspaceClient {
    /// Follows the events of a task, each once and in order, until its last one.
    ///
    /// A connection that breaks is made again behind the last event that was seen. An error is the
    /// last item.
    pub fn follow_task(
        &self,
        task: TaskId,
        options: FollowOptions,
    ) -> impl Stream<Item = Result<TaskEvent, ClientError>> + Send + use<> {
        let follower = EventFollower {
            client: self.clone(),
            task,
            seen: options.after,
            retry_for: options.retry_for,
            reader: None,
            waiting: VecDeque::new(),
            pause: PAUSES.0,
            heard: Instant::now(),
            over: false,
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
    /// The number of the last event that was passed on.
    seen: u64,
    retry_for: Duration,
    reader: Option<Reader>,
    /// Events that came and were not passed on yet.
    waiting: VecDeque<TaskEvent>,
    pause: Duration,
    /// When there was last progress.
    heard: Instant,
    over: bool,
}

struct Reader {
    body: Incoming,
    frames: SseDecoder,
}

/// Why no event comes at the moment.
enum Stop {
    /// There are no more.
    End,
    /// The connection is gone.
    Reconnect,
    Failed(ClientError),
}

impl EventFollower {
    async fn next(&mut self) -> Option<Result<TaskEvent, ClientError>> {
        // How long the reader took for the last event is not the server's silence.
        self.heard = Instant::now();
        while !self.over {
            if let Some(event) = self.waiting.pop_front() {
                self.seen = event.id;
                self.pause = PAUSES.0;
                self.over = event.ending().is_some();
                return Some(Ok(event));
            }
            match self.read().await {
                Ok(()) => {}
                Err(Stop::End) => return None,
                Err(Stop::Reconnect) => {
                    self.reader = None;
                    self.wait(None).await;
                }
                Err(Stop::Failed(error)) => {
                    self.reader = None;
                    if !error.is_transient() || self.heard.elapsed() >= self.retry_for {
                        self.over = true;
                        return Some(Err(error));
                    }
                    self.wait(error.retry_after()).await;
                }
            }
        }
        None
    }

    async fn wait(&mut self, request: Option<Duration>) {
        let pause = request.unwrap_or(self.pause).min(PAUSES.1);
        self.pause = (self.pause * 2).min(PAUSES.1);
        tokio::time::sleep(pause).await;
    }

    /// Reads until something waits.
    async fn read(&mut self) -> Result<(), Stop> {
        if self.reader.is_none() {
            self.reader = Some(self.connect().await?);
        }
        let Some(reader) = &mut self.reader else { return Err(Stop::Reconnect) };
        let piece = match next_piece(&mut reader.body, STREAM_IDLE_TIMEOUT).await {
            Ok(Some(piece)) => piece,
            Ok(None) | Err(_) if self.heard.elapsed() < self.retry_for => {
                return Err(Stop::Reconnect);
            }
            Ok(None) => return Err(self.strange("a stream that ends before the task does")),
            Err(source) => return Err(Stop::Failed(self.client.unreachable(source))),
        };
        let frames = reader.frames.take(&piece);
        // A server that says that it is there is there.
        self.heard = Instant::now();
        let frames =
            frames.map_err(|_| self.strange(&format!("an event above {MAX_EVENT_SIZE}")))?;
        for frame in frames {
            let event = event(frame).map_err(|what| self.strange(&what))?;
            let newest = self.waiting.back().map_or(self.seen, |event| event.id);
            if event.id > newest + 1 {
                return Err(self.strange(&format!("event {} behind event {newest}", event.id)));
            }
            if event.id == newest + 1 {
                self.waiting.push_back(event);
            }
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Reader, Stop> {
        let path = format!("/api/tasks/{}/events", self.task);
        let request = ApiRequest {
            header: Some((LAST_EVENT, HeaderValue::from(self.seen))),
            accept: "text/event-stream",
            ..ApiRequest::new(Method::GET, &path)
        };
        let answer = self.client.send(request).await.map_err(Stop::Failed)?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Err(Stop::End);
        }
        let kind = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if !kind.starts_with(b"text/event-stream") {
            return Err(self.strange(&format!("{} instead of events", excerpt(kind))));
        }
        Ok(Reader { body: answer.into_body(), frames: SseDecoder::new(MAX_EVENT_SIZE) })
    }

    fn strange(&self, what: &str) -> Stop {
        Stop::Failed(self.client.protocol(what))
    }
}

fn event(frame: SseEvent) -> Result<TaskEvent, String> {
    let id = frame.id.as_deref().and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| format!("an event with the number {:?}", frame.id))?;
    let data = serde_json::from_str(&frame.data);
    let data = data.map_err(|_| format!("event {id} with {}", excerpt(frame.data.as_bytes())))?;
    Ok(TaskEvent { id, event: TaskEventKind::from(frame.event.as_str()), data })
}
