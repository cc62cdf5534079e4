//! The sending side of an agent's event channel.

use tokio::sync::mpsc;

use crate::event::{Event, Tokens};
use crate::one_line::one_line;

/// Sends events. A closed channel is ignored; a full one is waited for.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    events: mpsc::Sender<Event>,
}

impl Reporter {
    pub(crate) fn new(events: mpsc::Sender<Event>) -> Self {
        Self { events }
    }

    pub(crate) async fn send(&self, event: Event) {
        let _ = self.events.send(event).await;
    }

    pub(crate) async fn usage(&self, tokens: Tokens) {
        self.send(Event::Usage(tokens)).await;
    }

    /// Sends an [`Event::Other`] with its text cut to one line.
    pub(crate) async fn event(&self, kind: &str, message: Option<&str>) {
        let message = message.map(one_line).filter(|message| !message.is_empty());
        self.send(Event::Other { kind: kind.to_owned(), message }).await;
    }
}
