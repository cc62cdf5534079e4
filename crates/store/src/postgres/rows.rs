//! Reads rows into values, and converts values into parameters. A value that this version does not know is an
//! error rather than a default; a text loses its NUL characters, which PostgreSQL cannot store.

use std::borrow::Cow;
use std::time::Duration;

use carrel_domain::{
    Layout, Network, Priority, TaskId, TaskStatus, Timestamp, VolumeId, WorkspaceId,
};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::error::PgError;
use crate::error::StoreError;
use crate::lifecycle::rank;
use crate::{Event, EventKind, QueuedTask, Task, WorkerId, WorkerRecord, Workspace};

/// The columns of a task in the order in which [`task`] reads them.
macro_rules! task_columns {
    () => {
        "id, workspace_id, task_type, priority, status, configuration, timeout_ms, correlation_id, \
         submitted_at, started_at, completed_at, attempt, max_attempts, worker_id, \
         cancel_requested, result, error_message, execution_time_ms, last_event, sequence"
    };
}
pub(super) use task_columns;

pub(super) fn task(row: &Row) -> Result<Task, PgError> {
    Ok(Task {
        id: TaskId::from_bytes(id(row, 0)?),
        workspace: WorkspaceId::from_bytes(id(row, 1)?),
        task_type: get(row, 2)?,
        priority: priority(row, 3)?,
        status: word(row, 4, |word| word.parse::<TaskStatus>().ok())?,
        configuration: json(row, 5)?.unwrap_or(Value::Null),
        timeout: millis(get(row, 6)?),
        correlation_id: get(row, 7)?,
        submitted_at: time(row, 8)?,
        started_at: get::<Option<i64>>(row, 9)?.map(Timestamp::from_millis),
        completed_at: get::<Option<i64>>(row, 10)?.map(Timestamp::from_millis),
        attempt: count(row, 11)?,
        max_attempts: count(row, 12)?,
        worker: get::<Option<String>>(row, 13)?.map(WorkerId),
        cancel_requested: get(row, 14)?,
        result: json(row, 15)?,
        error: get(row, 16)?,
        execution_time: get::<Option<i64>>(row, 17)?.map(millis),
        last_event: unsigned(row, 18)?,
    })
}

pub(super) fn event(task: TaskId, row: &Row) -> Result<Event, PgError> {
    Ok(Event {
        task,
        number: unsigned(row, 0)?,
        kind: word(row, 1, EventKind::parse)?,
        data: json(row, 2)?.unwrap_or(Value::Null),
        at: time(row, 3)?,
    })
}

pub(super) fn workspace(row: &Row) -> Result<Workspace, PgError> {
    let layout = |word: &str| {
        [Layout::Plain, Layout::Tenant].into_iter().find(|layout| layout.as_str() == word)
    };
    let network: Option<String> = get(row, 3)?;
    let network = network.map(|word| word.parse::<Network>()).transpose();
    Ok(Workspace {
        id: WorkspaceId::from_bytes(id(row, 0)?),
        name: get(row, 1)?,
        layout: word(row, 2, layout)?,
        network: network.map_err(|error| unreadable(error.to_string()))?,
        quota_bytes: unsigned(row, 4)?,
        created_at: time(row, 5)?,
        volume: volume(row, 6)?,
    })
}

pub(super) fn worker(row: &Row) -> Result<WorkerRecord, PgError> {
    Ok(WorkerRecord {
        id: WorkerId(get(row, 0)?),
        volume: VolumeId::from_bytes(id(row, 1)?),
        address: get(row, 2)?,
        concurrency: count(row, 3)?,
        seen_at: time(row, 4)?,
    })
}

pub(super) fn queued_task(row: &Row) -> Result<QueuedTask, PgError> {
    Ok(QueuedTask {
        task: TaskId::from_bytes(id(row, 0)?),
        workspace: WorkspaceId::from_bytes(id(row, 1)?),
        priority: priority(row, 2)?,
        volume: volume(row, 3)?,
    })
}

pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, PgError> {
    Ok(row.try_get(column)?)
}

fn id(row: &Row, column: usize) -> Result<[u8; 16], PgError> {
    Ok(get::<Uuid>(row, column)?.into_bytes())
}

pub(super) fn volume(row: &Row, column: usize) -> Result<Option<VolumeId>, PgError> {
    let found = get::<Option<Uuid>>(row, column)?;
    Ok(found.map(|volume| VolumeId::from_bytes(volume.into_bytes())))
}

pub(super) fn time(row: &Row, column: usize) -> Result<Timestamp, PgError> {
    Ok(Timestamp::from_millis(get(row, column)?))
}

fn count(row: &Row, column: usize) -> Result<u32, PgError> {
    let found: i32 = get(row, column)?;
    u32::try_from(found).map_err(|_| unreadable(format!("the number {found}")))
}

pub(super) fn unsigned(row: &Row, column: usize) -> Result<u64, PgError> {
    let found: i64 = get(row, column)?;
    u64::try_from(found).map_err(|_| unreadable(format!("the number {found}")))
}

fn priority(row: &Row, column: usize) -> Result<Priority, PgError> {
    let found: i16 = get(row, column)?;
    let priority = Priority::ALL.iter().copied().find(|priority| rank(*priority) == found);
    priority.ok_or_else(|| unreadable(format!("the priority {found}")))
}

fn word<T>(row: &Row, column: usize, read: impl Fn(&str) -> Option<T>) -> Result<T, PgError> {
    let word: &str = get(row, column)?;
    read(word).ok_or_else(|| unreadable(format!("the word {word:?}")))
}

pub(super) fn json(row: &Row, column: usize) -> Result<Option<Value>, PgError> {
    let Some(text): Option<&str> = get(row, column)? else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| unreadable(error.to_string()))
}

pub(super) fn unreadable(what: String) -> PgError {
    StoreError::Unreadable { what }.into()
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Replaces NUL characters, which PostgreSQL's `text` cannot store.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

pub(super) fn optional(value: Option<&str>) -> Option<Cow<'_, str>> {
    value.map(text)
}

/// Converts to `integer`, saturating.
pub(super) fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(super) trait AsUuid {
    fn uuid(self) -> Uuid;
}

macro_rules! as_uuid {
    ($($name:ident)+) => {$(
        impl AsUuid for $name {
            fn uuid(self) -> Uuid {
                Uuid::from_bytes(self.to_bytes())
            }
        }
    )+};
}
as_uuid!(TaskId WorkspaceId VolumeId);
