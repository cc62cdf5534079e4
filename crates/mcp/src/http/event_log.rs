//! The retained events of one stream, from which a client resumes.
//!
//! The SDK's side appends messages, one HTTP connection at a time reads them, and neither waits for the
//! other: appending never blocks, and a log without a reader keeps its events for the next one. That is
//! what makes a stream survive its connection. A client that reconnects names the last event it has
//! seen, and reading continues after it.
//!
//! The log is bounded in events and in bytes. Past the bounds the oldest events are dropped, but never
//! the last one, so the reply of a call always arrives; a client that was away for too long misses
//! progress notifications, which a later one supersedes. Events are numbered from 1 without gaps, and a
//! dropped number is skipped.
//!
//! Attaching a reader replaces the one before it, which then sees no more events and waits for the end.
//! A reconnecting client would otherwise compete with its own dead connection.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
};

use axum::body::Bytes;
use carrel_domain::sync;
use tokio::sync::Notify;

use crate::limits::{MAX_STREAM_BYTES, MAX_STREAM_EVENTS};

/// An encoded message and its number in the stream. Numbers start at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedEvent {
    pub(crate) number: u64,
    pub(crate) message: Bytes,
}

/// The first thing that happens on a stream, which decides the form of the HTTP response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamOpening {
    /// The reply came first, so there is nothing to stream.
    Reply(Bytes),
    /// Another message came before the reply, or the reader was detached.
    Events,
    /// The call was cancelled, or the session ended, before any message.
    Ended,
}

enum ReadStep {
    Event(LoggedEvent),
    Wait,
    End,
}

/// An append-only log that one reader at a time follows.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<LoggedEvent>,
    bytes: usize,
    last_number: u64,
    last_read: u64,
    reader: u64,
    replied: bool,
    ended: bool,
    /// Ends the current reader, or the next one, once. The stream itself goes on.
    detaching: bool,
}

impl EventLog {
    fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }

    /// Appends a message that is not the last. Ignored after the end.
    pub(crate) fn push(&self, message: Bytes) {
        self.state().push(message);
        self.changed.notify_waiters();
    }

    /// Appends the reply, which ends the stream.
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

    /// Ends the current reader's stream, or the next one's if there is none yet, while the log goes on
    /// and can be resumed.
    pub(crate) fn detach_reader(&self) {
        self.state().detaching = true;
        self.changed.notify_waiters();
    }

    /// Waits until the form of the response can be decided.
    pub(crate) async fn opening(&self) -> StreamOpening {
        loop {
            // Registered before the state is read, so that a change in between wakes it.
            let changed = self.changed.notified();
            if let Some(opening) = self.state().opening() {
                return opening;
            }
            changed.await;
        }
    }

    /// Attaches a reader and returns its number; the reader before it gets no more events.
    pub(crate) fn attach(&self) -> u64 {
        let mut state = self.state();
        state.reader += 1;
        state.reader
    }

    /// Returns the highest number that was handed to a reader.
    pub(crate) fn last_read(&self) -> u64 {
        self.state().last_read
    }

    /// Waits for the first event after `number`. `None` is the end of the stream for this reader.
    pub(crate) async fn next(&self, number: u64, reader: u64) -> Option<LoggedEvent> {
        loop {
            let changed = self.changed.notified();
            match self.state().next(number, reader) {
                ReadStep::Event(event) => return Some(event),
                ReadStep::End => return None,
                ReadStep::Wait => {}
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
        self.last_number += 1;
        self.bytes += message.len();
        self.events.push_back(LoggedEvent { number: self.last_number, message });
        while self.events.len() > MAX_STREAM_EVENTS
            || (self.bytes > MAX_STREAM_BYTES && self.events.len() > 1)
        {
            self.bytes -= self.events.pop_front().map_or(0, |event| event.message.len());
        }
    }

    fn opening(&self) -> Option<StreamOpening> {
        match self.events.front() {
            Some(event) if self.replied && self.last_number == 1 => {
                Some(StreamOpening::Reply(event.message.clone()))
            }
            Some(_) => Some(StreamOpening::Events),
            None if self.ended => Some(StreamOpening::Ended),
            None => self.detaching.then_some(StreamOpening::Events),
        }
    }

    fn next(&mut self, number: u64, reader: u64) -> ReadStep {
        let current = self.reader == reader;
        let event = self.events.iter().find(|event| current && event.number > number).cloned();
        if let Some(event) = event {
            self.last_read = self.last_read.max(event.number);
            return ReadStep::Event(event);
        }
        let detached = current && std::mem::take(&mut self.detaching);
        if self.ended || detached { ReadStep::End } else { ReadStep::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    async fn read_after(log: &EventLog, mut number: u64) -> Vec<String> {
        let reader = log.attach();
        let mut read = Vec::new();
        while let Some(event) = log.next(number, reader).await {
            number = event.number;
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
    async fn a_message_before_the_reply_makes_a_stream() {
        let log = EventLog::default();
        log.push(bytes("progress"));
        log.reply(bytes("reply"));
        assert_eq!(log.opening().await, StreamOpening::Events);
        assert_eq!(read_after(&log, 0).await, ["progress", "reply"]);
        assert_eq!(read_after(&log, 1).await, ["reply"]);
    }

    #[tokio::test]
    async fn an_ended_stream_accepts_no_message() {
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
        let read = read_after(&log, 0).await;
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].len(), MAX_STREAM_BYTES + 1);
    }

    #[tokio::test]
    async fn a_detached_reader_finds_the_rest_later() {
        let log = EventLog::default();
        log.detach_reader();
        assert_eq!(log.opening().await, StreamOpening::Events);
        assert_eq!(read_after(&log, 0).await, Vec::<String>::new());
        log.reply(bytes("reply"));
        assert_eq!(read_after(&log, 0).await, ["reply"]);
    }

    #[tokio::test]
    async fn a_replaced_reader_gets_no_more_events() {
        let log = EventLog::default();
        let first = log.attach();
        let second = log.attach();
        log.push(bytes("one"));
        log.end();
        assert_eq!(log.next(0, first).await, None);
        assert_eq!(log.next(0, second).await.map(|event| event.number), Some(1));
    }
}
