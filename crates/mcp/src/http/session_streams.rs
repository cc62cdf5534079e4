//! The streams of a session, and the stream that each message of the server belongs to.
//!
//! A call has a stream of its own from its start to its reply. A progress notification goes to the call
//! that sent the progress token, a request of the server to the call that caused it, and everything else
//! to the session's *standalone* stream, number 0, which a client reads with `GET`.
//!
//! A stream is *retained* once its response became an event stream. Only then does the client know its
//! number, and only retained streams can be resumed: while the call runs, and for
//! [`crate::STREAM_RETENTION`] after its reply, at most [`MAX_FINISHED_STREAMS`] of them. The streams of
//! calls answered in plain JSON cost nothing after their reply.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::body::Bytes;
use rmcp::{
    model::{
        GetExtensions as _, JsonRpcMessage, ProgressToken, RequestId, ServerJsonRpcMessage,
        ServerNotification,
    },
    service::OriginatingRequestId,
};
use tokio_util::sync::CancellationToken;

use super::event_log::EventLog;
use crate::{
    json_rpc,
    limits::{MAX_FINISHED_STREAMS, MAX_IN_FLIGHT},
};

/// The number of the stream that belongs to no call. Calls count from 1.
pub(crate) const STANDALONE: u64 = 0;

/// A call that cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRejected {
    /// A running call has the same request id.
    InUse,
    /// The session has [`MAX_IN_FLIGHT`] running calls.
    Full,
}

/// A stream and its number within the session.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) number: u64,
    pub(crate) log: Arc<EventLog>,
}

#[derive(Debug)]
struct RunningCall {
    stream: Stream,
    progress: Option<ProgressToken>,
    retained: bool,
    /// Cancels a call that the SDK does not know of.
    cancel: Option<CancellationToken>,
}

#[derive(Debug)]
struct FinishedStream {
    stream: Stream,
    at: Instant,
}

/// The streams of a session: standalone, running and recently finished.
#[derive(Debug, Default)]
pub(crate) struct SessionStreams {
    standalone: Arc<EventLog>,
    calls: HashMap<RequestId, RunningCall>,
    progress: HashMap<ProgressToken, RequestId>,
    finished: VecDeque<FinishedStream>,
    last_number: u64,
}

impl SessionStreams {
    /// Opens the stream of a call.
    pub(crate) fn open(
        &mut self,
        identifier: RequestId,
        progress: Option<ProgressToken>,
    ) -> Result<Stream, CallRejected> {
        if self.calls.len() >= MAX_IN_FLIGHT {
            return Err(CallRejected::Full);
        }
        if self.calls.contains_key(&identifier) {
            return Err(CallRejected::InUse);
        }
        self.last_number += 1;
        let stream = Stream { number: self.last_number, log: Arc::default() };
        if let Some(token) = &progress {
            self.progress.insert(token.clone(), identifier.clone());
        }
        let call = RunningCall { stream: stream.clone(), progress, retained: false, cancel: None };
        self.calls.insert(identifier, call);
        Ok(stream)
    }

    /// Opens the stream of a call that takes the short way; `cancel` cancels it.
    pub(crate) fn open_direct(
        &mut self,
        identifier: &RequestId,
        cancel: CancellationToken,
    ) -> Result<Stream, CallRejected> {
        let stream = self.open(identifier.clone(), None)?;
        if let Some(call) = self.calls.get_mut(identifier) {
            call.cancel = Some(cancel);
        }
        Ok(stream)
    }

    /// Appends the reply of a call that took the short way. It is dropped if the call was cancelled, also if a
    /// later call has the same id.
    pub(crate) fn reply(
        &mut self,
        identifier: &RequestId,
        stream: &Stream,
        bytes: Bytes,
        now: Instant,
    ) {
        let is_running =
            self.calls.get(identifier).is_some_and(|call| call.stream.number == stream.number);
        if is_running {
            self.finish(identifier, bytes, now);
        }
    }

    fn finish(&mut self, identifier: &RequestId, bytes: Bytes, now: Instant) {
        let Some(call) = self.close(identifier) else { return };
        call.stream.log.reply(bytes);
        if call.retained {
            self.remember_finished(call.stream, now);
        }
    }

    /// Appends a message, encoded as `bytes`, to its stream.
    pub(crate) fn deliver(&mut self, message: &ServerJsonRpcMessage, bytes: Bytes, now: Instant) {
        match json_rpc::replied_call(message) {
            // The reply to a cancelled call is dropped; the client no longer waits for it.
            Some(identifier) => self.finish(identifier, bytes, now),
            None => self.stream_of(message).push(bytes),
        }
    }

