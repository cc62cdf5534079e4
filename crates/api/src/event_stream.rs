//! Server-sent event streams.
//!
//! A stream starts with a comment, so that a proxy that waits for the first byte forwards the head at once.
//! It then has a frame for each event and a comment after every [`STREAM_HEARTBEAT`] of silence. It ends with
//! the events, when the server stops, or when the credentials of the caller expire. A client that lost the
//! connection continues after the last number it saw.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use carrel_http::sse;
use carrel_service::FollowItem;
use carrel_store::Event;
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits::STREAM_HEARTBEAT;

pub(crate) struct StreamLimits {
    pub(crate) stop: CancellationToken,
    pub(crate) expires: Duration,
    /// The permit that the stream occupies while it is open.
    #[expect(dead_code, reason = "it is held, not read")]
    pub(crate) permit: Box<dyn Send>,
}

/// Returns a response that streams the events of a task.
pub(crate) fn event_stream(
    events: impl Stream<Item = FollowItem> + Send + 'static,
    limits: StreamLimits,
) -> Response {
    let frames = events.map(|followed| match followed {
        FollowItem::Event(event) => Some(frame(&event)),
        FollowItem::Idle => None,
    });
    frame_stream(frames, limits)
}

/// Returns a response that streams frames. `None` in the source means that nothing happened; it is not sent.
pub(crate) fn frame_stream(
    frames: impl Stream<Item = Option<Bytes>> + Send + 'static,
    limits: StreamLimits,
) -> Response {
    let body = Body::from_stream(pieces(frames, limits));
    sse::response(body)
}

struct Reader<S> {
    events: std::pin::Pin<Box<S>>,
    limits: StreamLimits,
    ends: Instant,
    last_sent: Instant,
    started: bool,
}

fn pieces(
    events: impl Stream<Item = Option<Bytes>> + Send + 'static,
    limits: StreamLimits,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let now = Instant::now();
    let ends = now.checked_add(limits.expires).unwrap_or(now + Duration::from_hours(24));
    let reader = Reader { events: Box::pin(events), limits, ends, last_sent: now, started: false };
    stream::unfold(reader, |mut reader| async move {
        let piece = reader.next().await?;
        Some((Ok(piece), reader))
    })
}

impl<S: Stream<Item = Option<Bytes>>> Reader<S> {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.started {
            self.started = true;
            // A proxy may hold back the response head until the first byte of the body.
            return Some(Bytes::from_static(b": connected\n\n"));
        }
        loop {
            let quiet = self.last_sent + STREAM_HEARTBEAT;
            let piece = tokio::select! {
                () = self.limits.stop.cancelled() => return None,
                () = tokio::time::sleep_until(self.ends) => return None,
                () = tokio::time::sleep_until(quiet) => Bytes::from_static(b": still here\n\n"),
                frame = self.events.next() => match frame? {
                    Some(frame) => frame,
                    None => continue,
                },
            };
            self.last_sent = Instant::now();
            return Some(piece);
        }
    }
}

fn frame(event: &Event) -> Bytes {
    sse::frame(event.number, Some(event.kind.as_str()), event.data.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StreamPermit;
    use carrel_store::EventKind;
    use carrel_wire::TaskEventKind;
    use pretty_assertions::assert_eq;

    #[test]
    fn clients_know_every_kind_of_event() {
        for kind in EventKind::ALL {
            let read = TaskEventKind::from(kind.as_str());
            assert!(!matches!(read, TaskEventKind::Other(_)), "{kind:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_says_every_15_seconds_that_it_is_there() {
        let stop = CancellationToken::new();
        let permit = Box::new(StreamPermit::uncounted());
        let limits = StreamLimits { stop: stop.clone(), expires: Duration::from_mins(1), permit };
        let quiet = stream::pending::<Option<Bytes>>();
        let started = Instant::now();
        let pieces =
            pieces(quiet, limits).map(|piece| (started.elapsed().as_secs(), piece.unwrap()));
        let received: Vec<(u64, Bytes)> = pieces.collect().await;
        let received: Vec<_> =
            received.iter().map(|(at, piece)| (*at, std::str::from_utf8(piece).unwrap())).collect();
        let here = ": still here\n\n";
        assert_eq!(received[..4], [(0, ": connected\n\n"), (15, here), (30, here), (45, here)]);
        assert_eq!(started.elapsed(), Duration::from_mins(1), "it ends with the credentials");
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_items_are_not_sent() {
        let permit = Box::new(StreamPermit::uncounted());
        let stop = CancellationToken::new();
        let limits = StreamLimits { stop, expires: Duration::from_secs(40), permit };
        let every = tokio::time::interval(Duration::from_secs(5));
        let quiet = stream::unfold(every, |mut every| async move {
            every.tick().await;
            Some((None, every))
        });
        let received: Vec<_> = pieces(quiet, limits).collect().await;
        assert_eq!(received.len(), 3, "{received:?}");
    }
}
