//! The events of tasks. A task's row stores the number of its last event, so that an append needs no query for
//! the maximum, and a claim's view of the events can be compared with one number.

use carrel_domain::TaskId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows;
use crate::error::StoreError;
use crate::lifecycle::signed;
use crate::{Event, NewEvent};

/// The end of a task's events, to append to.
pub(super) struct EventLog {
    pub(super) task: TaskId,
    pub(super) sequence: i64,
    pub(super) last: u64,
}

impl EventLog {
    /// Appends events with the next numbers, and stores the last number in the task's row.
    pub(super) fn append(
        &mut self,
        connection: &Connection,
        events: Vec<NewEvent>,
    ) -> rusqlite::Result<Vec<Event>> {
        let mut insert = connection.prepare_cached(
            "INSERT INTO task_events (task, number, kind, data, at) VALUES (?, ?, ?, ?, ?)",
        )?;
        let mut written = Vec::with_capacity(events.len());
        for NewEvent { kind, data, at } in events {
            self.last += 1;
            let text = data.to_string();
            insert.execute(params![
                self.sequence,
                signed(self.last),
                kind.as_str(),
                text,
                at.as_millis()
            ])?;
            written.push(Event { task: self.task, number: self.last, kind, data, at });
        }
        let mut update = connection
            .prepare_cached("UPDATE task_executions SET last_event = ? WHERE sequence = ?")?;
        update.execute(params![signed(self.last), self.sequence])?;
        Ok(written)
    }
}

/// Returns up to `limit` events with numbers greater than `after`.
pub(super) fn after(
    connection: &Connection,
    task: TaskId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    let sequence: Option<i64> = connection
        .prepare_cached("SELECT sequence FROM task_executions WHERE id = ?")?
        .query_row([task.to_bytes()], |row| row.get(0))
        .optional()?;
    let Some(sequence) = sequence else { return Ok(Vec::new()) };
    let mut select = connection.prepare_cached(
        "SELECT number, kind, data, at FROM task_events
         WHERE task = ? AND number > ? ORDER BY number LIMIT ?",
    )?;
    let found =
        select.query_map(params![sequence, signed(after), limit], |row| rows::event(task, row))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
