//! Hearing an agent while something is waited for.

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

/// How long news may be held back. An agent that writes a thousand lines a second is told of a few
/// times a second, which is enough to see that it lives.
const HELD_BACK: Duration = Duration::from_millis(200);

/// Hears an agent. Everything goes to the transcript at once, and the last of each kind to the
/// conductor a little later.
#[derive(Debug)]
pub(super) struct EventReader {
    run: RunId,
    heard: mpsc::Receiver<AgentEvent>,
    inbox: mpsc::Sender<Message>,
    /// What the present turn is known by.
    session: Option<String>,
    usage: Option<Spend>,
    limits: Option<Value>,
    something: Option<(String, Option<String>)>,
    /// When what is held back has to go.
    due: Option<Instant>,
}

impl EventReader {
    pub(super) fn new(
        run: RunId,
        heard: mpsc::Receiver<AgentEvent>,
        inbox: mpsc::Sender<Message>,
    ) -> Self {
        let (session, usage, limits, something) = (None, None, None, None);
        Self { run, heard, inbox, session, usage, limits, something, due: None }
    }

    /// Returns what the present turn is known by.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Hears the agent while something is waited for.
    pub(super) async fn during<T>(
        &mut self,
        transcript: &Transcript,
        waiting: impl Future<Output = T>,
    ) -> T {
        let mut waiting = pin!(waiting);
        loop {
            let due = self.due;
            tokio::select! {
                biased;
                Some(event) = self.heard.recv() => self.hear(transcript, event).await,
                () = until(due), if due.is_some() => self.tell().await,
                done = &mut waiting => return done,
            }
        }
    }

    /// Tells the conductor everything that was heard so far.
    pub(super) async fn flush(&mut self, transcript: &Transcript) {
        while let Ok(event) = self.heard.try_recv() {
            self.hear(transcript, event).await;
        }
        self.tell().await;
    }

    async fn hear(&mut self, transcript: &Transcript, event: AgentEvent) {
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
                let before = self.something.take().and_then(|(_, message)| message);
                self.something = Some((kind, message.or(before)));
            }
        }
        self.due.get_or_insert_with(|| Instant::now() + HELD_BACK);
    }

    async fn tell(&mut self) {
        self.due = None;
        let usage = self.usage.take().map(AgentUpdate::Usage);
        let limits = self.limits.take().map(AgentUpdate::RateLimits);
        let something = self.something.take();
        let something = something.map(|(event, message)| AgentUpdate::Other { event, message });
        for news in [usage, limits, something].into_iter().flatten() {
            self.send(news).await;
        }
    }

    async fn send(&self, news: AgentUpdate) {
        // The conductor listens until all runs are over.
        let _ = self.inbox.send(Message::Event(Event::AgentUpdated(self.run, news))).await;
    }
}

fn until(due: Option<Instant>) -> Sleep {
    sleep_until(due.unwrap_or_else(Instant::now))
}
