//! `carrel worker`: runs tasks of a shared store without serving the API.
//!
//! It needs PostgreSQL for the tasks and Redis for wake-ups; both may be unreachable at its start. Servers
//! reach its workspaces through its own listener, if there is an internal token.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use carrel_config::Environment;
use carrel_config::environment::{DATABASE_URL, REDIS_URL};
use carrel_github::{GitHub, GitHubSettings};
use carrel_service::limits::DRAIN;
use carrel_service::{Worker, WorkerEndpoint, WorkerOptions};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::arguments::WorkerArguments;
use crate::error::CliError;
use crate::exec::cancel_on_signal;
use crate::serve::backend::Backend;
use crate::serve::lifecycle::ServerProcess;
use crate::serve::settings::Settings;
use crate::serve::worker_api::WorkerListener;
use crate::serve::{self, HEARTBEAT, data, volume};
use crate::{output, server_runtime};

/// Runs tasks of a shared store until a signal arrives.
pub(crate) fn run(
    arguments: &WorkerArguments,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let runtime = server_runtime()?;
    let worked = runtime.block_on(work(arguments, environment));
    runtime.shutdown_background();
    worked.map(|()| ExitCode::SUCCESS)
}

async fn work(arguments: &WorkerArguments, environment: &Environment) -> Result<(), CliError> {
    let settings = Settings::read(environment)?;
    let shared = settings.shared.as_ref().ok_or(CliError::WorkerNeeds { name: DATABASE_URL })?;
    if shared.redis.is_none() {
        return Err(CliError::WorkerNeeds { name: REDIS_URL });
    }
    let stop = CancellationToken::new();
    let backend = Backend::shared(shared, &stop)?;
    let listener = WorkerListener::open(environment, &settings).await?;
    let data = data(arguments, &settings)?;
    let data = data.as_deref();
    let volume = volume::open(&arguments.sandbox, environment, &settings, data, &backend)?;
    let stopped = cancel_on_signal(&stop)?;
    let hosts = Arc::clone(&settings.hosts);
    let github = GitHub::new(GitHubSettings::read(environment)?);
    let credentials = serve::vault(environment, data, backend.tasks.store())?;
    let options = WorkerOptions {
        hosts: Arc::clone(&hosts),
        drain: settings.drain.unwrap_or(DRAIN),
        lease: settings.lease,
        heartbeat: HEARTBEAT,
        credentials: credentials.clone(),
        github: Some(github.clone()),
        endpoint: Some(WorkerEndpoint { address: listener.address.clone() }),
        ..WorkerOptions::new(settings.concurrency)
    };
    let worker = Worker::new(options, backend.tasks.clone(), volume.spaces.clone());
    let bound = listener.bound().map(|bound| bound.to_string()).unwrap_or_default();
    info!(worker = %worker.id(), volume = %volume.spaces.volume(), "worker");
    output::note(&format!("carrel worker {} listening on http://{bound}", worker.id()));
    let process = ServerProcess {
        backend,
        volume,
        worker: Some(worker),
        worker_api: Some(listener),
        hosts,
        github,
        credentials,
        forget_credentials: false,
        keep: settings.keep,
        stop,
    };
    Box::pin(process.run(std::future::ready(()))).await;
    stopped.abort();
    Ok(())
}

/// Makes the data directory. A worker whose volume is elsewhere can do without one.
fn data(arguments: &WorkerArguments, settings: &Settings) -> Result<Option<PathBuf>, CliError> {
    match (&arguments.data, &settings.volume) {
        (Some(path), _) => data::make(path).map(Some),
        (None, Some(_)) => Ok(None),
        (None, None) => data::make(Path::new("data")).map(Some),
    }
}
