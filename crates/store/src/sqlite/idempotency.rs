//! Idempotency keys in SQLite. A row holds either the reply to a request or the task that a submission
//! created.

use carrel_domain::{TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::StoreError;
use crate::{IdempotencyKey, StoredReply};

/// Returns the digest of the first request with a key, and the task that it created.
pub(super) fn task_of(
    connection: &Connection,
    key: &IdempotencyKey,
) -> rusqlite::Result<Option<([u8; 32], Option<TaskId>)>> {
    connection
        .prepare_cached("SELECT digest, task_id FROM replies WHERE scope = ? AND key = ?")?
        .query_row(params![key.scope, key.key], |row| {
            Ok((row.get(0)?, row.get::<_, Option<[u8; 16]>>(1)?.map(TaskId::from_bytes)))
        })
        .optional()
}

pub(super) fn save_task(
    connection: &Connection,
    key: &IdempotencyKey,
    task: TaskId,
    now: Timestamp,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO replies (scope, key, digest, task_id, at)
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![key.scope, key.key, key.digest, task.to_bytes(), now.as_millis()])?;
    Ok(())
}

/// Stores a reply, unless there is one. Returns the stored one.
pub(super) fn save(
    connection: &Connection,
    key: &IdempotencyKey,
    status: u16,
    body: &str,
    now: Timestamp,
) -> Result<StoredReply, StoreError> {
    if let Some(first) = find(connection, &key.scope, &key.key)? {
        return Ok(first);
    }
    connection
        .prepare_cached(
            "INSERT INTO replies (scope, key, digest, status, body, at) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![key.scope, key.key, key.digest, status, body, now.as_millis()])?;
    Ok(StoredReply { digest: key.digest, status, body: body.to_owned() })
}

pub(super) fn find(
    connection: &Connection,
    scope: &str,
    key: &str,
) -> Result<Option<StoredReply>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT digest, status, body FROM replies
             WHERE scope = ? AND key = ? AND status IS NOT NULL",
        )?
        .query_row(params![scope, key], |row| {
            Ok(StoredReply { digest: row.get(0)?, status: row.get(1)?, body: row.get(2)? })
        })
        .optional()?;
    Ok(found)
}

/// Deletes the key that a task was submitted with.
pub(super) fn delete_task(connection: &Connection, task: TaskId) -> rusqlite::Result<usize> {
    connection.prepare_cached("DELETE FROM replies WHERE task_id = ?")?.execute([task.to_bytes()])
}

/// Deletes the keys of a workspace. Their scopes begin with its id and a space, which `!` follows in
/// ASCII.
pub(super) fn delete_workspace(connection: &Connection, id: &str) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("DELETE FROM replies WHERE scope >= ?1 || ' ' AND scope < ?1 || '!'")?
        .execute([id])
}

pub(super) fn delete_before(connection: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    connection.prepare_cached("DELETE FROM replies WHERE at < ?")?.execute([before.as_millis()])
}
