//! `carrel migrate`: applies pending migrations to PostgreSQL, or to the file of a data directory.
//!
//! Migrations run under a lock of the database, so that several processes may start at once. The data
//! directory is locked too, since a running server would not expect its schema to change.

use std::process::ExitCode;

use carrel_config::environment::DATABASE_URL;
use carrel_store::{Migration, Postgres, PostgresOptions, Sqlite, SqliteOptions};
use serde_json::json;

use crate::arguments::MigrateArguments;
use crate::error::Result;
use crate::output::{self, Invocation};
use crate::runtime;
use crate::serve::data::DataDirectory;
use crate::serve::settings::secret;

/// Brings the schema up to date, and says what that took.
pub(crate) fn run(arguments: &MigrateArguments, cli: &Invocation) -> Result<ExitCode> {
    let applied = if let Some(url) = secret(&cli.environment, DATABASE_URL) {
        runtime()?.block_on(async { Postgres::open(&PostgresOptions { url })?.migrate().await })?
    } else {
        let data = DataDirectory::open(&arguments.data)?;
        Sqlite::migrate(&SqliteOptions { path: data.path().join("carrel.db") })?
    };
    let text = || {
        for Migration { number, name } in &applied {
            output::line(&format!("{number:04} {name}"))?;
        }
        if applied.is_empty() {
            output::note("the database is up to date");
        }
        Ok(())
    };
    cli.print(&json!({ "applied": applied }), text)
}
