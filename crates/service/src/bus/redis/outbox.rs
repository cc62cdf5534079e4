//! The queue of outgoing events and cancellations.
//!
//! Messages are sent in order and in groups by one task, so that publishing never waits for Redis.
//! When the queue is full, or a group cannot be sent, messages are dropped: subscribers in other
//! processes notice a gap in the numbers, or poll, and read the store.

use std::sync::Arc;

use carrel_domain::TaskId;
use carrel_store::{Event, EventKind};
use redis::Pipeline;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::debug;

use super::connection::Connection;
use super::keys;

/// Messages that may wait; further ones are dropped.
const CAPACITY: usize = 4096;

/// Messages of one pipeline.
const MAX_GROUP: usize = 128;

#[derive(Debug)]
pub(super) enum OutgoingMessage {
    Event(Box<Event>),
    Cancel(TaskId),
}

/// The JSON of an event on its channel. Interface: other programs read the first four fields.
#[derive(Debug, Deserialize, Serialize)]
struct Message {
    event_type: String,
    task_id: TaskId,
    data: Value,
    timestamp: carrel_domain::Timestamp,
    number: u64,
}

fn encode(event: &Event) -> String {
    let message = Message {
        event_type: event.kind.as_str().to_owned(),
        task_id: event.task,
        data: event.data.clone(),
        timestamp: event.at,
        number: event.number,
    };
    serde_json::to_string(&message).unwrap_or_default()
}

/// Decodes a message from the channel of a task. `None` if it is malformed or of another task.
pub(super) fn decode(task: TaskId, text: &[u8]) -> Option<Event> {
    let message: Message = serde_json::from_slice(text).ok()?;
    let kind = EventKind::parse(&message.event_type)?;
    let Message { task_id, number, data, timestamp: at, .. } = message;
    (task_id == task).then_some(Event { task, number, kind, data, at })
}

#[derive(Debug)]
pub(super) struct Outbox {
    connection: Arc<Connection>,
    queue: mpsc::Receiver<OutgoingMessage>,
}

impl Outbox {
    pub(super) fn new(connection: Arc<Connection>) -> (mpsc::Sender<OutgoingMessage>, Self) {
        let (sender, queue) = mpsc::channel(CAPACITY);
        (sender, Self { connection, queue })
    }

    /// Sends until all senders are dropped.
    pub(super) async fn run(mut self) {
        let mut group = Vec::with_capacity(MAX_GROUP);
        while self.queue.recv_many(&mut group, MAX_GROUP).await > 0 {
            let mut pipeline = redis::pipe();
            for message in group.drain(..) {
                match message {
                    OutgoingMessage::Event(event) => add(&mut pipeline, &event),
                    OutgoingMessage::Cancel(task) => {
                        pipeline.cmd("PUBLISH").arg(keys::CANCEL).arg(task.to_string()).ignore();
                    }
                }
            }
            if let Err(error) = self.connection.execute(&pipeline).await {
                debug!(%error, "events were not sent; subscribers read the store");
            }
        }
    }
}

fn add(pipeline: &mut Pipeline, event: &Event) {
    pipeline.cmd("PUBLISH").arg(keys::events(event.task)).arg(encode(event)).ignore();
    if event.kind != EventKind::StatusChanged {
        return;
    }
    let text = |name: &str| event.data[name].as_str().map(str::to_owned);
    let mut fields = Vec::new();
    let status = text("status");
    if status.as_deref() == Some("running") {
        fields.push(("started_at", event.at.to_string()));
    }
    let known = [("status", status), ("worker_id", text("worker_id")), ("error", text("error"))];
    fields.extend(known.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let key = keys::status(event.task);
    pipeline.cmd("HSET").arg(&key).arg(fields).ignore();
    pipeline.cmd("EXPIRE").arg(&key).arg(keys::STATUS_SECONDS).ignore();
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::Timestamp;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn a_decoded_message_is_the_encoded_event() {
        let task = TaskId::generate();
        let event = Event {
            task,
            number: 7,
            kind: EventKind::LogLine,
            data: json!({ "line": "a" }),
            at: Timestamp::from_millis(1_700_000_000_123),
        };
        let text = encode(&event);
        assert_eq!(decode(task, text.as_bytes()), Some(event));
        assert_eq!(decode(TaskId::generate(), text.as_bytes()), None);
        for wrong in [
            "",
            "{}",
            &text.replace("log_line", "odd"),
            &text.replace("\"number\":7", "\"number\":-7"),
        ] {
            assert_eq!(decode(task, wrong.as_bytes()), None, "{wrong}");
        }
    }
}
