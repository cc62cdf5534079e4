//! `carrel serve`: the API, the console and an embedded worker.
//!
//! The start checks everything that could refuse it (keys, policy, port, data directory) before it prints
//! the address. With a shared store the database may be unreachable at that time: the API answers 503 and
//! the worker begins when the store answers.

pub(crate) mod backend;
pub(crate) mod data;
pub(crate) mod lifecycle;
pub(crate) mod settings;
pub(crate) mod volume;
pub(crate) mod worker_api;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use carrel_api::auth::jwks::{Provider, ProviderOptions};
use carrel_api::auth::{Authority, ConsoleLink, RateLimitOptions, ServerSecret, Transport};
use carrel_api::{Api, ApiOptions, AuthMode, WorkerProxy, WorkerProxyOptions};
use carrel_config::Environment;
use carrel_domain::{Clock as _, Secret, SystemClock, VolumeId, WorkspaceId};
use carrel_github::{GitHub, GitHubSettings};
use carrel_service::credentials::{SealingKey, Vault};
use carrel_service::{Sweep, Tasks, Worker, WorkerEndpoint, WorkerOptions};
use carrel_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::backend::Backend;
use self::data::DataDirectory;
use self::lifecycle::{ServerProcess, check_vault};
use self::settings::Settings;
use self::worker_api::WorkerListener;
use crate::arguments::ServeArguments;
use crate::error::CliError;
use crate::exec::cancel_on_signal;
use crate::workspace::own_program;
use crate::{output, server_runtime};

/// The time that running tasks have when the server stops. Tasks that are given back run again after the
/// next start, so a restart takes a second and not as long as a task.
const DRAIN: Duration = Duration::from_secs(1);

/// The interval of heartbeats with a shared store. A heartbeat also returns a cancellation that the bus
/// lost, so it bounds the time until a cancelled task stops.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(700);

/// The burst of the rate limit, in seconds of requests.
const BURST: NonZeroU32 = NonZeroU32::new(2).expect("more than none");

