//! Workspaces, stored replies, and registered workers.

use carrel_domain::{Network, Timestamp, VolumeId, WorkspaceId};

use super::error::PgError;
use super::rows::{self, AsUuid as _, small, text};
use super::session::PgSession;
use crate::error::StoreError;
use crate::lifecycle::signed;
use crate::{Counts, IdempotencyKey, StoredReply, WorkerRecord, Workspace};

macro_rules! workspace_columns {
    () => {
        "SELECT id, name, layout, network, quota_bytes, created_at, volume FROM workspaces "
    };
}

/// Adds a workspace. Returns the existing one if the id is taken.
pub(super) async fn add(
    session: &mut PgSession,
    new: &Workspace,
) -> Result<Option<Workspace>, PgError> {
    const ADD: &str = "INSERT INTO workspaces
            (id, name, layout, network, quota_bytes, created_at, volume)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
    let added = session
        .execute(
            ADD,
            &[
                &new.id.uuid(),
                &text(&new.name),
                &new.layout.as_str(),
                &new.network.map(Network::as_str),
                &signed(new.quota_bytes),
                &new.created_at.as_millis(),
                &new.volume.map(VolumeId::uuid),
            ],
        )
        .await?;
    if added == 1 { Ok(None) } else { find(session, new.id).await }
}

pub(super) async fn find(
    session: &mut PgSession,
    id: WorkspaceId,
) -> Result<Option<Workspace>, PgError> {
    const FIND: &str = concat!(workspace_columns!(), "WHERE id = $1");
    session.first(FIND, &[&id.uuid()]).await?.as_ref().map(rows::workspace).transpose()
}

pub(super) async fn list(
    session: &mut PgSession,
    after: Option<WorkspaceId>,
    limit: u32,
) -> Result<Vec<Workspace>, PgError> {
    const LIST: &str = concat!(workspace_columns!(), "WHERE id > $1 ORDER BY id LIMIT $2");
    let after = after.unwrap_or_else(|| WorkspaceId::from_bytes([0; 16]));
    let found = session.query(LIST, &[&after.uuid(), &i64::from(limit)]).await?;
    found.iter().map(rows::workspace).collect()
}

/// Deletes a workspace with its tasks, credentials and replies, unless a task is queued or running.
pub(super) async fn delete(session: &mut PgSession, id: WorkspaceId) -> Result<bool, PgError> {
    const IDLE: &str =
        "SELECT FROM workspaces WHERE id = $1 AND queued = 0 AND running = 0 FOR UPDATE";
    const REPLIES: &str = "DELETE FROM replies WHERE starts_with(scope, $1)";
    if session.first(IDLE, &[&id.uuid()]).await?.is_none() {
        return Ok(false);
    }
    for statement in [
        "DELETE FROM task_events WHERE task IN
             (SELECT sequence FROM task_executions WHERE workspace_id = $1)",
        "DELETE FROM task_executions WHERE workspace_id = $1",
        "DELETE FROM credentials WHERE workspace_id = $1",
        "DELETE FROM workspaces WHERE id = $1",
    ] {
        session.execute(statement, &[&id.uuid()]).await?;
    }
    session.execute(REPLIES, &[&format!("{id} ")]).await?;
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
    let assigned = session.first(ASSIGNED, &[&workspace.uuid()]).await?;
    let Some(row) = assigned else { return Ok(None) };
    if let Some(volume) = rows::volume(&row, 0)? {
        return Ok(Some(volume));
    }
    let among: Vec<_> = among.iter().map(|volume| volume.uuid()).collect();
    let assigned = session.first(ASSIGN, &[&workspace.uuid(), &among]).await?;
    assigned.map_or(Ok(None), |row| rows::volume(&row, 0))
}

pub(super) async fn register_worker(
    session: &mut PgSession,
    worker: &WorkerRecord,
) -> Result<(), PgError> {
    const REGISTER: &str = "INSERT INTO workers (id, volume, address, concurrency, seen_at)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (id) DO UPDATE SET volume = excluded.volume, address = excluded.address,
            concurrency = excluded.concurrency, seen_at = excluded.seen_at";
    let address = rows::optional(worker.address.as_deref());
    let (volume, concurrency) = (worker.volume.uuid(), small(worker.concurrency));
    let seen = worker.seen_at.as_millis();
    let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&text(&worker.id.0), &volume, &address, &concurrency, &seen];
    session.execute(REGISTER, values).await.map(|_| ())
}

/// Returns the workers whose registration is not older than `since`.
pub(super) async fn workers(
    session: &mut PgSession,
    since: Timestamp,
) -> Result<Vec<WorkerRecord>, PgError> {
    const SEEN: &str = r#"SELECT id, volume, address, concurrency, seen_at FROM workers
        WHERE seen_at >= $1 ORDER BY id COLLATE "C""#;
    let found = session.query(SEEN, &[&since.as_millis()]).await?;
    found.iter().map(rows::worker).collect()
}

/// Stores a reply, unless there is one. Returns the stored one.
pub(super) async fn save_reply(
    session: &mut PgSession,
    key: &IdempotencyKey,
    status: u16,
    body: &str,
    now: Timestamp,
) -> Result<StoredReply, PgError> {
    const SAVE: &str = "INSERT INTO replies (scope, key, digest, status, body, at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (scope, key) DO NOTHING";
    let digest = key.digest.as_slice();
    let scope = text(&key.scope);
    let key = text(&key.key);
    let body = text(body);
    let at = now.as_millis();
    session.execute(SAVE, &[&scope, &key, &digest, &i32::from(status), &body, &at]).await?;
    let found = reply(session, &scope, &key).await?;
    // The row holds a task instead of a reply: scopes of submissions and of other routes never meet.
    let is_submission =
        || StoreError::Unreadable { what: "a key of a submission as one of a reply".into() };
    Ok(found.ok_or_else(is_submission)?)
}

pub(super) async fn reply(
    session: &mut PgSession,
    scope: &str,
    key: &str,
) -> Result<Option<StoredReply>, PgError> {
    const FIND: &str = "SELECT digest, status, body FROM replies
        WHERE scope = $1 AND key = $2 AND status IS NOT NULL";
    let Some(row) = session.first(FIND, &[&text(scope), &text(key)]).await? else {
        return Ok(None);
    };
    let unreadable = |what: &str| StoreError::Unreadable { what: what.to_owned() };
    let digest: &[u8] = rows::get(&row, 0)?;
    let status: i32 = rows::get(&row, 1)?;
    Ok(Some(StoredReply {
        digest: digest.try_into().map_err(|_| unreadable("a digest"))?,
        status: u16::try_from(status).map_err(|_| unreadable("the status of a reply"))?,
        body: rows::get(&row, 2)?,
    }))
}

pub(super) async fn counts(session: &mut PgSession) -> Result<Counts, PgError> {
    const COUNT: &str = "SELECT count(*), coalesce(sum(queued), 0)::int8,
        coalesce(sum(running), 0)::int8 FROM workspaces";
    let Some(row) = session.first(COUNT, &[]).await? else { return Ok(Counts::default()) };
    Ok(Counts {
        workspaces: rows::unsigned(&row, 0)?,
        queued: rows::unsigned(&row, 1)?,
        running: rows::unsigned(&row, 2)?,
    })
}
