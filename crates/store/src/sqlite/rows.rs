//! Reads rows into values. A value that this version does not know, such as a status of a newer one, is an error
//! rather than a default.

use std::time::Duration;

use carrel_domain::{
    Layout, Network, Priority, TaskId, TaskStatus, Timestamp, VolumeId, WorkspaceId,
};
use rusqlite::Row;
use rusqlite::types::Type;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::lifecycle::rank;
use crate::{Event, EventKind, Task, WorkerId, Workspace};

/// The columns of a task in the order in which [`task`] reads them.
macro_rules! task_columns {
    () => {
        "id, workspace_id, task_type, priority, status, configuration, timeout_ms, correlation_id, \
         submitted_at, started_at, completed_at, attempt, max_attempts, worker_id, \
         cancel_requested, result, error_message, execution_time_ms, last_event, sequence"
    };
}
pub(super) use task_columns;

/// The column of the row id in [`task_columns`].
pub(super) const SEQUENCE: usize = 19;

pub(super) fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: TaskId::from_bytes(row.get(0)?),
        workspace: WorkspaceId::from_bytes(row.get(1)?),
        task_type: row.get(2)?,
        priority: priority(row, 3)?,
        status: word(row, 4, |word| word.parse::<TaskStatus>().ok())?,
        configuration: json(row, 5)?.unwrap_or(Value::Null),
        timeout: millis(row.get(6)?),
        correlation_id: row.get(7)?,
        submitted_at: Timestamp::from_millis(row.get(8)?),
        started_at: row.get::<_, Option<i64>>(9)?.map(Timestamp::from_millis),
        completed_at: row.get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
        attempt: row.get(11)?,
        max_attempts: row.get(12)?,
        worker: row.get::<_, Option<String>>(13)?.map(WorkerId),
        cancel_requested: row.get(14)?,
        result: json(row, 15)?,
        error: row.get(16)?,
        execution_time: row.get::<_, Option<i64>>(17)?.map(millis),
        last_event: unsigned(row, 18)?,
    })
}

pub(super) fn event(task: TaskId, row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        task,
        number: unsigned(row, 0)?,
        kind: word(row, 1, EventKind::parse)?,
        data: json(row, 2)?.unwrap_or(Value::Null),
        at: Timestamp::from_millis(row.get(3)?),
    })
}

pub(super) const WORKSPACE_COLUMNS: &str =
    "id, name, layout, network, quota_bytes, created_at, volume";

pub(super) fn workspace(row: &Row<'_>) -> rusqlite::Result<Workspace> {
    let layout = |word: &str| {
        [Layout::Plain, Layout::Tenant].into_iter().find(|layout| layout.as_str() == word)
    };
    let network: Option<String> = row.get(3)?;
    let network = network.map(|word| word.parse::<Network>()).transpose();
    Ok(Workspace {
        id: WorkspaceId::from_bytes(row.get(0)?),
        name: row.get(1)?,
        layout: word(row, 2, layout)?,
        network: network.map_err(|error| unreadable(3, Type::Text, error))?,
        quota_bytes: unsigned(row, 4)?,
        created_at: Timestamp::from_millis(row.get(5)?),
        volume: volume(row, 6)?,
    })
}

pub(super) fn volume(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<VolumeId>> {
    Ok(row.get::<_, Option<[u8; 16]>>(column)?.map(VolumeId::from_bytes))
}

pub(super) fn priority(row: &Row<'_>, column: usize) -> rusqlite::Result<Priority> {
    let found: i16 = row.get(column)?;
    let priority = Priority::ALL.iter().copied().find(|priority| rank(*priority) == found);
    priority.ok_or(rusqlite::Error::IntegralValueOutOfRange(column, found.into()))
}

fn word<T>(row: &Row<'_>, column: usize, read: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let word = row.get_ref(column)?.as_str()?;
    read(word).ok_or_else(|| unreadable(column, Type::Text, format!("unknown word {word:?}")))
}

pub(super) fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| unreadable(column, Type::Text, error))
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let found: i64 = row.get(column)?;
    u64::try_from(found).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, found))
}

pub(super) fn value<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| unreadable(column, Type::Text, error))
}

fn unreadable(
    column: usize,
    kind: Type,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, kind, error.into())
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
