//! Event streams as response bodies.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use carrel_http::sse;
use futures_util::stream;
use tokio::time::timeout;

use super::{
    session::{OpenStream, Session},
    session_streams::Stream,
};
use crate::limits::{KEEP_ALIVE, RETRY_MILLIS};

/// The place of an event: the stream and the number in it. Clients give it back to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) stream: u64,
    pub(crate) place: u64,
}

impl EventId {
    /// Reads what was written by `Display`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (stream, place) = text.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, place: place.parse().ok()? })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}-{}", self.stream, self.place)
    }
}

struct Follower {
    stream: Stream,
    place: u64,
    reader: u64,
    sends_priming_event: bool,
    _open: OpenStream,
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.sends_priming_event) {
            return Some(self.priming());
        }
        match timeout(KEEP_ALIVE, self.stream.log.next(self.place, self.reader)).await {
            Err(_) => Some(sse::KEEP_ALIVE_COMMENT),
            Ok(event) => {
                let event = event?;
                self.place = event.place;
                Some(sse::frame(self.id(), None, &event.message))
            }
        }
    }

    fn id(&self) -> EventId {
        EventId { stream: self.stream.number, place: self.place }
    }

    /// An event without a message: it gives the client something to resume from.
    fn priming(&self) -> Bytes {
        format!("id: {}\nretry: {RETRY_MILLIS}\ndata: \n\n", self.id()).into()
    }
}

/// Streams the events after `place`.
pub(crate) fn follow(session: &Arc<Session>, stream: Stream, place: u64) -> Response {
    let follower = Follower {
        reader: stream.log.attach(),
        stream,
        place,
        sends_priming_event: session.sends_priming_event(),
        _open: session.open_stream(),
    };
    let chunks = stream::unfold(follower, async |mut follower| {
        let chunk = follower.next().await?;
        Some((Ok::<_, Infallible>(chunk), follower))
    });
    sse::response(Body::from_stream(chunks))
}

/// A stream that ends before it begins: the answer to a call that was cancelled.
pub(crate) fn empty() -> Response {
    sse::response(Body::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_identifier_survives_the_way_to_the_client_and_back() {
        let id = EventId { stream: 3, place: 41 };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        for wrong in ["", "3", "3-", "-1", "3-x", "3-1-1", "99999999999999999999-1"] {
            assert_eq!(EventId::parse(wrong), None, "{wrong}");
        }
    }
}
