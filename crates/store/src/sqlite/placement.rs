//! Registered workers, and the assignment of workspaces to volumes. With SQLite one process is server and
//! worker, so that there is one volume; the operations exist for the trait and its suite.

use carrel_domain::{Timestamp, VolumeId, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::rows;
use crate::error::StoreError;
use crate::{WorkerId, WorkerRecord};

pub(super) fn register(connection: &Connection, worker: &WorkerRecord) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO workers (id, volume, address, concurrency, seen_at)
             VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![
            worker.id.0,
            worker.volume.to_bytes(),
            worker.address,
            worker.concurrency,
            worker.seen_at.as_millis()
        ])?;
    Ok(())
}

pub(super) fn deregister(connection: &Connection, id: &WorkerId) -> Result<(), StoreError> {
    connection.prepare_cached("DELETE FROM workers WHERE id = ?")?.execute([&id.0])?;
    Ok(())
}

/// Returns the workers whose registration is not older than `since`.
pub(super) fn workers(
    connection: &Connection,
    since: Timestamp,
) -> Result<Vec<WorkerRecord>, StoreError> {
    let mut select = connection.prepare_cached(
        "SELECT id, volume, address, concurrency, seen_at FROM workers
         WHERE seen_at >= ? ORDER BY id",
    )?;
    let found = select.query_map([since.as_millis()], worker)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn worker(row: &Row<'_>) -> rusqlite::Result<WorkerRecord> {
    Ok(WorkerRecord {
        id: WorkerId(row.get(0)?),
        volume: VolumeId::from_bytes(row.get(1)?),
        address: row.get(2)?,
        concurrency: row.get(3)?,
        seen_at: Timestamp::from_millis(row.get(4)?),
    })
}

/// Returns the volume of a workspace, and assigns the emptiest of `among` if it has none.
pub(super) fn assign_volume(
    connection: &Connection,
    workspace: WorkspaceId,
    among: &[VolumeId],
) -> Result<Option<VolumeId>, StoreError> {
    let assigned = connection
        .prepare_cached("SELECT volume FROM workspaces WHERE id = ?")?
        .query_row([workspace.to_bytes()], |row| rows::volume(row, 0))
        .optional()?;
    let Some(None) = assigned else { return Ok(assigned.flatten()) };
    let mut least: Option<(i64, VolumeId)> = None;
    for volume in among {
        let held: i64 = connection
            .prepare_cached("SELECT count(*) FROM workspaces WHERE volume = ?")?
            .query_row([volume.to_bytes()], |row| row.get(0))?;
        if least.is_none_or(|(fewest, _)| held < fewest) {
            least = Some((held, *volume));
        }
    }
    let Some((_, volume)) = least else { return Ok(None) };
    connection
        .prepare_cached("UPDATE workspaces SET volume = ? WHERE id = ?")?
        .execute(params![volume.to_bytes(), workspace.to_bytes()])?;
    Ok(Some(volume))
}
