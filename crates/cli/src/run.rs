//! `carrel run`: the conductor, with its journal, its API and its dashboard.
//!
//! The order of the start matters. The journal is opened, and waited for, before the conductor reads it;
//! the port is bound before anything is announced; and the dashboard takes the terminal last, so that an
//! error of the start is a line that stays. All parts end with the conductor: `over` is cancelled when it
//! returns, and by the first signal.

mod agent_tools;
mod api;
mod arguments;
pub(crate) mod dashboard;
mod journal;
pub(crate) mod limits;
mod turn_snapshots;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use carrel_client::HttpClient;
use carrel_conductor::drive::{Conductor, Factories, Options, PollMode, Report, scope_of};
use carrel_config::{ConductorConfig, Environment, ValidationScope, Workflow};
use carrel_domain::{Clock, Code, SystemClock};
use carrel_exec::LazySpawner;
use carrel_store::IssueStore;
use carrel_tools::SnapshotStores;
use carrel_tracker::{LocalTracker, Tracker};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::api::RunApi;
pub(crate) use self::arguments::RunArguments;
use self::journal::JournalBackend;
use crate::error::{CliError, Result};
use crate::issue::relay::RelayServer;
use crate::output::{self, Format, Invocation};
use crate::serve::data;
use crate::workspace::own_program;
use crate::{run_server, sandbox, signals};

/// The workflow file of a command line that names none.
const DEFAULT_FILE: &str = "WORKFLOW.md";

/// Works issues off until it is told to stop, or once.
pub(crate) fn run(arguments: &RunArguments, cli: &Invocation) -> Result<ExitCode> {
    let workflow = load(arguments.workflow.as_deref(), &cli.environment)?;
    let report = run_server(conduct(arguments, cli, workflow))?;
    if arguments.once && cli.format == Format::Json {
        output::json(&facts(&report))?;
    }
    if let Some(by) = report.superseded {
        let message =
            format!("another carrel run has taken over the issues that this one worked off: {by}");
        return Err(CliError::new(Code::WorkspaceBusy, message).with(json!({ "holder": by })));
    }
    if arguments.once && !report.failed.is_empty() {
        return Err(runs_failed(&report.failed));
    }
    Ok(ExitCode::SUCCESS)
}

/// Failed runs that the error names.
const MAX_LISTED: usize = 5;

fn runs_failed(failed: &[(String, String)]) -> CliError {
    let listed = failed.iter().take(MAX_LISTED).map(|(issue, error)| format!("{issue}: {error}"));
    let more = failed.len().checked_sub(MAX_LISTED + 1).map(|more| format!("{} more", more + 1));
    let listed = listed.chain(more).collect::<Vec<_>>().join("; ");
    let issues: Vec<_> = failed.iter().map(|(issue, _)| issue).collect();
    CliError::new(Code::RunFailed, format!("not everything went well: {listed}"))
        .with(json!({ "issues": issues }))
}

/// Reads all of a workflow file, and logs its warnings.
pub(crate) fn load(path: Option<&Path>, environment: &Environment) -> Result<Workflow> {
    let path = path.map_or_else(|| PathBuf::from(DEFAULT_FILE), Path::to_owned);
    let workflow = Workflow::load(&path, environment, ValidationScope::Everything)?;
    for warning in &workflow.warnings {
        warn!("{}", warning.located(&path));
    }
    Ok(workflow)
}

async fn conduct(arguments: &RunArguments, cli: &Invocation, workflow: Workflow) -> Result<Report> {
    let environment = &cli.environment;
    let data = data::make(&arguments.data)?;
    let events = sandbox::events_in(&data);
    let runner = sandbox::server_runner(&arguments.sandbox, environment, events)?;
    let temporary = environment.temp_dir();
    tokio::task::spawn_blocking(move || carrel_agent::remove_stale_sockets(&temporary));
    let backend = JournalBackend::open(environment, &data)?;
    let stop = CancellationToken::new();
    let listening = signals::stop_on_signal(&stop)?;
    if !backend.ready(arguments.once, &stop).await? {
        return Ok(Report::default());
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let file = workflow.path.display().to_string();
    let config = workflow.config.conductor.as_ref();
    let scope = config.map(|config| scope_of(&config.tracker)).unwrap_or_default();
    let tracker_name = backend.tracker_name(config, &data).await?;
    let conductor = Conductor::open(Options {
        workflow,
        environment: Environment::process,
        journal: Arc::clone(&backend.journal),
        factories: factories(&backend.issues, &clock),
        tracker_name,
        clock,
        runner: Arc::new(runner),
        commands: LazySpawner::new(own_program()?),
        data: data.clone(),
        poll_mode: if arguments.once { PollMode::Once } else { PollMode::Continuous },
        stop: stop.clone(),
    });
    let conductor = conductor.await?;
    let workflow = conductor.handle().workflow();
    let config = workflow.config.conductor.as_ref();
    let api = match config {
        Some(config) => RunApi::open(arguments.port, &config.server, environment, &data).await?,
        None => None,
    };
    let relay = backend.relay(config, &data)?;
    if !arguments.once {
        let kept = backend.description(&data);
        output::note(&format!("carrel run works off the issues of {scope} as {file} says; {kept}"));
        if let Some(config) = config {
            output::note(&limits::describe(config));
        }
    }
    if let Some(api) = &api {
        api.announce();
    }
    let shows = dashboard::is_supported(environment) && cli.format == Format::Text;
    let dashboard = (shows && !arguments.once).then_some(environment);
    let report = run_parts(conductor, api, relay, dashboard, stop.child_token()).await;
    listening.abort();
    Ok(report)
}

/// Runs the conductor and the parts that end with it; `over` is cancelled when it returns.
async fn run_parts(
    conductor: Conductor,
    api: Option<RunApi>,
    relay: Option<RelayServer>,
    dashboard: Option<&Environment>,
    over: CancellationToken,
) -> Report {
    let handle = conductor.handle();
    let showing = async {
        if let Some(environment) = dashboard {
            dashboard::show(handle.clone(), environment, over.clone()).await;
        }
    };
    let serving = async {
        if let Some(api) = api {
            api.serve(handle.clone(), over.clone()).await;
        }
    };
    let working = async {
        let report = conductor.run().await;
        over.cancel();
        report
    };
    let relaying = async {
        if let Some(relay) = relay {
            over.run_until_cancelled(relay.run()).await;
        }
    };
    let (report, (), (), ()) = tokio::join!(working, showing, serving, relaying);
    report
}

fn factories(issues: &Arc<dyn IssueStore>, clock: &Arc<dyn Clock>) -> Factories {
    let issues = Arc::clone(issues);
    let clock = Arc::clone(clock);
    let connections = HttpClient::new();
    let tracker = move |config: &ConductorConfig| {
        let config = &config.tracker;
        let local =
            LocalTracker::new(Arc::clone(&issues), Arc::clone(&clock), &config.terminal_states);
        let local = Arc::new(local) as Arc<dyn Tracker>;
        carrel_tracker::from_config(config, &connections, Some(local))
    };
    // Those of the tools and those before turns are in the same stores.
    let stores = Arc::new(SnapshotStores::default());
    Factories {
        tracker: Arc::new(tracker),
        agent: Arc::new(carrel_agent::from_config),
        tools: agent_tools::factory(&stores),
        snapshots: turn_snapshots::factory(stores),
    }
}

fn facts(report: &Report) -> serde_json::Value {
    let failed: Vec<_> = report
        .failed
        .iter()
        .map(|(issue, error)| json!({ "issue": issue, "error": error }))
        .collect();
    json!({ "succeeded": report.succeeded, "failed": failed })
}
