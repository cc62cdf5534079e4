//! The schema: numbered steps, applied in order by one process at a time.

use sha2::{Digest as _, Sha256};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::trouble::Trouble;
use crate::error::StoreError;
use crate::model::Migration;

/// The steps from an empty database to the newest schema. A step that was released is never changed.
const STEPS: &[(&str, &str)] = &[
    ("tasks", include_str!("migrations/0001_tasks.sql")),
    ("conductor", include_str!("migrations/0002_conductor.sql")),
    ("keys", include_str!("migrations/0003_keys.sql")),
];

/// Keeps two processes from changing the schema at once. Nothing else takes this number.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(4850713926108734467)";

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)";

/// Applies the steps that are missing, all or none, and returns them.
pub(super) async fn migrate(client: &mut Client) -> Result<Vec<Migration>, Trouble> {
    // A large table takes its time.
    client.batch_execute("SET statement_timeout = 0; SET lock_timeout = 0").await?;
    client.batch_execute("SET idle_in_transaction_session_timeout = 0").await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute(MIGRATION_LOCK).await?;
    transaction.batch_execute(TABLE).await?;
    let applied = transaction.query("SELECT number, checksum FROM schema_migrations", &[]).await?;
    let known = judge(&applied)?;
    let mut done = Vec::new();
    for (index, (name, text)) in STEPS.iter().enumerate().skip(known) {
        let number = i32::try_from(index + 1).expect("there are few migrations");
        transaction.batch_execute(text).await?;
        let record = "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)";
        transaction.execute(record, &[&number, name, &checksum(text)]).await?;
        done.push(Migration { number: number.unsigned_abs(), name: (*name).to_owned() });
    }
    transaction.commit().await?;
    Ok(done)
}

/// Looks whether the schema is the one that is known here.
pub(super) async fn check(client: &Client) -> Result<(), Trouble> {
    let applied = "SELECT number, checksum FROM schema_migrations";
    let applied = match client.query(applied, &[]).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Vec::new(),
        other => other?,
    };
    match judge(&applied)? {
        found if found < STEPS.len() => Err(outdated(found).into()),
        _ => Ok(()),
    }
}

fn outdated(found: usize) -> StoreError {
    let number = |steps| u32::try_from(steps).unwrap_or(u32::MAX);
    StoreError::TooOld { found: number(found), known: number(STEPS.len()) }
}

/// Returns how many of the known steps were applied.
fn judge(applied: &[tokio_postgres::Row]) -> Result<usize, Trouble> {
    let known = u32::try_from(STEPS.len()).expect("there are few migrations");
    for row in applied {
        let (number, found): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
        let number = number.unsigned_abs();
        if number > known {
            return Err(StoreError::TooNew { found: number, known }.into());
        }
        let step = STEPS.get(number.saturating_sub(1) as usize);
        if step.is_none_or(|(_, text)| checksum(text) != found) {
            return Err(StoreError::Changed { number }.into());
        }
    }
    Ok(applied.len())
}

fn checksum(text: &str) -> String {
    carrel_domain::hex::encode(&Sha256::digest(text.as_bytes()))
}
