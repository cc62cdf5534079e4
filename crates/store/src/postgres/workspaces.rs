//! The deletion of workspaces and of old tasks, the assignment of workspaces to volumes, and leases of
//! idempotency keys.

use std::time::Duration;

use carrel_domain::{Timestamp, VolumeId, WorkspaceId};

use super::error::PgError;
use super::session::PgSession;
use crate::IdempotencyKey;
use crate::value::{Value, values};

/// Deletes a workspace with its tasks, credentials and replies, unless a task is queued or running.
pub(super) async fn delete(session: &mut PgSession, id: WorkspaceId) -> Result<bool, PgError> {
    const IDLE: &str =
        "SELECT 1 FROM workspaces WHERE id = $1 AND queued = 0 AND running = 0 FOR UPDATE";
    const REPLIES: &str = "DELETE FROM replies WHERE starts_with(scope, $1)";
    if session.first::<i64>(IDLE, values![id]).await?.is_none() {
        return Ok(false);
    }
    for statement in [
        "DELETE FROM task_events WHERE task IN
             (SELECT sequence FROM task_executions WHERE workspace_id = $1)",
        "DELETE FROM task_executions WHERE workspace_id = $1",
        "DELETE FROM credentials WHERE workspace_id = $1",
        "DELETE FROM workspaces WHERE id = $1",
    ] {
        session.execute(statement, values![id]).await?;
    }
    session.execute(REPLIES, values![format!("{id} ")]).await?;
    Ok(true)
}

/// Returns the volume of a workspace, and assigns the emptiest of `among` if it has none.
pub(super) async fn assign_volume(
    session: &mut PgSession,
    workspace: WorkspaceId,
    among: &[VolumeId],
) -> Result<Option<VolumeId>, PgError> {
    const ASSIGNED: &str = "SELECT volume FROM workspaces WHERE id = $1 FOR NO KEY UPDATE";
    const ASSIGN: &str = "UPDATE workspaces SET volume = (
            SELECT v.volume FROM unnest($2::uuid[]) WITH ORDINALITY AS v (volume, position)
            ORDER BY (SELECT count(*) FROM workspaces w WHERE w.volume = v.volume), v.position
            LIMIT 1)
        WHERE id = $1 RETURNING volume";
    let assigned: Option<Option<VolumeId>> = session.first(ASSIGNED, values![workspace]).await?;
    let Some(None) = assigned else { return Ok(assigned.flatten()) };
    let among = Value::list(among.iter().copied());
    Ok(session.first(ASSIGN, values![workspace, among]).await?.flatten())
}

/// Deletes up to 100 tasks that became terminal before a time, so that others do not wait long for the lock of
/// the queue.
pub(super) async fn delete_tasks(
    session: &mut PgSession,
    before: Timestamp,
) -> Result<u64, PgError> {
    const OLD: &str = "SELECT sequence FROM task_executions WHERE completed_at < $1
        ORDER BY completed_at LIMIT 100";
    let old = Value::list(session.all::<i64>(OLD, values![before]).await?);
    session.execute("DELETE FROM task_events WHERE task = ANY($1)", vec![old.clone()]).await?;
    session.execute("DELETE FROM task_executions WHERE sequence = ANY($1)", vec![old]).await
}

/// Acquires or renews the lease of a key. Returns false if another holder has it. Without leases two
/// processes that get the same request at the same time would both execute it before either has stored a
/// reply. Expiry is measured by the clock of the server, which is the same for all.
pub(super) async fn acquire_key(
    session: &mut PgSession,
    key: &IdempotencyKey,
    holder: &str,
    lease: Duration,
) -> Result<bool, PgError> {
    const ACQUIRE: &str = "INSERT INTO replies_under_way (scope, key, holder, held_until)
        VALUES ($1, $2, $3, clock_timestamp() + $4::int8 * interval '1 millisecond')
        ON CONFLICT (scope, key) DO UPDATE
        SET holder = excluded.holder, held_until = excluded.held_until
        WHERE replies_under_way.holder = excluded.holder
           OR replies_under_way.held_until < clock_timestamp()";
    let values = values![&key.scope, &key.key, holder, lease];
    Ok(session.execute(ACQUIRE, values).await? == 1)
}