/// Serves the API and runs tasks until a signal arrives.
pub(crate) fn run(
    arguments: &ServeArguments,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let runtime = server_runtime()?;
    let served = runtime.block_on(serve(arguments, environment));
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(arguments: &ServeArguments, environment: &Environment) -> Result<(), CliError> {
    let settings = Settings::read(environment)?;
    let provider = ProviderOptions::read(environment)?;
    if arguments.no_worker && settings.shared.is_none() {
        return Err(CliError::NoWorkers);
    }
    let data = DataDirectory::open(&arguments.data)?;
    let loopback = arguments.bind.ip().to_canonical().is_loopback();
    if !loopback && provider.is_none() && !data.has_key(environment) {
        return Err(CliError::NoKey { address: arguments.bind });
    }
    let authority = Authority::load(environment, data.path())?;
    let failed = |source| CliError::Listen { address: arguments.bind.to_string(), source };
    let listener = TcpListener::bind(arguments.bind).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;

    let stop = CancellationToken::new();
    let backend = Backend::open(&settings, data.path(), &stop)?;
    let volume =
        volume::open(&arguments.sandbox, environment, &settings, Some(data.path()), &backend)?;
    let stopped = cancel_on_signal(&stop)?;
    let tasks = backend.tasks.clone();
    let spaces = volume.spaces.clone();
    let hosts = Arc::clone(&settings.hosts);
    let github = GitHub::new(GitHubSettings::read(environment)?);
    let credentials = vault(environment, Some(data.path()), tasks.store())?;
    if let (Some(credentials), false) = (&credentials, backend.is_shared()) {
        check_vault(credentials, arguments.forget_credentials).await?;
    }
    let listens = backend.is_shared() || WorkerListener::is_configured(environment);
    let worker_api = if listens && !arguments.no_worker {
        Some(WorkerListener::open(environment, &settings).await?)
    } else {
        None
    };
    let worker = (!arguments.no_worker).then(|| {
        let address = worker_api.as_ref().and_then(|api| api.address.clone());
        let options = WorkerOptions {
            credentials: credentials.clone(),
            github: Some(github.clone()),
            ..worker_options(&settings, &backend, address)
        };
        Worker::new(options, tasks.clone(), spaces.clone())
    });
    if !backend.is_shared() {
        // The data directory is locked, so every lease in it is that of a dead process.
        Sweep::new(tasks.clone(), settings.keep).release_except(&[]).await?;
    }
    let own_tokens = provider.as_ref().is_none_or(|provider| !provider.is_exclusive());
    let provider = provider.map(Provider::new);
    let (console, token) =
        (loopback && own_tokens).then(|| ConsoleLink::new(SystemClock.now())).unzip();
    let here = (!arguments.no_worker).then(|| spaces.volume());
    let worker_proxy = backend.is_shared().then(|| worker_proxy(&settings, &tasks, here));
    let api = Api::new(ApiOptions {
        tasks: tasks.clone(),
        spaces: spaces.clone(),
        authority,
        provider: provider.clone(),
        console,
        transport: if loopback { Transport::Loopback } else { Transport::Network },
        clock: Arc::new(SystemClock),
        rates: RateLimitOptions {
            per_second: settings.rate,
            burst: settings.rate.saturating_mul(BURST),
            ..RateLimitOptions::default()
        },
        hosts: Arc::clone(&hosts),
        events: volume.events.clone(),
        credentials: credentials.clone(),
        github: github.clone(),
        auth_mode: AuthMode::Public,
        worker_proxy,
        slots: None,
        stop: stop.clone(),
    });
    let first = first_workspace(tasks.store(), &backend).await?;
    announce(address, arguments, token.as_ref(), own_tokens.then_some(first))?;

    let refreshing_keys = async {
        if let Some(provider) = provider {
            provider.run(stop.clone()).await;
        }
    };
    let serving = async {
        tokio::join!(carrel_api::serve(listener, api), refreshing_keys);
    };
    let process = ServerProcess {
        backend,
        volume,
        worker,
        worker_api,
        hosts,
        github,
        credentials,
        forget_credentials: arguments.forget_credentials,
        keep: settings.keep,
        stop: stop.clone(),
    };
    Box::pin(process.run(serving)).await;
    stopped.abort();
    Ok(())
}

fn worker_proxy(settings: &Settings, tasks: &Tasks, here: Option<VolumeId>) -> Arc<WorkerProxy> {
    Arc::new(WorkerProxy::new(WorkerProxyOptions {
        local_volume: here,
        token: settings.internal_token.clone(),
        fallback: settings.internal_url.clone(),
        store: Arc::clone(tasks.store()),
        clock: Arc::new(SystemClock),
    }))
}

/// Opens the credentials of all workspaces, with the key of the environment or of the data directory.
pub(crate) fn vault(
    environment: &Environment,
    data: Option<&Path>,
    store: &Arc<dyn Store>,
) -> Result<Option<Vault>, CliError> {
    let secret = match data {
        Some(data) => Some(ServerSecret::CREDENTIALS.load(environment, data)?),
        None => ServerSecret::CREDENTIALS.from_environment(environment)?,
    };
    Ok(secret.map(|secret| Vault::new(Arc::clone(store), SealingKey::new(&secret))))
}

fn worker_options(
    settings: &Settings,
    backend: &Backend,
    address: Option<String>,
) -> WorkerOptions {
    let usual = WorkerOptions::new(settings.concurrency);
    WorkerOptions {
        hosts: Arc::clone(&settings.hosts),
        drain: settings.drain.unwrap_or(DRAIN),
        lease: settings.lease,
        heartbeat: if backend.is_shared() { HEARTBEAT } else { usual.heartbeat },
        endpoint: backend.is_shared().then_some(WorkerEndpoint { address }),
        ..usual
    }
}

/// Returns a workspace to show in examples: one that is there, or the id of one that will be made when
/// it is first used.
async fn first_workspace(
    store: &Arc<dyn Store>,
    backend: &Backend,
) -> Result<WorkspaceId, CliError> {
    if backend.is_shared() {
        // The database may be away, or belong to many.
        return Ok(WorkspaceId::generate());
    }
    let known = store.workspaces(None, 1).await?;
    Ok(known.first().map_or_else(WorkspaceId::generate, |workspace| workspace.id))
}

/// Prints the address, the console link and a first request.
fn announce(
    address: SocketAddr,
    arguments: &ServeArguments,
    token: Option<&Secret>,
    workspace: Option<WorkspaceId>,
) -> Result<(), CliError> {
    let program = own_program()?;
    let (program, data) = (program.display(), arguments.data.display());
    let bearer = match workspace {
        Some(workspace) => format!("$({program} token new --data {data} --workspace {workspace})"),
        None => "…   # a token of your provider".to_owned(),
    };
    output::note(&format!("carrel serve listening on http://{address}"));
    if let Some(token) = token {
        output::note(&format!(
            "console, once and within ten minutes: http://{address}/?token={}",
            token.expose()
        ));
    }
    output::note(&format!(
        "\nSubmit a first task, and watch it:\n\n  \
         export CARREL_TOKEN={bearer}\n  \
         TASK=$(curl -s http://{address}/api/tasks/submit -H \"Authorization: Bearer $CARREL_TOKEN\" \
         -d '{{\"steps\":[{{\"action\":\"shell\",\"command\":\"echo hello; sleep 1; ls -la\"}}]}}' \
         | grep -o '\"task_id\":\"[^\"]*' | cut -d'\"' -f4)\n  \
         curl -N http://{address}/api/tasks/$TASK/events -H \"Authorization: Bearer $CARREL_TOKEN\"\n"
    ));
    Ok(())
}
