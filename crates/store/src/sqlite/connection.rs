//! Opens connections to the database file, executes statements on them, and translates values and errors
//! of SQLite.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};

use super::migrate::migrate;
use crate::Migration;
use crate::database::{self, Statement};
use crate::error::StoreError;
use crate::value::{FromRow, Row, Value};

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

/// Statements on a connection, each prepared once.
pub(super) trait Execute {
    fn rows(&self, text: &str, values: &[Value]) -> Result<Vec<Row>, StoreError>;

    /// Writes, and returns the number of changed rows.
    fn change(&self, text: &str, values: Vec<Value>) -> Result<usize, StoreError>;

    fn all<T: FromRow>(&self, text: &str, values: Vec<Value>) -> Result<Vec<T>, StoreError> {
        database::read(self.rows(text, &values)?)
    }

    fn first<T: FromRow>(&self, text: &str, values: Vec<Value>) -> Result<Option<T>, StoreError> {
        Ok(self.all(text, values)?.into_iter().next())
    }

    fn execute_all(&self, statements: &[Statement]) -> Result<Vec<Vec<Row>>, StoreError> {
        let execute = |statement: &Statement| {
            let rows = self.rows(statement.text, &statement.values)?;
            statement.check(&rows).map(|()| rows)
        };
        statements.iter().map(execute).collect()
    }
}

impl Execute for Connection {
    fn rows(&self, text: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        rows_of(&mut *self.prepare_cached(&numbered(text))?, values)
    }

    fn change(&self, text: &str, values: Vec<Value>) -> Result<usize, StoreError> {
        Ok(self.prepare_cached(&numbered(text))?.execute(params_from_iter(values))?)
    }
}

/// Executes a statement, and returns its rows.
pub(super) fn rows_of(
    statement: &mut rusqlite::Statement<'_>,
    values: &[Value],
) -> Result<Vec<Row>, StoreError> {
    let columns = 0..statement.column_count();
    let mut found = statement.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let columns = columns.clone().map(|column| row.get(column));
        rows.push(Row::new(columns.collect::<rusqlite::Result<_>>()?));
    }
    Ok(rows)
}

/// Returns a statement with its parameters as SQLite numbers them: `?1` for `$1`.
fn numbered(text: &str) -> String {
    text.replace('$', "?")
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::List(_) => {
                return Err(rusqlite::Error::ToSqlConversionFailure("SQLite has no lists".into()));
            }
        }))
    }
}

impl FromSql for Value {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(Self::Null),
            ValueRef::Integer(number) => Ok(Self::Integer(number)),
            ValueRef::Real(_) => Err(FromSqlError::InvalidType),
            ValueRef::Text(_) => value.as_str().map(|text| Self::Text(text.to_owned())),
            ValueRef::Blob(bytes) => Ok(Self::Bytes(bytes.to_vec())),
        }
    }
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
