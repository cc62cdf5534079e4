//! `carrel try`: several candidates for one change, each in a fork of a workspace, compared, and the best promoted.
//!
//! | exit status | meaning |
//! |---|---|
//! | 0 | the best candidate was promoted, or waits for a person as was asked for |
//! | 1 | an error; `carrel try --resume` may take the try up |
//! | 2 | wrong usage |
//! | 3 | no candidate passed, and nothing was promoted |
//! | 4 | the best candidate was not promoted, and the forks stay |
//! | 130 | interrupted; `carrel try --resume` takes the try up |

mod arguments;
mod candidates;

use std::process::ExitCode;
use std::sync::Arc;

use carrel_domain::{Age, Clock as _, Code, Identifier, NetworkRequest, SystemClock};
use carrel_tools::{Forks, LocalHost, NewTry, TryRunner, TrySession, comparison};
use carrel_trial::{Budget, CommandRules, Outcome, Phase, Spec, Trial, TrialSummary};
use carrel_workspace::Workspaces;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(crate) use self::arguments::TryArguments;
use self::arguments::{RemoveTryArguments, ShowTryArguments, TryCommand};
use crate::arguments::SandboxArguments;
use crate::error::{CliError, Result};
use crate::output::{self, Format, Invocation, printable};
use crate::progress::ProgressDisplay;
use crate::sandbox;
use crate::signals::{INTERRUPTED, cancel_on_signal};
use crate::workspace::{RootArguments, Settings};

/// Bounds the diff of a candidate that is read.
const MAX_DIFF: u64 = 4 << 20;

const NONE_PASSED: u8 = 3;
const NOT_PROMOTED: u8 = 4;

pub(crate) fn run(arguments: TryArguments, cli: &Invocation) -> Result<ExitCode> {
    crate::runtime()?.block_on(Box::pin(async {
        let Some(command) = arguments.command else { return begin(arguments, cli).await };
        // An option before the word counts like one behind it.
        let outer = arguments.root;
        match command {
            TryCommand::Ls(root) => list(&root.or(outer), cli),
            TryCommand::Show(mut arguments) => {
                arguments.root = arguments.root.or(outer);
                show(&arguments, cli)
            }
            TryCommand::Rm(mut arguments) => {
                arguments.root = arguments.root.or(outer);
                remove(&arguments, cli).await
            }
        }
    }))
}

async fn begin(arguments: TryArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let session = if let Some(id) = &arguments.resume {
        let spec = existing(&settings)?.tries().read::<Trial>(id)?.spec;
        // What a person typed is the cap, and what a model asked for is not.
        let typed = spec.network.filter(|_| spec.rules == CommandRules::Open);
        let network = NetworkRequest::of_operator(typed);
        let (runner, _) = runner(&settings, &arguments.sandbox, network, cli)?;
        runner.resume(id).await.map_err(CliError::of_failure)?
    } else {
        let base = settings.identifier(arguments.identifier.as_deref().unwrap_or_default())?;
        let (runs, inputs) = candidates::read(&arguments)?;
        let network = NetworkRequest::of_operator(arguments.network);
        let (runner, _) = runner_of(&settings, &base, &arguments.sandbox, network, cli)?;
        let spec = Spec {
            verify: arguments.verify.clone(),
            score: arguments.score.clone(),
            budget: Budget {
                candidate_seconds: arguments.timeout,
                total_seconds: arguments.total_timeout,
                max_files: arguments.max_files,
                max_lines: arguments.max_lines,
                max_bytes: arguments.max_size.as_u64(),
            },
            promote: arguments.promote,
            network: arguments.network,
            rules: CommandRules::Open,
            parallel: arguments.parallel,
            ..Spec::new(runs)
        };
        runner.begin(NewTry { base, spec, inputs }).await.map_err(CliError::of_failure)?
    };
    work(session, &settings, cli).await
}

async fn work(session: TrySession, settings: &Settings, cli: &Invocation) -> Result<ExitCode> {
    let stop = CancellationToken::new();
    let stopped = cancel_on_signal(&stop)?;
    let id = session.id().clone();
    if cli.format == Format::Text {
        output::note(&format!(
            "try {id}; if this program ends before it does, carrel try --resume {id} goes on"
        ));
    }
    let progress = ProgressDisplay::new(cli.progress, "try");
    let worked = progress.during(session.run(&stop)).await;
    stopped.abort();
    let trial = match worked {
        Err(_) if stop.is_cancelled() => {
            let hint = format!("`carrel try --resume {id}` takes it up");
            let interrupted =
                CliError::new(Code::Cancelled, format!("the try {id} was interrupted"));
            interrupted.hint(hint).with(json!({ "try": id })).report(cli.format);
            return Ok(ExitCode::from(INTERRUPTED));
        }
        worked => worked.map_err(CliError::of_failure)?,
    };
    print(&trial, settings, cli)
}

fn print(trial: &Trial, settings: &Settings, cli: &Invocation) -> Result<ExitCode> {
    let best = trial.ranking.first().map(|best| best.candidate);
    let diff = match (best, opened(settings)?) {
        (Some(best), Some(workspaces)) => {
            let id = trial.id.clone();
            let name = format!("{best}.diff");
            workspaces.tries().read_file(&id, &name, MAX_DIFF)?
        }
        _ => None,
    };
    cli.print(trial, || {
        output::write(text(trial, settings).as_bytes())?;
        // The diff begins with a list of the changes and an empty line.
        let diff = diff.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let stat = diff.as_deref().and_then(|diff| diff.split_once("\n\n")).map(|(stat, _)| stat);
        if let (Some(best), Some(stat)) = (best, stat.filter(|stat| !stat.trim().is_empty())) {
            output::line(&format!("candidate {best} changed:"))?;
            for change in stat.lines() {
                output::line(&format!("  {change}"))?;
            }
        }
        Ok(())
    })?;
    Ok(status(trial))
}

