//! Reads of tasks and events, and the deletion of old tasks.

use carrel_domain::{TaskId, TaskStatus, Timestamp};

use super::error::PgError;
use super::rows::{self, AsUuid as _, task_columns};
use super::session::PgSession;
use crate::lifecycle::signed;
use crate::{Event, Page, QueuedTask, Task, TaskFilter};

pub(super) async fn find(session: &mut PgSession, id: TaskId) -> Result<Option<Task>, PgError> {
    const FIND: &str = concat!("SELECT ", task_columns!(), " FROM task_executions WHERE id = $1");
    session.first(FIND, &[&id.uuid()]).await?.as_ref().map(rows::task).transpose()
}

/// Returns up to `limit` events with numbers greater than `after`.
pub(super) async fn events(
    session: &mut PgSession,
    task: TaskId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, PgError> {
    const AFTER: &str = "SELECT number, kind, data, at FROM task_events
        WHERE task = (SELECT sequence FROM task_executions WHERE id = $1) AND number > $2
        ORDER BY number LIMIT $3";
    let found = session.query(AFTER, &[&task.uuid(), &signed(after), &i64::from(limit)]).await?;
    found.iter().map(|row| rows::event(task, row)).collect()
}

pub(super) async fn list(session: &mut PgSession, filter: &TaskFilter) -> Result<Page, PgError> {
    macro_rules! matching {
        () => {
            "FROM task_executions WHERE workspace_id = $1
             AND ($2::text IS NULL OR status = $2) AND ($3::text IS NULL OR task_type = $3)"
        };
    }
    const TOTAL: &str = concat!("SELECT count(*) ", matching!());
    // Configurations and results may be large and are left out of lists.
    const PAGE: &str = concat!(
        "SELECT id, workspace_id, task_type, priority, status, 'null', timeout_ms, correlation_id,
             submitted_at, started_at, completed_at, attempt, max_attempts, worker_id,
             cancel_requested, NULL::text, error_message, execution_time_ms, last_event, sequence ",
        matching!(),
        " ORDER BY sequence DESC LIMIT $4 OFFSET $5"
    );
    let workspace = filter.workspace.uuid();
    let status = filter.status.map(TaskStatus::as_str);
    let kind = rows::optional(filter.task_type.as_deref());
    let total = session.query(TOTAL, &[&workspace, &status, &kind]).await?;
    let total = total.first().map_or(Ok(0), |row| rows::unsigned(row, 0))?;
    let (limit, offset) = (i64::from(filter.limit), signed(filter.offset));
    let found = session.query(PAGE, &[&workspace, &status, &kind, &limit, &offset]).await?;
    let tasks = found.iter().map(rows::task).collect::<Result<_, _>>()?;
    Ok(Page { tasks, total })
}

/// Returns queued tasks that were due before a time, by priority and then by age.
pub(super) async fn queued(
    session: &mut PgSession,
    due_before: Timestamp,
    limit: u32,
) -> Result<Vec<QueuedTask>, PgError> {
    const QUEUED: &str = "SELECT t.id, t.workspace_id, t.priority, w.volume
        FROM task_executions t JOIN workspaces w ON w.id = t.workspace_id
        WHERE t.status = 'queued' AND t.due_at < $1 ORDER BY t.priority, t.sequence LIMIT $2";
    let found = session.query(QUEUED, &[&due_before.as_millis(), &i64::from(limit)]).await?;
    found.iter().map(rows::queued_task).collect()
}

/// Deletes up to 100 tasks that became terminal before a time, so that others do not wait long for the lock of
/// the queue.
pub(super) async fn delete_before(
    session: &mut PgSession,
    before: Timestamp,
) -> Result<u64, PgError> {
    const OLD: &str = "SELECT sequence FROM task_executions WHERE completed_at < $1
        ORDER BY completed_at LIMIT 100";
    let old = session.query(OLD, &[&before.as_millis()]).await?;
    let old = old.iter().map(|row| rows::get(row, 0)).collect::<Result<Vec<i64>, _>>()?;
    session.execute("DELETE FROM task_events WHERE task = ANY($1)", &[&old]).await?;
    session.execute("DELETE FROM task_executions WHERE sequence = ANY($1)", &[&old]).await
}
