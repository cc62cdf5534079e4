//! Answers that are given again when a request is repeated.

use carrel_domain::{TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::StoreError;
use crate::model::{IdempotencyKey, StoredReply};

/// Returns the digest of the first request of a key, and the task that it made.
pub(super) fn task_of(
    connection: &Connection,
    repeat: &IdempotencyKey,
) -> rusqlite::Result<Option<([u8; 32], Option<TaskId>)>> {
    connection
        .prepare_cached("SELECT digest, task_id FROM replies WHERE scope = ? AND key = ?")?
        .query_row(params![repeat.scope, repeat.key], |row| {
            Ok((row.get(0)?, row.get::<_, Option<[u8; 16]>>(1)?.map(TaskId::from_bytes)))
        })
        .optional()
}

/// Remembers which task a request made.
pub(super) fn remember_task(
    connection: &Connection,
    repeat: &IdempotencyKey,
    task: TaskId,
    now: Timestamp,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO replies (scope, key, digest, task_id, at)
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![
            repeat.scope,
            repeat.key,
            repeat.digest,
            task.to_bytes(),
            now.as_millis()
        ])?;
    Ok(())
}

/// Remembers an answer, unless one is remembered. Returns the remembered one.
pub(super) fn remember(
    connection: &Connection,
    repeat: &IdempotencyKey,
    status: u16,
    body: &str,
    now: Timestamp,
) -> Result<StoredReply, StoreError> {
    if let Some(first) = find(connection, &repeat.scope, &repeat.key)? {
        return Ok(first);
    }
    connection
        .prepare_cached(
            "INSERT INTO replies (scope, key, digest, status, body, at) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![repeat.scope, repeat.key, repeat.digest, status, body, now.as_millis()])?;
    Ok(StoredReply { digest: repeat.digest, status, body: body.to_owned() })
}

/// Returns the answer to a request that came before.
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

/// Forgets that a request made a task.
pub(super) fn forget_task(connection: &Connection, task: TaskId) -> rusqlite::Result<usize> {
    connection.prepare_cached("DELETE FROM replies WHERE task_id = ?")?.execute([task.to_bytes()])
}

/// Forgets every answer of a workspace. Their scopes begin with its id and a space, which `!` follows.
pub(super) fn delete_workspace(connection: &Connection, id: &str) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("DELETE FROM replies WHERE scope >= ?1 || ' ' AND scope < ?1 || '!'")?
        .execute([id])
}

/// Forgets answers from before a time.
pub(super) fn forget(connection: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    connection.prepare_cached("DELETE FROM replies WHERE at < ?")?.execute([before.as_millis()])
}
