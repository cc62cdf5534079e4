//! Opening the file, and its schema.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::StoreError;
use crate::model::Migration;

/// The steps from an empty file to the newest schema. A step that was released is never changed.
const MIGRATIONS: &[(&str, &str)] = &[
    ("tasks", include_str!("migrations/0001_tasks.sql")),
    ("volumes", include_str!("migrations/0002_volumes.sql")),
    ("conductor", include_str!("migrations/0003_conductor.sql")),
    ("tenures", include_str!("migrations/0004_tenures.sql")),
];

/// How long another process on the same file is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// Statements that are kept prepared.
const STATEMENTS: usize = 64;

/// Opens the file for the one that writes, and brings its schema up to date. Returns what that took.
pub(super) fn open_writer(path: &Path) -> Result<(Connection, Vec<Migration>), StoreError> {
    let mut connection =
        open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    // Whoever was told that something is done finds it done after a power cut.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let applied = migrate(&mut connection)?;
    Ok((connection, applied))
}

/// Opens the file for one that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

fn migrate(connection: &mut Connection) -> Result<Vec<Migration>, StoreError> {
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

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let source = Box::new(error);
        match code {
            Some(ErrorCode::DiskFull) => Self::Full(source),
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied,
            ) => Self::Unavailable(source),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Unreadable { what: source.to_string() }
            }
            _ => Self::Failed(source),
        }
    }
}
