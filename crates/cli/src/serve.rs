//! `carrel serve`

mod data;
mod settings;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use carrel_api::auth::jwks::{Provider, ProviderOptions};
use carrel_api::auth::{Authority, ConsoleLink, RateOptions, ServerSecret, Transport};
use carrel_api::{Api, ApiOptions};
use carrel_config::Environment;
use carrel_domain::{Clock as _, Secret, SystemClock, WorkspaceId};
use carrel_github::{GitHub, Settings as GitHubSettings};
use carrel_service::credentials::{CredentialError, SealingKey, Vault};
use carrel_service::{Feed, Spaces, SpacesOptions, Sweep, Tasks, Worker, WorkerOptions};
use carrel_store::{Sqlite, SqliteOptions, Store};
use carrel_tools::{Events, GitOptions};
use carrel_workspace::{Commands, Purpose};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::data::DataDirectory;
use self::settings::Settings;
use crate::arguments::ServeArguments;
use crate::exec::cancel_on_signal;
use crate::failure::Failure;
use crate::workspace::own_program;
use crate::{boundary, output, server_runtime, toolbox};

/// How long tasks may take to end by themselves when the server stops. The next start goes on with
/// those that are given back, so that whoever waits for the end of this one waits a second, not a task.
const DRAIN: Duration = Duration::from_secs(1);

/// How many seconds' requests a workspace may send at once after a pause.
const BURST: NonZeroU32 = NonZeroU32::new(2).expect("more than none");

/// Serves the API and runs tasks until the program is asked to end.
pub(crate) fn run(
    arguments: &ServeArguments,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let runtime = server_runtime()?;
    let served = runtime.block_on(serve(arguments, environment));
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(arguments: &ServeArguments, environment: &Environment) -> Result<(), Failure> {
    let settings = Settings::read(environment)?;
    let provider = ProviderOptions::read(environment)?;
    let data = DataDirectory::open(&arguments.data)?;
    let loopback = arguments.bind.ip().to_canonical().is_loopback();
    if !loopback && provider.is_none() && !data.has_key(environment) {
        return Err(Failure::NoKey { address: arguments.bind });
    }
    let authority = Authority::load(environment, data.path())?;
    let failed = |source| Failure::Start { doing: "listening", source };
    let listener = TcpListener::bind(arguments.bind).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;

    let store: Arc<dyn Store> =
        Arc::new(Sqlite::open(&SqliteOptions { path: data.path().join("carrel.db") })?);
    let clock = Arc::new(SystemClock);
    let tasks = Tasks::new(Arc::clone(&store), Feed::default(), clock.clone());
    let events = toolbox::events_in(data.path());
    let spaces = spaces(arguments, environment, &settings, &data, &store, &events)?;
    let stop = CancellationToken::new();
    let stopped = cancel_on_signal(&stop)?;
    let credentials = vault(arguments, environment, &data, &store).await?;
    let hosts = Arc::clone(&settings.hosts);
    let github = GitHub::new(GitHubSettings::read(environment)?);

    let worker = WorkerOptions {
        hosts: Arc::clone(&hosts),
        drain: DRAIN,
        credentials: Some(credentials.clone()),
        github: Some(github.clone()),
        ..WorkerOptions::new(settings.concurrency)
    };
    let worker = Worker::new(worker, tasks.clone(), spaces.clone());
    let sweep = Sweep::new(tasks.clone(), settings.keep);
    // Nobody else works for this data directory, which is locked.
    sweep.take_from_all_but(&[]).await?;
    let own_tokens = provider.as_ref().is_none_or(|provider| !provider.is_exclusive());
    let provider = provider.map(Provider::new);
    let (console, token) =
        (loopback && own_tokens).then(|| ConsoleLink::new(SystemClock.now())).unzip();
    let api = Api::new(ApiOptions {
        tasks,
        spaces: spaces.clone(),
        authority,
        provider: provider.clone(),
        console,
        transport: if loopback { Transport::Loopback } else { Transport::Network },
        clock,
        rates: RateOptions {
            per_second: settings.rate,
            burst: settings.rate.saturating_mul(BURST),
            ..RateOptions::default()
        },
        hosts,
        events: events.clone(),
        credentials: Some(credentials),
        github,
        stop: stop.clone(),
    });
    let first = first_workspace(&store).await?;
    announce(address, arguments, token.as_ref(), own_tokens.then_some(first))?;
    tokio::join!(
        carrel_api::serve(listener, api),
        worker.run(stop.clone()),
        sweep.run(stop.clone()),
        async {
            if let Some(provider) = provider {
                provider.run(stop.clone()).await;
            }
        },
    );
    stopped.abort();
    spaces.close().await;
    Ok(())
}

/// Opens the credentials of all workspaces, with the key that they were sealed with.
async fn vault(
    arguments: &ServeArguments,
    environment: &Environment,
    data: &DataDirectory,
    store: &Arc<dyn Store>,
) -> Result<Vault, Failure> {
    let secret = ServerSecret::CREDENTIALS.load(environment, data.path())?;
    let vault = Vault::new(Arc::clone(store), SealingKey::new(&secret));
    if arguments.forget_credentials {
        let forgotten = vault.forget_all().await?;
        output::note(&format!("forgot {forgotten} credentials"));
    }
    match vault.check_key().await {
        Err(CredentialError::OtherKey { .. }) => Err(Failure::CredentialKey),
        checked => Ok(checked.map(|()| vault)?),
    }
}

fn spaces(
    arguments: &ServeArguments,
    environment: &Environment,
    settings: &Settings,
    data: &DataDirectory,
    store: &Arc<dyn Store>,
    events: &Events,
) -> Result<Spaces, Failure> {
    let loaded = boundary::policy(&arguments.boundary, environment)?;
    let purpose = Purpose::ManyCommands;
    let runner = boundary::runner(&arguments.boundary, loaded.policy, environment, purpose)?;
    let root = settings.volume.clone().unwrap_or_else(|| data.path().join("workspaces"));
    let options = SpacesOptions {
        root,
        quota: settings.quota,
        runner,
        commands: Commands::new(own_program()?),
        environment: environment.clone(),
        events: events.clone(),
        floor: settings.floor,
        git: GitOptions {
            hosts: settings.hosts.to_vec(),
            authorities: settings.authorities.clone(),
            ..GitOptions::new(environment)
        },
        clock: Arc::new(SystemClock),
    };
    Ok(Spaces::open(options, Arc::clone(store))?)
}

/// Returns a workspace to show in examples: one that is there, or the id of one that will be made when
/// it is first used.
async fn first_workspace(store: &Arc<dyn Store>) -> Result<WorkspaceId, Failure> {
    let known = store.workspaces(None, 1).await?;
    Ok(known.first().map_or_else(WorkspaceId::generate, |workspace| workspace.id))
}

/// Says where the server is and what to type first.
fn announce(
    address: SocketAddr,
    arguments: &ServeArguments,
    token: Option<&Secret>,
    workspace: Option<WorkspaceId>,
) -> Result<(), Failure> {
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
