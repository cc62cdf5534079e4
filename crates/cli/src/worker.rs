//! `carrel worker`: runs tasks of a shared store without serving the API.
//!
//! It needs PostgreSQL for the tasks and Redis for wake-ups; both may be unreachable at its start. Servers
//! reach its workspaces through its own listener, if there is an internal token.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_config::environment::{DATABASE_URL, REDIS_URL};
use carrel_domain::Code;
use carrel_service::limits::DRAIN;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::arguments::WorkerArguments;
use crate::error::{CliError, Result};
use crate::serve::backend::Backend;
use crate::serve::data;
use crate::serve::lifecycle::ServerProcess;
use crate::serve::settings::Settings;
use crate::serve::worker_api::WorkerListener;
use crate::{output, run_server};

/// Runs tasks of a shared store until a signal arrives.
pub(crate) fn run(arguments: &WorkerArguments, environment: &Environment) -> Result<ExitCode> {
    run_server(work(arguments, environment)).map(|()| ExitCode::SUCCESS)
}

async fn work(arguments: &WorkerArguments, environment: &Environment) -> Result<()> {
    let settings = Settings::read(environment)?;
    let shared = settings.shared.as_ref().ok_or_else(|| needs(DATABASE_URL))?;
    if shared.redis.is_none() {
        return Err(needs(REDIS_URL));
    }
    let stop = CancellationToken::new();
    let backend = Backend::shared(shared, &stop)?;
    let listener = WorkerListener::open(environment, &settings).await?;
    let bound = listener.bound().map(|bound| bound.to_string()).unwrap_or_default();
    let data = data(arguments, &settings)?;
    let (sandbox, data) = (&arguments.sandbox, data.as_deref());
    let mut process = ServerProcess::open(sandbox, environment, &settings, data, backend, stop)?;
    let volume = process.volume.spaces.volume();
    let worker = process.add_worker(&settings, DRAIN, Some(listener));
    info!(worker = %worker.id(), %volume, "worker");
    output::note(&format!("carrel worker {} listening on http://{bound}", worker.id()));
    Box::pin(process.run(std::future::ready(()))).await;
    Ok(())
}

fn needs(name: &str) -> CliError {
    let message = format!(
        "a worker alone gets its tasks from PostgreSQL and hears of them from Redis, and {name} is not set; `carrel serve` has a worker of its own and needs neither"
    );
    CliError::new(Code::Usage, message).with(json!({ "variable": name }))
}

/// Makes the data directory. A worker whose volume is elsewhere can do without one.
fn data(arguments: &WorkerArguments, settings: &Settings) -> Result<Option<PathBuf>> {
    match (&arguments.data, &settings.volume) {
        (Some(path), _) => data::make(path).map(Some),
        (None, Some(_)) => Ok(None),
        (None, None) => data::make(Path::new("data")).map(Some),
    }
}
