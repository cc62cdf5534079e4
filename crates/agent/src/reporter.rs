//! Telling others what an agent does.

use tokio::sync::mpsc;

use crate::event::{Event, Tokens};
use crate::one_line::one_line;

/// Tells others what an agent does. Nobody need listen; who does is waited for.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    events: mpsc::Sender<Event>,
}

impl Reporter {
    pub(crate) fn new(events: mpsc::Sender<Event>) -> Self {
        Self { events }
    }

    pub(crate) async fn tell(&self, event: Event) {
        let _ = self.events.send(event).await;
    }

    pub(crate) async fn usage(&self, tokens: Tokens) {
        self.tell(Event::Usage(tokens)).await;
    }

    /// Tells anything that has a name, with a text for people that is cut to a line.
    pub(crate) async fn something(&self, kind: &str, message: Option<&str>) {
        let message = message.map(one_line).filter(|message| !message.is_empty());
        self.tell(Event::Other { kind: kind.to_owned(), message }).await;
    }
}
