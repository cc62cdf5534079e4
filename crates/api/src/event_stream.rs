//! The events of a task as a stream that a browser understands.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use carrel_http::sse;
use carrel_service::FollowItem;
use carrel_store::{Event, EventKind};
use carrel_wire::TaskEventKind;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits::STREAM_HEARTBEAT;

/// What ends a stream before the task does.
pub(crate) struct StreamLimits {
    /// The server stops.
    pub(crate) stop: CancellationToken,
    /// The caller's credentials end.
    pub(crate) expires: Duration,
    /// Held as long as the stream is open.
    #[expect(dead_code, reason = "it is held, not read")]
    pub(crate) place: Box<dyn Send>,
}

/// Answers with the events of a task.
pub(crate) fn event_stream(
    events: impl Stream<Item = FollowItem> + Send + 'static,
    until: StreamLimits,
) -> Response {
    let frames = events.map(|followed| match followed {
        FollowItem::Event(event) => Some(frame(&event)),
        FollowItem::Idle => None,
    });
    frame_stream(frames, until)
}

/// Answers with frames. Where there is none, nothing has happened.
pub(crate) fn frame_stream(
    frames: impl Stream<Item = Option<Bytes>> + Send + 'static,
    until: StreamLimits,
) -> Response {
    let body = Body::from_stream(pieces(frames, until));
    sse::response(body)
}

struct Reader<S> {
    events: std::pin::Pin<Box<S>>,
    until: StreamLimits,
    ends: Instant,
    spoke: Instant,
    begun: bool,
}

fn pieces(
    events: impl Stream<Item = Option<Bytes>> + Send + 'static,
    until: StreamLimits,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let now = Instant::now();
    let ends = now.checked_add(until.expires).unwrap_or(now + Duration::from_hours(24));
    let reader = Reader { events: Box::pin(events), until, ends, spoke: now, begun: false };
    stream::unfold(reader, |mut reader| async move {
        let piece = reader.next().await?;
        Some((Ok(piece), reader))
    })
}

impl<S: Stream<Item = Option<Bytes>>> Reader<S> {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            self.begun = true;
            // A proxy that waits for the first byte has it at once.
            return Some(Bytes::from_static(b": connected\n\n"));
        }
        loop {
            let quiet = self.spoke + STREAM_HEARTBEAT;
            let piece = tokio::select! {
                () = self.until.stop.cancelled() => return None,
                () = tokio::time::sleep_until(self.ends) => return None,
                () = tokio::time::sleep_until(quiet) => Bytes::from_static(b": still here\n\n"),
                frame = self.events.next() => match frame? {
                    Some(frame) => frame,
                    None => continue,
                },
            };
            self.spoke = Instant::now();
            return Some(piece);
        }
    }
}

fn frame(event: &Event) -> Bytes {
    let kind = wire_kind(event.kind);
    sse::frame(event.number, Some(kind.as_str()), event.data.to_string().as_bytes())
}

fn wire_kind(kind: EventKind) -> TaskEventKind {
    match kind {
        EventKind::StatusChanged => TaskEventKind::StatusChanged,
        EventKind::ProgressUpdate => TaskEventKind::ProgressUpdate,
        EventKind::LogLine => TaskEventKind::LogLine,
        EventKind::Error => TaskEventKind::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StreamPermit;
    use pretty_assertions::assert_eq;

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_says_every_15_seconds_that_it_is_there() {
        let stop = CancellationToken::new();
        let place = Box::new(StreamPermit::alone());
        let until = StreamLimits { stop: stop.clone(), expires: Duration::from_mins(1), place };
        let quiet = stream::pending::<Option<Bytes>>();
        let begun = Instant::now();
        let pieces = pieces(quiet, until).map(|piece| (begun.elapsed().as_secs(), piece.unwrap()));
        let told: Vec<(u64, Bytes)> = pieces.collect().await;
        let told: Vec<_> =
            told.iter().map(|(at, piece)| (*at, std::str::from_utf8(piece).unwrap())).collect();
        let here = ": still here\n\n";
        assert_eq!(told[..4], [(0, ": connected\n\n"), (15, here), (30, here), (45, here)]);
        assert_eq!(begun.elapsed(), Duration::from_mins(1), "it ends with the credentials");
    }

    #[tokio::test(start_paused = true)]
    async fn news_that_only_says_nothing_happened_is_not_passed_on() {
        let place = Box::new(StreamPermit::alone());
        let stop = CancellationToken::new();
        let until = StreamLimits { stop, expires: Duration::from_secs(40), place };
        let every = tokio::time::interval(Duration::from_secs(5));
        let quiet = stream::unfold(every, |mut every| async move {
            every.tick().await;
            Some((None, every))
        });
        let told: Vec<_> = pieces(quiet, until).collect().await;
        assert_eq!(told.len(), 3, "{told:?}");
    }
}
