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
use carrel_api::auth::{Authority, ConsoleLink, RateLimitOptions, Transport};
use carrel_api::{Api, ApiOptions, AuthMode, HostRules, WorkerProxy, WorkerProxyOptions};
use carrel_config::Environment;
use carrel_config::environment::WORKER_HEALTH_PORT;
use carrel_domain::{Clock as _, Code, Secret, SystemClock, WorkspaceId};
use carrel_http::TrustedProxies;
use carrel_service::Sweep;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::backend::Backend;
use self::data::DataDirectory;
use self::lifecycle::ServerProcess;
use self::settings::{KEEP, Settings};
use self::worker_api::WorkerListener;
use crate::arguments::ServeArguments;
use crate::error::{CliError, Result};
use crate::workspace::own_program;
use crate::{output, run_server};

/// The time that running tasks have when the server stops. Tasks that are given back run again after the
/// next start, so a restart takes a second and not as long as a task.
const DRAIN: Duration = Duration::from_secs(1);

/// The burst of the rate limit, in seconds of requests.
const BURST: NonZeroU32 = NonZeroU32::new(2).expect("more than none");

/// Serves the API and runs tasks until a signal arrives.
pub(crate) fn run(arguments: &ServeArguments, environment: &Environment) -> Result<ExitCode> {
    run_server(serve(arguments, environment)).map(|()| ExitCode::SUCCESS)
}

async fn serve(arguments: &ServeArguments, environment: &Environment) -> Result<()> {
    let settings = Settings::read(environment)?;
    let provider = ProviderOptions::read(environment).map_err(CliError::usage)?;
    if arguments.no_worker && settings.shared.is_none() {
        let message = "--no-worker leaves tasks to workers elsewhere, which need a database that they can reach; set DATABASE_URL, or leave out --no-worker";
        return Err(CliError::new(Code::Usage, message));
    }
    let data = DataDirectory::open(&arguments.data)?;
    let loopback = arguments.bind.ip().to_canonical().is_loopback();
    if !loopback && provider.is_none() && !data.has_key(environment) {
        return Err(CliError::no_key(arguments.bind));
    }
    let authority = Authority::load(environment, data.path())?;
    let failed = CliError::listen(arguments.bind);
    let listener = TcpListener::bind(arguments.bind).await.map_err(&failed)?;
    let address = listener.local_addr().map_err(failed)?;

    let process = open_process(arguments, environment, &settings, data.path()).await?;
    let own_tokens = provider.as_ref().is_none_or(|provider| !provider.is_exclusive());
    let provider = provider.map(Provider::new);
    let (console, token) =
        (loopback && own_tokens).then(|| ConsoleLink::new(SystemClock.now())).unzip();
    let api = Api::new(ApiOptions {
        tasks: process.backend.tasks.clone(),
        spaces: process.volume.spaces.clone(),
        authority,
        provider: provider.clone(),
        console,
        transport: if loopback { Transport::Loopback } else { Transport::Network },
        host_rules: HostRules::new(
            arguments.bind,
            &settings.public_urls,
            TrustedProxies::new(settings.trusted_proxies.clone()),
        ),
        clock: Arc::new(SystemClock),
        rates: RateLimitOptions {
            per_second: settings.rate,
            burst: settings.rate.saturating_mul(BURST),
            ..RateLimitOptions::default()
        },
        hosts: Arc::clone(&process.hosts),
        events: process.volume.events.clone(),
        credentials: process.credentials.clone(),
        github: process.github.clone(),
        auth_mode: AuthMode::Public,
        worker_proxy: process.backend.is_shared().then(|| worker_proxy(&settings, &process)),
        slots: None,
        stop: process.stop.clone(),
    });
    let first = first_workspace(&process.backend).await?;
    announce(address, arguments, token.as_ref(), own_tokens.then_some(first))?;

    let stop = process.stop.clone();
    let refreshing_keys = async {
        if let Some(provider) = provider {
            provider.run(stop).await;
        }
    };
    let serving = async {
        tokio::join!(carrel_api::serve(listener, api), refreshing_keys);
    };
    Box::pin(process.run(serving)).await;
    Ok(())
}

/// Opens the store, the workspaces, the credentials and the worker.
async fn open_process(
    arguments: &ServeArguments,
    environment: &Environment,
    settings: &Settings,
    data: &Path,
) -> Result<ServerProcess> {
    let stop = CancellationToken::new();
    let backend = Backend::open(settings, data, &stop)?;
    let shared = backend.is_shared();
    let sandbox = &arguments.sandbox;
    let mut process =
        ServerProcess::open(sandbox, environment, settings, Some(data), backend, stop)?;
    process.forget_credentials = arguments.forget_credentials;
    if !shared {
        process.check_vault().await?;
    }
    if !arguments.no_worker {
        let listens = shared || settings::word(environment, WORKER_HEALTH_PORT).is_some();
        let listener =
            if listens { Some(WorkerListener::open(environment, settings).await?) } else { None };
        process.add_worker(settings, DRAIN, listener);
    }
    if !shared {
        // The data directory is locked, so every lease in it is that of a dead process.
        Sweep::new(process.backend.tasks.clone(), KEEP).release_except(&[]).await?;
    }
    Ok(process)
}

fn worker_proxy(settings: &Settings, process: &ServerProcess) -> Arc<WorkerProxy> {
    Arc::new(WorkerProxy::new(WorkerProxyOptions {
        local_volume: process.worker.as_ref().map(|_| process.volume.spaces.volume()),
        token: settings.internal_token.clone(),
        fallback: settings.internal_url.clone(),
        store: Arc::clone(process.backend.tasks.store()),
        clock: Arc::new(SystemClock),
    }))
}

/// Returns a workspace to show in examples: one that is there, or the id of one that will be made when
/// it is first used.
async fn first_workspace(backend: &Backend) -> Result<WorkspaceId> {
    if backend.is_shared() {
        // The database may be away, or belong to many.
        return Ok(WorkspaceId::generate());
    }
    let known = backend.tasks.store().workspaces(None, 1).await?;
    Ok(known.first().map_or_else(WorkspaceId::generate, |workspace| workspace.id))
}

/// Prints the address, the console link and a first request.
fn announce(
    address: SocketAddr,
    arguments: &ServeArguments,
    token: Option<&Secret>,
    workspace: Option<WorkspaceId>,
) -> Result<()> {
    let program = own_program()?;
    let (program, data) = (program.display(), arguments.data.display());
    let bearer = match workspace {
        Some(workspace) => format!("$({program} token new --data {data} --id {workspace})"),
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
