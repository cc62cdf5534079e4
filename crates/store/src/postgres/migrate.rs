//! The schema of the database: numbered migrations with checksums.
//!
//! [`migrate`] applies the missing migrations in one transaction under an advisory lock, so that a crash
//! leaves the old schema or the new one, and a second process waits and then finds nothing to do. Opening a
//! session does not migrate: it checks that the applied migrations are exactly the known ones, with the same
//! SHA-256. An older schema is an error that names `carrel migrate`; a newer or different one is refused.

use sha2::{Digest as _, Sha256};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::error::PgError;
use crate::Migration;
use crate::error::StoreError;

/// The migrations in order. One that was released is never changed, since its checksum is stored.
const MIGRATIONS: &[(&str, &str)] = &[
    ("tasks", include_str!("migrations/0001_tasks.sql")),
    ("conductor", include_str!("migrations/0002_conductor.sql")),
    ("keys", include_str!("migrations/0003_keys.sql")),
];

/// Excludes other migrating processes until the transaction ends.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(4850713926108734467)";

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)";

/// Applies the missing migrations, all or none, and returns them.
pub(super) async fn migrate(client: &mut Client) -> Result<Vec<Migration>, PgError> {
    // Migrating a large table may take long, as may waiting for another process.
    client.batch_execute("SET statement_timeout = 0; SET lock_timeout = 0").await?;
    client.batch_execute("SET idle_in_transaction_session_timeout = 0").await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute(MIGRATION_LOCK).await?;
    transaction.batch_execute(TABLE).await?;
    let applied = transaction.query("SELECT number, checksum FROM schema_migrations", &[]).await?;
    let applied = count_applied(&applied)?;
    let mut done = Vec::new();
    for (index, (name, text)) in MIGRATIONS.iter().enumerate().skip(applied) {
        let number = i32::try_from(index + 1).expect("there are few migrations");
        transaction.batch_execute(text).await?;
        let record = "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)";
        transaction.execute(record, &[&number, name, &checksum(text)]).await?;
        done.push(Migration { number: number.unsigned_abs(), name: (*name).to_owned() });
    }
    transaction.commit().await?;
    Ok(done)
}

/// Fails unless the schema is exactly that of this version.
pub(super) async fn check(client: &Client) -> Result<(), PgError> {
    let applied = "SELECT number, checksum FROM schema_migrations";
    let applied = match client.query(applied, &[]).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Vec::new(),
        other => other?,
    };
    let found = count_applied(&applied)?;
    if found < MIGRATIONS.len() { Err(outdated(found).into()) } else { Ok(()) }
}

fn outdated(found: usize) -> StoreError {
    let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
    StoreError::TooOld { found: number(found), known: number(MIGRATIONS.len()) }
}

/// Returns the number of applied migrations, after comparing each with the known one.
fn count_applied(applied: &[tokio_postgres::Row]) -> Result<usize, PgError> {
    let known = u32::try_from(MIGRATIONS.len()).expect("there are few migrations");
    for row in applied {
        let (number, found): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
        let number = number.unsigned_abs();
        if number > known {
            return Err(StoreError::TooNew { found: number, known }.into());
        }
        let migration = MIGRATIONS.get(number.saturating_sub(1) as usize);
        if migration.is_none_or(|(_, text)| checksum(text) != found) {
            return Err(StoreError::Changed { number }.into());
        }
    }
    Ok(applied.len())
}

fn checksum(text: &str) -> String {
    carrel_domain::hex::encode(&Sha256::digest(text.as_bytes()))
}
