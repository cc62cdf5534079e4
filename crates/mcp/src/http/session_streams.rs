//! Which stream of a session a message belongs on.

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

use super::event_log::EventLog;
use crate::{
    json_rpc,
    limits::{MAX_FINISHED_STREAMS, MAX_IN_FLIGHT},
};

/// The number of the stream that belongs to no call.
pub(crate) const STANDALONE: u64 = 0;

/// Why a call was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRejected {
    /// Its identifier belongs to a call that is running.
    InUse,
    /// Too many calls are running.
    Full,
}

/// A stream with its number.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) number: u64,
    pub(crate) log: Arc<EventLog>,
}

#[derive(Debug)]
struct Call {
    stream: Stream,
    progress: Option<ProgressToken>,
    kept: bool,
}

#[derive(Debug)]
struct Finished {
    stream: Stream,
    at: Instant,
}

/// The streams of a session: one for each running call, one for everything else, and those that
/// finished a short while ago.
#[derive(Debug, Default)]
pub(crate) struct SessionStreams {
    standalone: Arc<EventLog>,
    calls: HashMap<RequestId, Call>,
    progress: HashMap<ProgressToken, RequestId>,
    finished: VecDeque<Finished>,
    last_number: u64,
}

impl SessionStreams {
    /// Makes the stream of a call.
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
        let call = Call { stream: stream.clone(), progress, kept: false };
        self.calls.insert(identifier, call);
        Ok(stream)
    }

    /// Puts a message on its stream. `bytes` is the message in writing.
    pub(crate) fn deliver(&mut self, message: &ServerJsonRpcMessage, bytes: Bytes, now: Instant) {
        let answered = json_rpc::answered_call(message);
        match answered.and_then(|identifier| self.close(identifier)) {
            Some(call) => {
                call.stream.log.reply(bytes);
                if call.kept {
                    self.remember(call.stream, now);
                }
            }
            // The reply to a cancelled call has nowhere to go; the client does not wait for it.
            None if answered.is_some() => {}
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

    fn close(&mut self, identifier: &RequestId) -> Option<Call> {
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
        }
    }

    /// Sees to it that a stream can be resumed, even if its call has finished by now.
    pub(crate) fn keep(&mut self, stream: &Stream, now: Instant) {
        let running = self.calls.values_mut().find(|call| call.stream.number == stream.number);
        match running {
            Some(call) => call.kept = true,
            None => self.remember(stream.clone(), now),
        }
    }

    fn remember(&mut self, stream: Stream, now: Instant) {
        if self.finished.len() >= MAX_FINISHED_STREAMS {
            self.finished.pop_front();
        }
        self.finished.push_back(Finished { stream, at: now });
    }

    /// Finds a stream that can be read.
    pub(crate) fn find(&self, number: u64) -> Option<Stream> {
        if number == STANDALONE {
            return Some(Stream { number, log: Arc::clone(&self.standalone) });
        }
        let running = self.calls.values().filter(|call| call.kept).map(|call| &call.stream);
        let finished = self.finished.iter().map(|finished| &finished.stream);
        running.chain(finished).find(|stream| stream.number == number).cloned()
    }

    /// Forgets streams that finished longer than `linger` ago.
    pub(crate) fn forget_finished(&mut self, linger: Duration, now: Instant) {
        self.finished.retain(|finished| now.duration_since(finished.at) < linger);
    }

    /// Ends the stream that belongs to no call; calls still get their replies.
    pub(crate) fn end_standalone(&self) {
        self.standalone.end();
    }

    /// Ends everything.
    pub(crate) fn end_all(&mut self) {
        self.standalone.end();
        for call in self.calls.values() {
            call.stream.log.end();
        }
        self.calls.clear();
        self.progress.clear();
    }

    /// Whether a call is running.
    pub(crate) fn busy(&self) -> bool {
        !self.calls.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: i64, routes: &mut SessionStreams) -> Stream {
        routes.open(RequestId::Number(number), None).expect("there is room")
    }

    #[test]
    fn an_identifier_in_use_is_refused_until_its_call_ends() {
        let mut routes = SessionStreams::default();
        stream(1, &mut routes);
        assert_eq!(routes.open(RequestId::Number(1), None).err(), Some(CallRejected::InUse));
        routes.cancel(&RequestId::Number(1));
        assert!(routes.open(RequestId::Number(1), None).is_ok());
    }

    #[test]
    fn a_client_cannot_have_more_calls_than_the_limit() {
        let mut routes = SessionStreams::default();
        for number in 0..MAX_IN_FLIGHT {
            stream(i64::try_from(number).expect("small"), &mut routes);
        }
        assert_eq!(routes.open(RequestId::Number(-1), None).err(), Some(CallRejected::Full));
    }

    #[test]
    fn only_streams_that_were_kept_can_be_found() {
        let mut routes = SessionStreams::default();
        let (plain, kept) = (stream(1, &mut routes), stream(2, &mut routes));
        routes.keep(&kept, Instant::now());
        assert!(routes.find(plain.number).is_none());
        assert!(routes.find(kept.number).is_some());
        assert!(routes.find(STANDALONE).is_some());
    }

    #[test]
    fn finished_streams_are_few_and_short_lived() {
        let mut routes = SessionStreams::default();
        let now = Instant::now();
        let streams: Vec<_> = (0..20).map(|number| stream(number, &mut routes)).collect();
        for number in 0..20 {
            routes.cancel(&RequestId::Number(number));
        }
        for stream in &streams {
            routes.keep(stream, now);
        }
        assert_eq!(routes.finished.len(), MAX_FINISHED_STREAMS);
        routes.forget_finished(Duration::from_secs(1), now + Duration::from_secs(2));
        assert!(routes.finished.is_empty());
    }
}
