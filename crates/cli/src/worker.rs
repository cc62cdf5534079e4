//! `carrel worker`

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
use crate::exec::cancel_on_signal;
use crate::failure::Failure;
use crate::serve::backend::Backend;
use crate::serve::door::Door;
use crate::serve::process::Process;
use crate::serve::settings::Settings;
use crate::serve::{self, HEARTBEAT, data, machine};
use crate::{output, server_runtime};

/// Runs tasks that servers have taken, until the program is asked to end.
pub(crate) fn run(
    arguments: &WorkerArguments,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let runtime = server_runtime()?;
    let worked = runtime.block_on(work(arguments, environment));
    runtime.shutdown_background();
    worked.map(|()| ExitCode::SUCCESS)
}

async fn work(arguments: &WorkerArguments, environment: &Environment) -> Result<(), Failure> {
    let settings = Settings::read(environment)?;
    let shared = settings.shared.as_ref().ok_or(Failure::WorkerNeeds { name: DATABASE_URL })?;
    if shared.redis.is_none() {
        return Err(Failure::WorkerNeeds { name: REDIS_URL });
    }
    let stop = CancellationToken::new();
    let backend = Backend::shared(shared, &stop)?;
    let door = Door::open(environment, &settings).await?;
    let data = data(arguments, &settings)?;
    let (data, boundary) = (data.as_deref(), &arguments.boundary);
    let machine = machine::open(boundary, environment, &settings, data, &backend)?;
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
        endpoint: Some(WorkerEndpoint { address: door.address.clone() }),
        ..WorkerOptions::new(settings.concurrency)
    };
    let worker = Worker::new(options, backend.tasks.clone(), machine.spaces.clone());
    let bound = door.bound().map(|bound| bound.to_string()).unwrap_or_default();
    info!(worker = %worker.id(), volume = %machine.spaces.volume(), "worker");
    output::note(&format!("carrel worker {} listening on http://{bound}", worker.id()));
    let process = Process {
        backend,
        machine,
        worker: Some(worker),
        door: Some(door),
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

/// Makes the directory for what is kept beside the workspaces. A worker whose workspaces are elsewhere
/// can do without.
fn data(arguments: &WorkerArguments, settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    match (&arguments.data, &settings.volume) {
        (Some(path), _) => data::make(path).map(Some),
        (None, Some(_)) => Ok(None),
        (None, None) => data::make(Path::new("data")).map(Some),
    }
}