fn status(trial: &Trial) -> ExitCode {
    match &trial.outcome {
        Some(Outcome::Promoted(_) | Outcome::Chosen { .. }) | None => ExitCode::SUCCESS,
        Some(Outcome::NonePassed) => ExitCode::from(NONE_PASSED),
        Some(Outcome::NotPromoted { .. }) => ExitCode::from(NOT_PROMOTED),
    }
}

fn text(trial: &Trial, settings: &Settings) -> String {
    let root = settings.options.root.display();
    comparison(trial, |fork| format!("carrel workspace promote {fork} --root {root}"))
}

fn list(root: &RootArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(root, &cli.environment)?;
    let mut tries: Vec<TrialSummary> = Vec::new();
    if let Some(workspaces) = settings.open_root(root)? {
        let records = workspaces.tries();
        for id in records.ids()? {
            match records.read::<Trial>(&id) {
                Ok(trial) => tries.push(trial.summary()),
                Err(error) => warn!(try_id = %id, %error, "The record of a try cannot be read"),
            }
        }
    }
    tries.sort_by_key(|one| std::cmp::Reverse((one.created_at, one.id.clone())));
    cli.print(&json!({ "tries": tries }), || {
        if tries.is_empty() {
            return output::line(&format!("no tries in {}", settings.options.root.display()));
        }
        let heading = ["ID", "WORKSPACE", "CANDIDATES", "JUDGED", "RESULT", "AGE"];
        output::write(output::table(heading, tries.iter().map(row)).as_bytes())
    })
}

fn row(one: &TrialSummary) -> [String; 6] {
    let result = match (&one.outcome, one.phase) {
        (Some(Outcome::Promoted(promotion)), _) => format!("promoted {}", promotion.candidate),
        (Some(Outcome::Chosen { candidate }), _) => format!("best is {candidate}"),
        (Some(Outcome::NotPromoted { candidate, .. }), _) => format!("not promoted {candidate}"),
        (Some(Outcome::NonePassed), _) => "none passed".to_owned(),
        (None, Phase::Promoting) => "promoting".to_owned(),
        (None, Phase::Running | Phase::Finished) => "not over".to_owned(),
    };
    [
        one.id.to_string(),
        one.base.to_string(),
        one.candidates.to_string(),
        one.judged.to_string(),
        result,
        Age(one.created_at.age(SystemClock.now())).to_string(),
    ]
}

fn show(arguments: &ShowTryArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let workspaces = existing(&settings)?;
    let trial: Trial = workspaces.tries().read(&arguments.id)?;
    let Some(number) = arguments.diff else {
        print(&trial, &settings, cli)?;
        return Ok(ExitCode::SUCCESS);
    };
    let read = workspaces.tries().read_file(&arguments.id, &format!("{number}.diff"), MAX_DIFF)?;
    let diff = String::from_utf8_lossy(&read.unwrap_or_default()).into_owned();
    cli.print(&json!({ "candidate": number, "diff": diff }), || {
        if diff.is_empty() {
            return output::line(&format!("candidate {number} has no diff"));
        }
        diff.lines().try_for_each(|line| output::write(format!("{}\n", printable(line)).as_bytes()))
    })
}

async fn remove(arguments: &RemoveTryArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let (runner, workspaces) =
        runner(&settings, &arguments.sandbox, NetworkRequest::default(), cli)?;
    let trial = runner.remove(&arguments.id).await.map_err(CliError::of_failure)?;
    crate::workspace::sweep_in_background(&workspaces);
    cli.print(&json!({ "removed": trial.id }), || {
        output::line(&format!("removed the try {} with its forks", trial.id))
    })
}

fn opened(settings: &Settings) -> Result<Option<Workspaces>> {
    Ok(Workspaces::open_existing(&settings.options)?)
}

fn existing(settings: &Settings) -> Result<Workspaces> {
    opened(settings)?.ok_or_else(|| {
        let root = settings.options.root.clone();
        carrel_workspace::Error::NotFound { name: "any".to_owned(), root }.into()
    })
}

/// Returns the runner of tries of the root, for a workspace that has to be there.
fn runner_of(
    settings: &Settings,
    base: &Identifier,
    sandbox: &SandboxArguments,
    network: NetworkRequest,
    cli: &Invocation,
) -> Result<(TryRunner, Workspaces)> {
    if opened(settings)?.is_none() {
        let (name, root) = (base.to_string(), settings.options.root.clone());
        return Err(carrel_workspace::Error::NotFound { name, root }.into());
    }
    runner(settings, sandbox, network, cli)
}

fn runner(
    settings: &Settings,
    sandbox: &SandboxArguments,
    network: NetworkRequest,
    cli: &Invocation,
) -> Result<(TryRunner, Workspaces)> {
    let workspaces = existing(settings)?;
    let events = sandbox::direct_events(&cli.environment);
    let runner = sandbox::server_runner(sandbox, &cli.environment, events)?;
    let forks = Forks { workspaces: workspaces.clone(), runner, hooks: settings.hooks.clone() };
    let host = LocalHost::new(forks, NetworkRequest { requested: None, ..network });
    Ok((TryRunner::new(Arc::new(host)), workspaces))
}
