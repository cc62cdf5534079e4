//! Opens connections to the database file, and translates the errors of SQLite.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::migrate::migrate;
use crate::Migration;
use crate::error::StoreError;

/// The longest wait for the lock of another process on the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Prepared statements that a connection caches; more than there are.
const CACHED_STATEMENTS: usize = 64;

/// Opens the connection that writes and applies missing migrations, which are returned.
pub(super) fn open_writer(path: &Path) -> Result<(Connection, Vec<Migration>), StoreError> {
    let mut connection =
        open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    // FULL syncs the log at every commit: a committed transaction survives a power cut.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let applied = migrate(&mut connection)?;
    Ok((connection, applied))
}

pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
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
