//! The sending side of an agent's event channel: one-line summaries, and a throttle for deltas.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::event::{Event, Tokens};
use crate::failure::{AgentFailure, FailureKind, Result};

/// The length of a summary in characters.
const MAX_CHARS: usize = 140;

/// The time between two deltas that pass. They arrive hundreds of times a second.
const DELTA_INTERVAL: Duration = Duration::from_millis(500);

/// Sends events. A closed channel is ignored; a full one is waited for.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(pub(crate) mpsc::Sender<Event>);

impl Reporter {
    pub(crate) async fn send(&self, event: Event) {
        let _ = self.0.send(event).await;
    }

    pub(crate) async fn usage(&self, tokens: Tokens) {
        self.send(Event::Usage(tokens)).await;
    }

    /// Sends an [`Event::Other`] with its text cut to one line.
    pub(crate) async fn event(&self, kind: &str, message: Option<&str>) {
        let message = message.map(one_line).filter(|message| !message.is_empty());
        self.send(Event::Other { kind: kind.to_owned(), message }).await;
    }

    pub(crate) async fn failure(&self, failure: &AgentFailure) {
        self.event(failure.kind.name(), Some(&failure.message)).await;
    }

    pub(crate) async fn turn_ended(&self, ended: &Result<()>) {
        match ended {
            Ok(()) => self.event("turn_completed", None).await,
            Err(failure) => self.failure(failure).await,
        }
    }

    /// Returns the reply to a request that the agent may refuse. A refusal is sent as an event.
    pub(crate) async fn unless_refused(
        &self,
        kind: &str,
        reply: Result<Value>,
    ) -> Result<Option<Value>> {
        match reply {
            Err(AgentFailure { kind: FailureKind::ResponseError, message }) => {
                self.event(kind, Some(&message)).await;
                Ok(None)
            }
            reply => reply.map(Some),
        }
    }
}

/// Lets one event per [`DELTA_INTERVAL`] pass.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    last: Option<Instant>,
}

impl Throttle {
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= DELTA_INTERVAL);
        if is_due {
            self.last = Some(Instant::now());
        }
        is_due
    }
}

/// Returns a text as one line of at most [`MAX_CHARS`] characters, without control characters and escape
/// sequences.
fn one_line(text: &str) -> String {
    let line = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_CHARS {
        return line;
    }
    let cut: String = line.chars().take(MAX_CHARS - 1).collect();
    format!("{}…", cut.trim_end())
}

/// Removes control characters and escape sequences. Reads only as much as a summary can show.
fn plain(text: &str) -> String {
    let mut characters = text.chars().take(MAX_CHARS * 8).peekable();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' if characters.next_if_eq(&'[').is_some() => {
                // A CSI sequence ends with a byte from `@` to `~`.
                while characters.next_if(|next| !('@'..='~').contains(next)).is_some() {}
                characters.next();
            }
            '\n' | '\t' | '\r' => plain.push(' '),
            _ if character.is_control() => {}
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn deltas_are_throttled() {
        let mut throttle = Throttle::default();
        assert!(throttle.is_due());
        let passed = (0..100).filter(|_| throttle.is_due()).count();
        assert!(passed < 50, "{passed}");
    }

    #[test]
    fn a_text_becomes_one_plain_line() {
        assert_eq!(one_line("\u{1b}[1;31mred\u{1b}[0m\n\n and\tplain\u{7}\u{0}"), "red and plain");
        assert_eq!(one_line(""), "");
    }

    #[test]
    fn a_long_text_is_cut_where_a_character_ends() {
        for text in ["ä".repeat(500), "wort ".repeat(100), "ab ".repeat(45) + &"ö".repeat(100)] {
            let line = one_line(&text);
            assert!(line.chars().count() <= MAX_CHARS, "{line}");
            assert!(line.ends_with('…'), "{line}");
        }
        let fits = "x".repeat(MAX_CHARS);
        assert_eq!(one_line(&fits), fits);
    }
}
