//! Reads the app server's notifications: reports them as events and recognises the end of the turn.
//!
//! One notification can carry up to four things, which [`EventReader::notification`] extracts in this order:
//!
//! 1. token counts, added up over all threads by [`UsageTracker`] and reported when the sum has grown;
//! 2. rate limits of the provider, reported when they have changed;
//! 3. the agent's message: the text of the last completed message item is the answer of the turn;
//! 4. the end of the turn, successful or not ([`turn_end`]).
//!
//! Each is also reported as an event with a one-line summary ([`notification`]), but for the end. Deltas, which arrive
//! hundreds of times a second, are throttled.
//!
//! An agent can start agents of its own. Their threads appear on the same connection with other thread ids:
//! their tokens count, but their messages and turn ends are not the session's. A notification without ids,
//! as older servers send them, is taken for the session's own.

use serde_json::Value;

use super::usage_tracker::UsageTracker;
use super::{notification, text, turn_end};
use crate::event::Event;
use crate::failure::Result;
use crate::reporter::{Reporter, Throttle};

/// The reader of one session's notifications, and the thread and turn that they are matched against.
pub(super) struct EventReader {
    pub(super) turn: Option<String>,
    /// The last message of the agent in the current turn.
    answer: String,
    /// The tokens of the session, by thread.
    pub(super) usage: UsageTracker,
    throttle: Throttle,
    reporter: Reporter,
}

impl EventReader {
    pub(super) fn new(reporter: Reporter) -> Self {
        Self {
            turn: None,
            answer: String::new(),
            usage: UsageTracker::default(),
            throttle: Throttle::default(),
            reporter,
        }
    }

    pub(super) fn start_turn(&mut self, turn: String) {
        self.usage.start_turn(&turn);
        self.turn = Some(turn);
        self.answer.clear();
    }

    pub(super) fn thread(&self) -> &str {
        &self.usage.thread
    }

    /// Handles a notification. Returns the answer if it ends the turn successfully, and the failure if it
    /// ends it otherwise.
    pub(super) async fn notification(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Option<String>> {
        if let Some(tokens) = self.usage.update(method, params) {
            self.reporter.usage(tokens).await;
        }
        if let Some(limits) = self.usage.update_rate_limits(params) {
            self.reporter.send(Event::RateLimits { limits }).await;
        }
        if self.is_own(params) {
            if let Some(message) = notification::agent_message(method, params) {
                message.clone_into(&mut self.answer);
            }
            if let Some(end) = turn_end::of(method, params, &self.usage) {
                self.turn = None;
                self.reporter.turn_ended(&end).await;
                return end.map(|()| Some(std::mem::take(&mut self.answer)));
            }
        }
        if !notification::is_delta(method) || self.throttle.is_due() {
            let summary = notification::summary(method, params);
            self.reporter.event(method, Some(&summary)).await;
        }
        Ok(None)
    }

    /// Returns true if a notification ends the current turn.
    pub(super) fn ends_turn(&self, method: &str, params: &Value) -> bool {
        self.is_own(params) && turn_end::of(method, params, &self.usage).is_some()
    }

    /// Returns true if a notification is about the session's thread and current turn.
    fn is_own(&self, params: &Value) -> bool {
        let matches =
            |path, own: Option<&str>| text(params, path).is_none_or(|named| Some(named) == own);
        let turn = self.turn.as_deref();
        matches("/threadId", Some(self.thread()))
            && matches("/turn/id", turn)
            && matches("/turnId", turn)
    }
}
