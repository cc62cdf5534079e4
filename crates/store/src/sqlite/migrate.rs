//! The schema of the file: numbered migrations, applied when the store is opened.
//!
//! `PRAGMA user_version` is the number of the last applied migration. All missing ones are applied in one
//! immediate transaction, so that a crash leaves the old schema or the new one, and a second process that
//! opens the file meanwhile waits. A file with a greater number is refused: a newer version wrote it.

use rusqlite::Connection;

use crate::Migration;
use crate::error::StoreError;

/// The migrations in order. One that was released is never changed.
const MIGRATIONS: &[(&str, &str)] = &[
    ("tasks", include_str!("migrations/0001_tasks.sql")),
    ("volumes", include_str!("migrations/0002_volumes.sql")),
    ("conductor", include_str!("migrations/0003_conductor.sql")),
    ("tenures", include_str!("migrations/0004_tenures.sql")),
];

/// Applies the missing migrations, all or none, and returns them.
pub(super) fn migrate(connection: &mut Connection) -> Result<Vec<Migration>, StoreError> {
    let known = u32::try_from(MIGRATIONS.len()).expect("there are few migrations");
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    let mut applied = Vec::new();
    for (number, (name, step)) in (1..=known).zip(MIGRATIONS).skip(found as usize) {
        transaction.execute_batch(step)?;
        applied.push(Migration { number, name: (*name).to_owned() });
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(applied)
}
