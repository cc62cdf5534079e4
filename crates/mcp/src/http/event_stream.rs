//! Event streams as response bodies: one connection that follows one [event log](super::event_log).
//!
//! Each frame carries an [`EventId`], which the client sends back as `Last-Event-ID` to resume. Clients
//! of 2025-11-25 and later get a priming event first, an id without data, so that they can resume even
//! if the connection breaks before the first message. A silent stream sends a comment every
//! [`KEEP_ALIVE`].

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

/// The id of an event on the wire, `<stream>-<number>`: the stream within the session and the number
/// within the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) stream: u64,
    pub(crate) number: u64,
}

impl EventId {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, number: number.parse().ok()? })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}-{}", self.stream, self.number)
    }
}

struct LogFollower {
    stream: Stream,
    /// The number of the last event that was sent.
    last_sent: u64,
    reader: u64,
    sends_priming_event: bool,
    _open: OpenStream,
}

impl LogFollower {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.sends_priming_event) {
            return Some(self.priming());
        }
        match timeout(KEEP_ALIVE, self.stream.log.next(self.last_sent, self.reader)).await {
            Err(_) => Some(sse::KEEP_ALIVE_COMMENT),
            Ok(event) => {
                let event = event?;
                self.last_sent = event.number;
                Some(sse::frame(self.id(), None, &event.message))
            }
        }
    }

    fn id(&self) -> EventId {
        EventId { stream: self.stream.number, number: self.last_sent }
    }

    fn priming(&self) -> Bytes {
        format!("id: {}\nretry: {RETRY_MILLIS}\ndata: \n\n", self.id()).into()
    }
}

/// Streams the events after number `last_sent`. The response counts as an open stream of the session,
/// which keeps the session from expiring.
pub(crate) fn follow(session: &Arc<Session>, stream: Stream, last_sent: u64) -> Response {
    let follower = LogFollower {
        reader: stream.log.attach(),
        stream,
        last_sent,
        sends_priming_event: session.sends_priming_event(),
        _open: session.open_stream(),
    };
    let chunks = stream::unfold(follower, async |mut follower| {
        let chunk = follower.next().await?;
        Some((Ok::<_, Infallible>(chunk), follower))
    });
    sse::response(Body::from_stream(chunks))
}

/// A stream without events: the response to a call that was cancelled.
pub(crate) fn empty() -> Response {
    sse::response(Body::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_parses_from_its_own_text() {
        let id = EventId { stream: 3, number: 41 };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        for wrong in ["", "3", "3-", "-1", "3-x", "3-1-1", "99999999999999999999-1"] {
            assert_eq!(EventId::parse(wrong), None, "{wrong}");
        }
    }
}
