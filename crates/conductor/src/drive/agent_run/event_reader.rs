//! Reads an agent's events while the run waits for something else.
//!
//! Opening a session, a turn and closing the session are futures that produce events through a bounded
//! channel while they run. [`EventReader::read_while`] polls such a future and the channel together, so
//! that the agent never blocks on a full channel. Each event goes to the transcript at once. The conductor
//! receives less: a session start immediately, and of all other kinds the latest value, at most every
//! [`MAX_DELAY`]. That is enough for its budgets, since usage is a running total.

use std::pin::pin;
use std::time::Duration;

use carrel_agent::{Event as AgentEvent, Tokens};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::claimed_issue::RunId;
use crate::drive::event_loop::Message;
use crate::drive::transcript::Transcript;
use crate::event::{AgentUpdate, Event};
use crate::spend::Spend;

/// The longest time for which an event is held back. An agent may write a thousand events a second, and
/// each message to the conductor costs a decision.
const MAX_DELAY: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct EventReader {
    run: RunId,
    events: mpsc::Receiver<AgentEvent>,
    inbox: mpsc::Sender<Message>,
    pub(super) session: Option<String>,
    usage: Option<Spend>,
    limits: Option<Value>,
    other: Option<(String, Option<String>)>,
    /// The time at which the held-back values are sent.
    due: Option<Instant>,
}

impl EventReader {
    pub(super) fn new(
        run: RunId,
        events: mpsc::Receiver<AgentEvent>,
        inbox: mpsc::Sender<Message>,
    ) -> Self {
        let (session, usage, limits, other) = (None, None, None, None);
        Self { run, events, inbox, session, usage, limits, other, due: None }
    }

    /// Awaits a future, and reads events until it completes. Events are preferred over the completion, so
    /// that those sent before it are not left in the channel.
    pub(super) async fn read_while<T>(
        &mut self,
        transcript: &Transcript,
        waiting: impl Future<Output = T>,
    ) -> T {
        let mut waiting = pin!(waiting);
        loop {
            let due = self.due;
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => self.read(transcript, event).await,
                () = until(due), if due.is_some() => self.send_pending().await,
                done = &mut waiting => return done,
            }
        }
    }

    /// Reads the events that have arrived, and sends all held-back values.
    pub(super) async fn flush(&mut self, transcript: &Transcript) {
        while let Ok(event) = self.events.try_recv() {
            self.read(transcript, event).await;
        }
        self.send_pending().await;
    }

    async fn read(&mut self, transcript: &Transcript, event: AgentEvent) {
        transcript.note("agent", json!({ "said": event })).await;
        match event {
            AgentEvent::SessionStarted { session, thread, .. } => {
                self.session = Some(session.clone());
                self.send(AgentUpdate::SessionStarted { session, thread }).await;
            }
            AgentEvent::Usage(Tokens { input, output, total }) => {
                let spent = Spend {
                    input_tokens: input,
                    output_tokens: output,
                    total_tokens: total,
                    ..Spend::default()
                };
                self.usage = Some(spent);
            }
            AgentEvent::RateLimits { limits } => self.limits = Some(limits),
            AgentEvent::Other { kind, message } => {
                let before = self.other.take().and_then(|(_, message)| message);
                self.other = Some((kind, message.or(before)));
            }
        }
        self.due.get_or_insert_with(|| Instant::now() + MAX_DELAY);
    }

    async fn send_pending(&mut self) {
        self.due = None;
        let usage = self.usage.take().map(AgentUpdate::Usage);
        let limits = self.limits.take().map(AgentUpdate::RateLimits);
        let other = self.other.take();
        let other = other.map(|(event, message)| AgentUpdate::Other { event, message });
        for update in [usage, limits, other].into_iter().flatten() {
            self.send(update).await;
        }
    }

    async fn send(&self, update: AgentUpdate) {
        // The conductor receives until all runs have ended.
        let _ = self.inbox.send(Message::Event(Event::AgentUpdated(self.run, update))).await;
    }
}

fn until(due: Option<Instant>) -> Sleep {
    sleep_until(due.unwrap_or_else(Instant::now))
}
