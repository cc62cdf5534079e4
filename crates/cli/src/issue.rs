//! `carrel issue`

mod arguments;
mod look;
pub(crate) mod relay;
mod write;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::SystemClock;
use carrel_store::IssueStore;
use carrel_tracker::LocalTracker;

use self::arguments::DataArguments;
pub(crate) use self::arguments::IssueCommand;
use self::relay::Relay;
use crate::database::{Database, DatabaseSettings};
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

/// What to do about a data directory that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Make,
    Refuse,
}

/// Opens the tracker: the one in the database that is named, the one that the `carrel run` of the data
/// directory uses, or the one in that directory.
async fn open(
    data: &DataArguments,
    missing: Missing,
    environment: &Environment,
) -> Result<LocalTracker, Failure> {
    let issues = issues(&data.directory(environment), missing, environment).await?;
    // Which states are final is a matter of the workflow file; nothing here depends on it.
    Ok(LocalTracker::new(issues, Arc::new(SystemClock), &[]))
}

async fn issues(
    data: &Path,
    missing: Missing,
    environment: &Environment,
) -> Result<Arc<dyn IssueStore>, Failure> {
    if let Some(settings) = DatabaseSettings::read(environment)? {
        let database = Database::open(&settings)?;
        database.prepare().await?;
        return Ok(Arc::new(database.postgres));
    }
    if let Some(relay) = Relay::of(data) {
        return Ok(Arc::new(relay));
    }
    if missing == Missing::Refuse && !data.join("carrel.db").exists() {
        return Err(Failure::NoData { path: data.display().to_string() });
    }
    Ok(Arc::new(data::database(&data::make(data)?)?))
}
