//! What there is to tell, on its way to Redis.

use std::sync::Arc;

use carrel_domain::TaskId;
use carrel_store::{Event, EventKind};
use redis::Pipeline;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::debug;

use super::link::Link;
use super::names;

/// News that may wait. What is more is dropped, and readers look into the store.
const WAITING: usize = 4096;

/// News that is sent at once.
const MANY: usize = 128;

/// Something to tell.
#[derive(Debug)]
pub(super) enum News {
    Event(Box<Event>),
    Cancel(TaskId),
}

/// An event as it travels. The first four fields are what programs before this one sent.
#[derive(Debug, Deserialize, Serialize)]
struct Message {
    event_type: String,
    task_id: TaskId,
    data: Value,
    timestamp: carrel_domain::Timestamp,
    number: u64,
}

/// Returns an event as it travels.
fn message(event: &Event) -> String {
    let message = Message {
        event_type: event.kind.as_str().to_owned(),
        task_id: event.task,
        data: event.data.clone(),
        timestamp: event.at,
        number: event.number,
    };
    serde_json::to_string(&message).unwrap_or_default()
}

/// Reads what another process told about a task.
pub(super) fn read(task: TaskId, text: &[u8]) -> Option<Event> {
    let message: Message = serde_json::from_slice(text).ok()?;
    let kind = EventKind::from_word(&message.event_type)?;
    let Message { task_id, number, data, timestamp: at, .. } = message;
    (task_id == task).then_some(Event { task, number, kind, data, at })
}

/// Sends news in the order in which it came.
#[derive(Debug)]
pub(super) struct Outbox {
    link: Arc<Link>,
    queue: mpsc::Receiver<News>,
}

impl Outbox {
    pub(super) fn new(link: Arc<Link>) -> (mpsc::Sender<News>, Self) {
        let (sender, queue) = mpsc::channel(WAITING);
        (sender, Self { link, queue })
    }

    /// Sends until nobody has anything to tell any more.
    pub(super) async fn run(mut self) {
        let mut group = Vec::with_capacity(MANY);
        while self.queue.recv_many(&mut group, MANY).await > 0 {
            let mut orders = redis::pipe();
            for news in group.drain(..) {
                match news {
                    News::Event(event) => add(&mut orders, &event),
                    News::Cancel(task) => {
                        orders.cmd("PUBLISH").arg(names::CANCEL).arg(task.to_string()).ignore();
                    }
                }
            }
            if let Err(error) = self.link.order(&orders).await {
                debug!(%error, "news was lost; readers look into the store");
            }
        }
    }
}

fn add(orders: &mut Pipeline, event: &Event) {
    orders.cmd("PUBLISH").arg(names::events(event.task)).arg(message(event)).ignore();
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
    let key = names::status(event.task);
    orders.cmd("HSET").arg(&key).arg(fields).ignore();
    orders.cmd("EXPIRE").arg(&key).arg(names::STATUS_SECONDS).ignore();
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_domain::Timestamp;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn what_is_read_is_what_was_told_and_nothing_else() {
        let task = TaskId::generate();
        let event = Event {
            task,
            number: 7,
            kind: EventKind::LogLine,
            data: json!({ "line": "a" }),
            at: Timestamp::from_millis(1_700_000_000_123),
        };
        let text = message(&event);
        assert_eq!(read(task, text.as_bytes()), Some(event));
        assert_eq!(read(TaskId::generate(), text.as_bytes()), None);
        for wrong in [
            "",
            "{}",
            &text.replace("log_line", "odd"),
            &text.replace("\"number\":7", "\"number\":-7"),
        ] {
            assert_eq!(read(task, wrong.as_bytes()), None, "{wrong}");
        }
    }
}
