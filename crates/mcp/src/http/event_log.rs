//! The events of one stream, kept so that a client which lost its connection can have them again.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use axum::body::Bytes;
use tokio::sync::Notify;

use crate::limits::{MAX_STREAM_BYTES, MAX_STREAM_EVENTS};

/// A message with its place in the stream. Places start at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) place: u64,
    pub(crate) message: Bytes,
}

/// How a stream begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamOpening {
    /// With the reply, so there is nothing to stream.
    Reply(Bytes),
    /// With something before the reply.
    Events,
    /// Not at all: the call was cancelled, or the session is over.
    Ended,
}

/// What a reader does next.
enum Step {
    Event(Event),
    Wait,
    End,
}

/// An append-only log that one reader at a time follows. It never makes a writer wait: a reader
/// that is too slow misses the oldest events, but never the last one.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    bytes: usize,
    last_place: u64,
    last_read: u64,
    reader: u64,
    replied: bool,
    ended: bool,
    /// The reader is to be sent away once; it may come back for the rest.
    interrupted: bool,
}

impl EventLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message that is not the last.
    pub(crate) fn push(&self, message: Bytes) {
        self.state().push(message);
        self.changed.notify_waiters();
    }

    /// Adds the reply, which is the last message.
    pub(crate) fn reply(&self, message: Bytes) {
        let mut state = self.state();
        state.push(message);
        state.replied = true;
        state.ended = true;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends the stream without a reply.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.changed.notify_waiters();
    }

    /// Sends the reader away, or the next one if there is none yet. The stream goes on without.
    pub(crate) fn interrupt(&self) {
        self.state().interrupted = true;
        self.changed.notify_waiters();
    }

    /// Waits for the first event.
    pub(crate) async fn opening(&self) -> StreamOpening {
        loop {
            // Made before the look, so that a change after the look wakes it.
            let changed = self.changed.notified();
            if let Some(opening) = self.state().opening() {
                return opening;
            }
            changed.await;
        }
    }

    /// Becomes the reader; an earlier one gets no more events.
    pub(crate) fn attach(&self) -> u64 {
        let mut state = self.state();
        state.reader += 1;
        state.reader
    }

    /// The place up to which events have been handed to a reader.
    pub(crate) fn last_read(&self) -> u64 {
        self.state().last_read
    }

    /// Waits for the event after `place`. `None` is the end; a reader that was replaced waits for it.
    pub(crate) async fn next(&self, place: u64, reader: u64) -> Option<Event> {
        loop {
            let changed = self.changed.notified();
            match self.state().next(place, reader) {
                Step::Event(event) => return Some(event),
                Step::End => return None,
                Step::Wait => {}
            }
            changed.await;
        }
    }
}

impl State {
    fn push(&mut self, message: Bytes) {
        if self.ended {
            return;
        }
        self.last_place += 1;
        self.bytes += message.len();
        self.events.push_back(Event { place: self.last_place, message });
        while self.events.len() > MAX_STREAM_EVENTS
            || (self.bytes > MAX_STREAM_BYTES && self.events.len() > 1)
        {
            self.bytes -= self.events.pop_front().map_or(0, |event| event.message.len());
        }
    }

    fn opening(&self) -> Option<StreamOpening> {
        match self.events.front() {
            Some(event) if self.replied && self.last_place == 1 => {
                Some(StreamOpening::Reply(event.message.clone()))
            }
            Some(_) => Some(StreamOpening::Events),
            None if self.ended => Some(StreamOpening::Ended),
            None => self.interrupted.then_some(StreamOpening::Events),
        }
    }

    fn next(&mut self, place: u64, reader: u64) -> Step {
        let current = self.reader == reader;
        let event = self.events.iter().find(|event| current && event.place > place).cloned();
        if let Some(event) = event {
            self.last_read = self.last_read.max(event.place);
            return Step::Event(event);
        }
        let sent_away = current && std::mem::take(&mut self.interrupted);
        if self.ended || sent_away { Step::End } else { Step::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    async fn rest(log: &EventLog, mut place: u64) -> Vec<String> {
        let reader = log.attach();
        let mut read = Vec::new();
        while let Some(event) = log.next(place, reader).await {
            place = event.place;
            read.push(String::from_utf8(event.message.to_vec()).expect("text"));
        }
        read
    }

    #[tokio::test]
    async fn a_lone_reply_needs_no_stream() {
        let log = EventLog::default();
        log.reply(bytes("reply"));
        assert_eq!(log.opening().await, StreamOpening::Reply(bytes("reply")));
    }

    #[tokio::test]
    async fn anything_before_the_reply_makes_a_stream() {
        let log = EventLog::default();
        log.push(bytes("progress"));
        log.reply(bytes("reply"));
        assert_eq!(log.opening().await, StreamOpening::Events);
        assert_eq!(rest(&log, 0).await, ["progress", "reply"]);
        assert_eq!(rest(&log, 1).await, ["reply"]);
    }

    #[tokio::test]
    async fn a_stream_that_ended_takes_no_more() {
        let log = EventLog::default();
        log.end();
        log.reply(bytes("late"));
        assert_eq!(log.opening().await, StreamOpening::Ended);
    }

    #[tokio::test]
    async fn a_slow_reader_misses_the_oldest_but_never_the_reply() {
        let log = EventLog::default();
        for number in 0..MAX_STREAM_EVENTS * 2 {
            log.push(bytes(&number.to_string()));
        }
        log.reply(Bytes::from(vec![b'x'; MAX_STREAM_BYTES + 1]));
        let read = rest(&log, 0).await;
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].len(), MAX_STREAM_BYTES + 1);
    }

    #[tokio::test]
    async fn a_reader_that_was_sent_away_finds_the_rest_later() {
        let log = EventLog::default();
        log.interrupt();
        assert_eq!(log.opening().await, StreamOpening::Events);
        assert_eq!(rest(&log, 0).await, Vec::<String>::new());
        log.reply(bytes("reply"));
        assert_eq!(rest(&log, 0).await, ["reply"]);
    }

    #[tokio::test]
    async fn a_replaced_reader_gets_nothing_more() {
        let log = EventLog::default();
        let (first, second) = (log.attach(), log.attach());
        log.push(bytes("one"));
        log.end();
        assert_eq!(log.next(0, first).await, None);
        assert_eq!(log.next(0, second).await.map(|event| event.place), Some(1));
    }
}
