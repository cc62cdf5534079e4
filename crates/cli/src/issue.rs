//! `carrel issue`: the embedded tracker.

mod arguments;
mod change;
pub(crate) mod relay;
mod show;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::{Code, SystemClock};
use carrel_store::IssueStore;
use carrel_tracker::LocalTracker;

use self::arguments::DataArguments;
pub(crate) use self::arguments::IssueCommand;
use self::relay::RelayClient;
use crate::database::{Database, DatabaseSettings};
use crate::error::{CliError, Result};
use crate::output::Invocation;
use crate::runtime;
use crate::serve::data;

pub(crate) fn run(command: &IssueCommand, cli: &Invocation) -> Result<ExitCode> {
    runtime()?.block_on(async {
        match command {
            IssueCommand::New(arguments) => change::new(arguments, cli).await,
            IssueCommand::Ls(arguments) => show::list(arguments, cli).await,
            IssueCommand::Show(arguments) => show::show(arguments, cli).await,
            IssueCommand::Move(arguments) => change::shift(arguments, cli).await,
            IssueCommand::Label(arguments) => change::label(arguments, cli).await,
            IssueCommand::Comment(arguments) => change::comment(arguments, cli).await,
        }
    })
}

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
) -> Result<LocalTracker> {
    let issues = issues(&data.directory(environment), missing, environment).await?;
    // Terminal states are a setting of the workflow file; nothing here depends on them.
    Ok(LocalTracker::new(issues, Arc::new(SystemClock), &[]))
}

async fn issues(
    data: &Path,
    missing: Missing,
    environment: &Environment,
) -> Result<Arc<dyn IssueStore>> {
    if let Some(settings) = DatabaseSettings::read(environment)? {
        let database = Database::open(&settings)?;
        database.prepare().await?;
        return Ok(Arc::new(database.postgres));
    }
    if let Some(relay) = RelayClient::of(data) {
        return Ok(Arc::new(relay));
    }
    if missing == Missing::Refuse && !data.join("carrel.db").exists() {
        let message = format!(
            "there is no data directory {}; `carrel issue new` makes it, or name another with --data",
            data.display()
        );
        return Err(CliError::new(Code::NotFound, message).at(data));
    }
    Ok(Arc::new(data::database(&data::make(data)?)?))
}
