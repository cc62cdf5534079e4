//! `carrel run`

mod arguments;
mod door;
mod keeping;
pub(crate) mod screen;
mod signals;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use carrel_client::HttpClient;
use carrel_conductor::drive::{Conductor, Factories, Options, PollMode, Report, scope_of};
use carrel_config::{ConductorConfig, Environment, ValidationScope, Workflow};
use carrel_domain::{Clock, SystemClock};
use carrel_exec::LazySpawner;
use carrel_runner::RunnerMode;
use carrel_store::IssueStore;
use carrel_tracker::{LocalTracker, Tracker};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(crate) use self::arguments::RunArguments;
use self::door::Door;
use self::keeping::Keeping;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::serve::data;
use crate::workspace::own_program;
use crate::{boundary, server_runtime};

/// The workflow file if none is named.
const USUAL_FILE: &str = "WORKFLOW.md";

/// Works issues off until it is told to stop, or once.
pub(crate) fn run(
    arguments: &RunArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let workflow = load(arguments.workflow.as_deref(), environment)?;
    let runtime = server_runtime()?;
    let worked = runtime.block_on(conduct(arguments, format, workflow, environment));
    runtime.shutdown_background();
    let report = worked?;
    if arguments.once && format == Format::Json {
        output::json(&facts(&report))?;
    }
    if let Some(by) = report.superseded {
        return Err(Failure::Superseded { by });
    }
    if arguments.once && !report.failed.is_empty() {
        return Err(Failure::Runs { failed: report.failed });
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a workflow file, all of it, and says what is doubtful.
pub(crate) fn load(path: Option<&Path>, environment: &Environment) -> Result<Workflow, Failure> {
    let path = path.map_or_else(|| PathBuf::from(USUAL_FILE), Path::to_owned);
    let workflow = Workflow::load(&path, environment, ValidationScope::Everything)?;
    for warning in &workflow.warnings {
        warn!("{}", warning.located(&path));
    }
    Ok(workflow)
}

async fn conduct(
    arguments: &RunArguments,
    format: Format,
    workflow: Workflow,
    environment: &Environment,
) -> Result<Report, Failure> {
    let loaded = boundary::policy(&arguments.boundary, environment)?;
    let runner =
        boundary::runner(&arguments.boundary, loaded.policy, environment, RunnerMode::Server)?;
    let temporary = environment.temp_dir();
    tokio::task::spawn_blocking(move || carrel_agent::remove_stale_sockets(&temporary));
    let data = data::make(&arguments.data)?;
    let keeping = Keeping::open(environment, &data)?;
    let stop = CancellationToken::new();
    let listening = signals::stop_on_signal(&stop)?;
    if !keeping.ready(arguments.once, &stop).await? {
        return Ok(Report::default());
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let file = workflow.path.display().to_string();
    let config = workflow.config.conductor.as_ref();
    let scope = config.map(|config| scope_of(&config.tracker));
    let tracker_name = keeping.tracker_name(config, &data).await?;
    let conductor = Conductor::open(Options {
        workflow,
        environment: Environment::process,
        journal: Arc::clone(&keeping.journal),
        factories: factories(&keeping.issues, &clock, &data),
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
    let door = match config {
        Some(config) => Door::open(arguments.port, &config.server, environment, &data).await?,
        None => None,
    };
    let desk = keeping.desk(config, &data)?;
    if !arguments.once {
        let scope = scope.unwrap_or_default();
        let place = keeping.place(&data);
        output::note(&format!(
            "carrel run works off the issues of {scope} as {file} says; {place}"
        ));
    }
    if let Some(door) = &door {
        door.announce();
    }
    let (over, handle) = (stop.child_token(), conductor.handle());
    let showing = async {
        if screen::is_there(environment) && format == Format::Text && !arguments.once {
            screen::show(handle.clone(), environment, over.clone()).await;
        }
    };
    let answering = async {
        if let Some(door) = door {
            door.serve(handle.clone(), over.clone()).await;
        }
    };
    let working = async {
        let report = conductor.run().await;
        over.cancel();
        report
    };
    let helping = async {
        if let Some(desk) = desk {
            tokio::select! {
                () = desk.run() => {}
                () = over.cancelled() => {}
            }
        }
    };
    let (report, (), (), ()) = tokio::join!(working, showing, answering, helping);
    listening.abort();
    Ok(report)
}

fn factories(issues: &Arc<dyn IssueStore>, clock: &Arc<dyn Clock>, data: &Path) -> Factories {
    let (issues, clock) = (Arc::clone(issues), Arc::clone(clock));
    let connections = HttpClient::new();
    let tracker = move |config: &ConductorConfig| {
        let config = &config.tracker;
        let local =
            LocalTracker::new(Arc::clone(&issues), Arc::clone(&clock), &config.terminal_states);
        let local = Arc::new(local) as Arc<dyn Tracker>;
        carrel_tracker::from_config(config, &connections, Some(local))
    };
    Factories {
        tracker: Arc::new(tracker),
        agent: Arc::new(carrel_agent::from_config),
        tools: tools::factory(data),
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
