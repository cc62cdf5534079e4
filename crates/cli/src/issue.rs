//! `carrel issue`

mod arguments;
mod look;
mod write;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::SystemClock;
use carrel_store::{Sqlite, SqliteOptions};
use carrel_tracker::Local;

pub(crate) use self::arguments::IssueCommand;
use crate::failure::Failure;
use crate::output::Format;
use crate::runtime;
use crate::serve::data;

pub(crate) fn run(
    command: &IssueCommand,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    runtime()?.block_on(async {
        match command {
            IssueCommand::New(arguments) => write::new(arguments, format, environment).await,
            IssueCommand::Ls(arguments) => look::list(arguments, format, environment).await,
            IssueCommand::Show(arguments) => look::show(arguments, format, environment).await,
            IssueCommand::Move(arguments) => write::shift(arguments, format, environment).await,
            IssueCommand::Label(arguments) => write::label(arguments, format, environment).await,
            IssueCommand::Comment(arguments) => {
                write::comment(arguments, format, environment).await
            }
        }
    })
}

/// Opens the tracker of a data directory, which is made if it is missing.
fn open_or_make(data: &Path) -> Result<Local, Failure> {
    let path = data::make(data)?.join("carrel.db");
    let store = Sqlite::open(&SqliteOptions { path })?;
    // Which states are final is a matter of the workflow file; nothing here depends on it.
    Ok(Local::new(Arc::new(store), Arc::new(SystemClock), &[]))
}

/// Opens the tracker of a data directory that is there.
fn open(data: &Path) -> Result<Local, Failure> {
    if !data.join("carrel.db").exists() {
        return Err(Failure::NoData { path: data.display().to_string() });
    }
    open_or_make(data)
}