    fn stream_of(&self, message: &ServerJsonRpcMessage) -> &EventLog {
        let caller = match message {
            JsonRpcMessage::Request(request) => {
                let origin = request.request.extensions().get::<OriginatingRequestId>();
                origin.map(|origin| &origin.0)
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress.get(&progress.params.progress_token)
                }
                _ => None,
            },
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        };
        let call = caller.and_then(|identifier| self.calls.get(identifier));
        call.map_or(&*self.standalone, |call| &*call.stream.log)
    }

    fn close(&mut self, identifier: &RequestId) -> Option<RunningCall> {
        let call = self.calls.remove(identifier)?;
        if let Some(token) = &call.progress {
            self.progress.remove(token);
        }
        Some(call)
    }

    /// Ends the stream of a call that the client cancelled.
    pub(crate) fn cancel(&mut self, identifier: &RequestId) {
        if let Some(call) = self.close(identifier) {
            call.stream.log.end();
            if let Some(cancel) = call.cancel {
                cancel.cancel();
            }
        }
    }

    /// Makes a stream resumable, also if its call has finished by now.
    pub(crate) fn retain(&mut self, stream: &Stream, now: Instant) {
        let running = self.calls.values_mut().find(|call| call.stream.number == stream.number);
        match running {
            Some(call) => call.retained = true,
            None => self.remember_finished(stream.clone(), now),
        }
    }

    fn remember_finished(&mut self, stream: Stream, now: Instant) {
        if self.finished.len() >= MAX_FINISHED_STREAMS {
            self.finished.pop_front();
        }
        self.finished.push_back(FinishedStream { stream, at: now });
    }

    /// Finds the standalone stream or a retained one.
    pub(crate) fn find(&self, number: u64) -> Option<Stream> {
        if number == STANDALONE {
            return Some(Stream { number, log: Arc::clone(&self.standalone) });
        }
        let running = self.calls.values().filter(|call| call.retained).map(|call| &call.stream);
        let finished = self.finished.iter().map(|finished| &finished.stream);
        running.chain(finished).find(|stream| stream.number == number).cloned()
    }

    /// Drops streams that finished `retention` ago or earlier.
    pub(crate) fn drop_finished(&mut self, retention: Duration, now: Instant) {
        self.finished.retain(|finished| now.duration_since(finished.at) < retention);
    }

    /// Ends the standalone stream; calls still get their replies.
    pub(crate) fn end_standalone(&self) {
        self.standalone.end();
    }

    pub(crate) fn end_all(&mut self) {
        self.standalone.end();
        for call in self.calls.values() {
            call.stream.log.end();
        }
        self.calls.clear();
        self.progress.clear();
    }

    pub(crate) fn has_running_calls(&self) -> bool {
        !self.calls.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: i64, streams: &mut SessionStreams) -> Stream {
        streams.open(RequestId::Number(number), None).expect("below the limit")
    }

    #[test]
    fn an_identifier_in_use_is_refused_until_its_call_ends() {
        let mut streams = SessionStreams::default();
        stream(1, &mut streams);
        assert_eq!(streams.open(RequestId::Number(1), None).err(), Some(CallRejected::InUse));
        streams.cancel(&RequestId::Number(1));
        assert!(streams.open(RequestId::Number(1), None).is_ok());
    }

    #[test]
    fn a_late_reply_does_not_reach_a_later_call_of_the_same_id() {
        let mut streams = SessionStreams::default();
        let (id, now) = (RequestId::Number(1), Instant::now());
        let cancel = CancellationToken::new();
        let first = streams.open_direct(&id, cancel.clone()).expect("free");
        streams.cancel(&id);
        assert!(cancel.is_cancelled());
        streams.open_direct(&id, CancellationToken::new()).expect("free again");
        streams.reply(&id, &first, Bytes::from_static(b"late"), now);
        assert!(streams.has_running_calls());
    }

    #[test]
    fn a_client_cannot_have_more_calls_than_the_limit() {
        let mut streams = SessionStreams::default();
        for number in 0..MAX_IN_FLIGHT {
            stream(i64::try_from(number).expect("small"), &mut streams);
        }
        assert_eq!(streams.open(RequestId::Number(-1), None).err(), Some(CallRejected::Full));
    }

    #[test]
    fn only_retained_streams_can_be_found() {
        let mut streams = SessionStreams::default();
        let plain = stream(1, &mut streams);
        let retained = stream(2, &mut streams);
        streams.retain(&retained, Instant::now());
        assert!(streams.find(plain.number).is_none());
        assert!(streams.find(retained.number).is_some());
        assert!(streams.find(STANDALONE).is_some());
    }

    #[test]
    fn finished_streams_are_bounded_in_number_and_age() {
        let mut streams = SessionStreams::default();
        let now = Instant::now();
        let opened: Vec<_> = (0..20).map(|number| stream(number, &mut streams)).collect();
        for number in 0..20 {
            streams.cancel(&RequestId::Number(number));
        }
        for stream in &opened {
            streams.retain(stream, now);
        }
        assert_eq!(streams.finished.len(), MAX_FINISHED_STREAMS);
        streams.drop_finished(Duration::from_secs(1), now + Duration::from_secs(2));
        assert!(streams.finished.is_empty());
    }
}
