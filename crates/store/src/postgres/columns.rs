//! The parameters of a batch's statements: one array for each column, one element for each operation.
//!
//! Each function builds the parameters `$1`, `$2`, … of the file in `sql/` that is named after its operation,
//! in order. `unnest` turns the arrays back into rows, and the position of a row leads to its operation.

use carrel_domain::{TaskStatus, Timestamp, VolumeId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::operation::PendingClaim;
use super::rows::{AsUuid as _, optional, small, text};
use crate::lifecycle::{rank, signed, to_millis};
use crate::{Claim, Finish, NewEvent, NewTask};

pub(super) type Values = Vec<Box<dyn ToSql + Sync + Send>>;

fn column<T: ToSql + Sync + Send + 'static>(
    values: impl Iterator<Item = T>,
) -> Box<dyn ToSql + Sync + Send> {
    Box::new(values.collect::<Vec<T>>())
}

pub(super) fn submissions(new: &[&NewTask]) -> Values {
    let each = || new.iter();
    let key = |new: &&&NewTask| new.idempotency_key.clone();
    vec![
        column(each().map(|new| new.id.uuid())),
        column(each().map(|new| new.workspace.uuid())),
        column(each().map(|new| text(&new.task_type).into_owned())),
        column(each().map(|new| rank(new.priority))),
        column(each().map(|new| new.configuration.to_string())),
        column(each().map(|new| to_millis(new.timeout))),
        column(each().map(|new| optional(new.correlation_id.as_deref()).map(String::from))),
        column(each().map(|new| new.now.as_millis())),
        column(each().map(|new| small(new.max_attempts))),
        column(each().map(|new| signed(new.max_waiting))),
        column(each().map(|new| key(&new).map(|key| text(&key.scope).into_owned()))),
        column(each().map(|new| key(&new).map(|key| text(&key.key).into_owned()))),
        column(each().map(|new| key(&new).map(|key| key.digest.to_vec()))),
    ]
}

pub(super) fn ends(ends: &[(Claim, &Finish)]) -> Values {
    let each = || ends.iter();
    let mut values: Values = vec![
        column(each().map(|(claim, _)| claim.task.uuid())),
        column(each().map(|(claim, _)| small(claim.attempt))),
        column(each().map(|(_, finish)| TaskStatus::as_str(finish.status))),
        column(each().map(|(_, finish)| finish.result.to_string())),
        column(each().map(|(_, finish)| optional(finish.error.as_deref()).map(String::from))),
        column(each().map(|(_, finish)| to_millis(finish.took))),
        column(each().map(|(_, finish)| finish.now.as_millis())),
        column(each().map(|(_, finish)| signed(finish.after))),
        column(each().map(|(_, finish)| signed(finish.events.len() as u64))),
    ];
    values.extend(events(each().map(|(_, finish)| finish.events.as_slice())));
    values
}

pub(super) fn appends(appends: &[(Claim, u64, &[NewEvent])]) -> Values {
    let each = || appends.iter();
    let mut values: Values = vec![
        column(each().map(|(claim, ..)| claim.task.uuid())),
        column(each().map(|(claim, ..)| small(claim.attempt))),
        column(each().map(|(_, after, _)| signed(*after))),
        column(each().map(|(.., events)| signed(events.len() as u64))),
    ];
    values.extend(events(each().map(|(.., events)| *events)));
    values
}

/// The events of several operations: the position of the operation, the position of the event in it, and its
/// fields.
fn events<'a>(of: impl Iterator<Item = &'a [NewEvent]>) -> Values {
    let numbered = |events: &'a [NewEvent]| (1_i64..).zip(events);
    let all: Vec<(i64, i64, &NewEvent)> = (1_i64..)
        .zip(of)
        .flat_map(|(position, events)| {
            numbered(events).map(move |(number, event)| (position, number, event))
        })
        .collect();
    vec![
        column(all.iter().map(|(position, ..)| *position)),
        column(all.iter().map(|(_, number, _)| *number)),
        column(all.iter().map(|(.., event)| event.kind.as_str())),
        column(all.iter().map(|(.., event)| event.data.to_string())),
        column(all.iter().map(|(.., event)| event.at.as_millis())),
    ]
}

pub(super) fn heartbeats(heartbeats: &[(Claim, Timestamp)]) -> Values {
    let each = || heartbeats.iter();
    vec![
        column(each().map(|(claim, _)| claim.task.uuid())),
        column(each().map(|(claim, _)| small(claim.attempt))),
        column(each().map(|(_, until)| until.as_millis())),
    ]
}

/// The parameters of `claim.sql` for claims that differ only in their tokens.
pub(super) fn claims(first: &PendingClaim, tokens: Vec<Uuid>) -> Values {
    let volume: VolumeId = first.request.volume;
    vec![
        Box::new(i64::from(first.request.per_workspace)),
        Box::new(volume.uuid()),
        Box::new(first.now.as_millis()),
        Box::new(tokens),
        Box::new(text(&first.request.worker.0).into_owned()),
        Box::new(first.now.after(first.request.lease).as_millis()),
    ]
}
