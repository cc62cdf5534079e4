//! What every store says and judges in the same way.

use carrel_domain::{TaskStatus, Timestamp};
use serde_json::{Map, Value};

use crate::model::{Claim, Event, EventKind, Finish, NewEvent, Task};

/// Returns the event that tells where a task stands, with what else there is to say about it.
pub(crate) fn status_changed(
    status: TaskStatus,
    more: impl IntoIterator<Item = (&'static str, Value)>,
    at: Timestamp,
) -> NewEvent {
    let mut data = Map::new();
    data.insert("status".to_owned(), status.as_str().into());
    data.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    NewEvent { kind: EventKind::StatusChanged, data: Value::Object(data), at }
}

/// Tells whether events that are there are those that somebody wants to write.
pub(crate) fn tells_the_same(there: &[Event], wanted: &[NewEvent]) -> bool {
    // A fraction may lose its last digit on its way through a text, as what is there did.
    let stored = |data: &Value| serde_json::from_str::<Value>(&data.to_string()).ok();
    let same = |(there, wanted): (&Event, &NewEvent)| {
        (there.kind, there.at) == (wanted.kind, wanted.at)
            && Some(&there.data) == stored(&wanted.data).as_ref()
    };
    there.len() == wanted.len() && there.iter().zip(wanted).all(same)
}

/// Tells whether a task is over because this end was written before.
pub(crate) fn is_end_of(task: &Task, claim: Claim, finish: &Finish) -> bool {
    // Only whoever finished it says how long it took.
    task.attempt == claim.attempt
        && task.status.is_terminal()
        && (task.status == finish.status || task.cancel_requested)
        && task.execution_time.is_some()
        && task.last_event == finish.after + finish.events.len() as u64 + 1
}
