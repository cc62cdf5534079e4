//! Operations of one kind as the columns of one statement.

use carrel_domain::{TaskStatus, VolumeId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::operation::Wish;
use super::rows::{AsUuid as _, optional, small, text};
use crate::facts::{rank, signed, to_millis};
use crate::model::{Claim, Finish, NewEvent, NewTask};

/// The values of a statement.
pub(super) type Values = Vec<Box<dyn ToSql + Sync + Send>>;

fn column<T: ToSql + Sync + Send + 'static>(
    values: impl Iterator<Item = T>,
) -> Box<dyn ToSql + Sync + Send> {
    Box::new(values.collect::<Vec<T>>())
}

/// The columns of `submit.sql`.
pub(super) fn submissions(new: &[&NewTask]) -> Values {
    let each = || new.iter();
    let repeat = |new: &&&NewTask| new.repeat.clone();
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
        column(each().map(|new| repeat(&new).map(|repeat| text(&repeat.scope).into_owned()))),
        column(each().map(|new| repeat(&new).map(|repeat| text(&repeat.key).into_owned()))),
        column(each().map(|new| repeat(&new).map(|repeat| repeat.digest.to_vec()))),
    ]
}

/// The columns of `finish.sql`.
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

/// The columns of `append.sql`.
pub(super) fn news(news: &[(Claim, u64, &[NewEvent])]) -> Values {
    let each = || news.iter();
    let mut values: Values = vec![
        column(each().map(|(claim, ..)| claim.task.uuid())),
        column(each().map(|(claim, ..)| small(claim.attempt))),
        column(each().map(|(_, after, _)| signed(*after))),
        column(each().map(|(.., events)| signed(events.len() as u64))),
    ];
    values.extend(events(each().map(|(.., events)| *events)));
    values
}

/// The events of operations: of which, as its how manieth, and what.
fn events<'a>(of: impl Iterator<Item = &'a [NewEvent]>) -> Values {
    let numbered = |events: &'a [NewEvent]| (1_i64..).zip(events);
    let all: Vec<(i64, i64, &NewEvent)> = (1_i64..)
        .zip(of)
        .flat_map(|(place, events)| numbered(events).map(move |(n, event)| (place, n, event)))
        .collect();
    vec![
        column(all.iter().map(|(place, ..)| *place)),
        column(all.iter().map(|(_, number, _)| *number)),
        column(all.iter().map(|(.., event)| event.kind.as_str())),
        column(all.iter().map(|(.., event)| event.data.to_string())),
        column(all.iter().map(|(.., event)| event.at.as_millis())),
    ]
}

/// The columns of `heartbeat.sql`.
pub(super) fn beats(beats: &[(Claim, carrel_domain::Timestamp)]) -> Values {
    let each = || beats.iter();
    vec![
        column(each().map(|(claim, _)| claim.task.uuid())),
        column(each().map(|(claim, _)| small(claim.attempt))),
        column(each().map(|(_, until)| until.as_millis())),
    ]
}

/// The values of `claim.sql` for wishes that differ in nothing but their tokens.
pub(super) fn wishes(first: &Wish, tokens: Vec<Uuid>) -> Values {
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
