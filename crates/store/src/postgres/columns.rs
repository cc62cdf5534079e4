//! The parameters of a batch's statements: one array for each column, one element for each operation.
//!
//! Each function builds the parameters `$1`, `$2`, … of the file in `sql/` that is named after its operation,
//! in order. `unnest` turns the arrays back into rows, and the position of a row leads to its operation.

use carrel_domain::Timestamp;
use uuid::Uuid;

use super::operation::PendingClaim;
use crate::value::{Value, values};
use crate::{Claim, Finish, IdempotencyKey, NewEvent, NewTask};

pub(super) fn submissions(new: &[&NewTask]) -> Vec<Value> {
    fn key<T>(new: &NewTask, field: impl Fn(&IdempotencyKey) -> T) -> Option<T> {
        new.idempotency_key.as_ref().map(field)
    }
    let each = || new.iter();
    vec![
        Value::list(each().map(|new| new.id)),
        Value::list(each().map(|new| new.workspace)),
        Value::list(each().map(|new| &new.task_type)),
        Value::list(each().map(|new| new.priority)),
        Value::list(each().map(|new| &new.configuration)),
        Value::list(each().map(|new| new.timeout)),
        Value::list(each().map(|new| new.correlation_id.as_ref())),
        Value::list(each().map(|new| new.now)),
        Value::list(each().map(|new| new.max_attempts)),
        Value::list(each().map(|new| new.max_waiting)),
        Value::list(each().map(|new| key(new, |key| key.scope.clone()))),
        Value::list(each().map(|new| key(new, |key| key.key.clone()))),
        Value::list(each().map(|new| key(new, |key| key.digest))),
    ]
}

pub(super) fn ends(ends: &[(Claim, &Finish)]) -> Vec<Value> {
    let each = || ends.iter();
    let mut values = vec![
        Value::list(each().map(|(claim, _)| claim.task)),
        Value::list(each().map(|(claim, _)| claim.attempt)),
        Value::list(each().map(|(_, finish)| finish.status)),
        Value::list(each().map(|(_, finish)| &finish.result)),
        Value::list(each().map(|(_, finish)| finish.error.as_ref())),
        Value::list(each().map(|(_, finish)| finish.took)),
        Value::list(each().map(|(_, finish)| finish.now)),
        Value::list(each().map(|(_, finish)| finish.after)),
        Value::list(each().map(|(_, finish)| finish.events.len())),
    ];
    values.extend(events(each().map(|(_, finish)| finish.events.as_slice())));
    values
}

pub(super) fn appends(appends: &[(Claim, u64, &[NewEvent])]) -> Vec<Value> {
    let each = || appends.iter();
    let mut values = vec![
        Value::list(each().map(|(claim, ..)| claim.task)),
        Value::list(each().map(|(claim, ..)| claim.attempt)),
        Value::list(each().map(|(_, after, _)| *after)),
        Value::list(each().map(|(.., events)| events.len())),
    ];
    values.extend(events(each().map(|(.., events)| *events)));
    values
}

/// The events of several operations: the position of the operation, the position of the event in it, and its
/// fields.
fn events<'a>(of: impl Iterator<Item = &'a [NewEvent]>) -> Vec<Value> {
    let numbered = |events: &'a [NewEvent]| (1_i64..).zip(events);
    let all: Vec<(i64, i64, &NewEvent)> = (1_i64..)
        .zip(of)
        .flat_map(|(position, events)| {
            numbered(events).map(move |(number, event)| (position, number, event))
        })
        .collect();
    vec![
        Value::list(all.iter().map(|(position, ..)| *position)),
        Value::list(all.iter().map(|(_, number, _)| *number)),
        Value::list(all.iter().map(|(.., event)| event.kind)),
        Value::list(all.iter().map(|(.., event)| &event.data)),
        Value::list(all.iter().map(|(.., event)| event.at)),
    ]
}

pub(super) fn heartbeats(heartbeats: &[(Claim, Timestamp)]) -> Vec<Value> {
    let each = || heartbeats.iter();
    vec![
        Value::list(each().map(|(claim, _)| claim.task)),
        Value::list(each().map(|(claim, _)| claim.attempt)),
        Value::list(each().map(|(_, until)| *until)),
    ]
}

/// The parameters of `claim.sql` for claims that differ only in their tokens.
pub(super) fn claims(first: &PendingClaim, tokens: impl Iterator<Item = Uuid>) -> Vec<Value> {
    let PendingClaim { request, now, .. } = first;
    let (tokens, until) = (Value::list(tokens), now.after(request.lease));
    values![request.per_workspace, request.volume, *now, tokens, &request.worker, until]
}
