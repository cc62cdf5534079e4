//! `carrel workspace fork`, `diff` and `promote`: attempts on a workspace that cost nothing until they change something.

use std::process::ExitCode;

use carrel_domain::{Failure, Identifier};
use carrel_tools::{Forks, OtherForks, PromotedFork};
use carrel_workspace::{Created, Quota, Workspaces};
use serde_json::{Value, json};

use super::arguments::{DiffArguments, ForkArguments, PromoteArguments};
use super::remove::sweep_in_background;
use super::settings::Settings;
use crate::arguments::SandboxArguments;
use crate::error::{CliError, Result};
use crate::output::{self, Invocation, printable};
use crate::progress::ProgressDisplay;
use crate::sandbox;

pub(super) async fn fork(arguments: ForkArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.workspace.root, &cli.environment)?;
    let base = settings.identifier(&arguments.workspace.identifier)?;
    let quota = arguments.quota.map(|bytes| Quota { bytes, ..settings.options.quota });
    let mut names = Vec::new();
    for name in &arguments.names {
        names.push(Some(settings.identifier(name)?));
    }
    if names.is_empty() {
        names.resize(usize::from(arguments.count.unwrap_or(1)), None);
    }
    let forks = forks(settings, &base, &arguments.sandbox, cli)?;
    let made = forks.make(&base, names, quota).await.map_err(refused)?;
    let listed: Vec<Value> = made.iter().map(|created| fork_of(created, &base)).collect();
    cli.print(&json!({ "base": base, "forks": listed }), || {
        let lines = made.iter().map(|Created { record, path, .. }| {
            format!("forked {base} as {} at {}\n", record.key, path.display())
        });
        output::write(lines.collect::<String>().as_bytes())
    })
}

fn fork_of(created: &Created, base: &Identifier) -> Value {
    let Created { record, path, .. } = created;
    json!({
        "identifier": record.identifier,
        "key": record.key,
        "path": path.to_string_lossy(),
        "base": base,
        "kind": record.fork.as_ref().map(|fork| fork.kind),
    })
}

pub(super) async fn diff(arguments: DiffArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.workspace.root, &cli.environment)?;
    let fork = settings.identifier(&arguments.workspace.identifier)?;
    let changes =
        forks(settings, &fork, &arguments.sandbox, cli)?.changes(&fork).await.map_err(refused)?;
    let data = json!({ "fork": fork, "changes": list(&changes) });
    cli.print(&data, || {
        if changes.is_empty() {
            return output::line(&format!("{fork} has changed nothing"));
        }
        output::write(text(&changes).as_bytes())
    })
}

pub(super) async fn promote(arguments: PromoteArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.workspace.root, &cli.environment)?;
    let fork = settings.identifier(&arguments.workspace.identifier)?;
    let others = if arguments.discard_others { OtherForks::Discard } else { OtherForks::Record };
    let forks = forks(settings, &fork, &arguments.sandbox, cli)?;
    let progress = ProgressDisplay::new(cli.progress, "workspace promote");
    let promoted = progress.during(forks.promote(&fork, others)).await;
    sweep_in_background(&forks.workspaces);
    let PromotedFork { base, changes, before, ended } = promoted.map_err(refused)?;
    let ended: Vec<Value> = ended
        .into_iter()
        .map(|(key, snapshot)| json!({ "key": key, "snapshot": snapshot.map(|name| name.to_string()) }))
        .collect();
    let before = before.map(|id| id.to_string());
    let data = json!({
        "fork": fork, "base": base, "changes": list(&changes), "before": before, "ended": ended,
    });
    cli.print(&data, || {
        let mut lines = vec![format!("promoted {fork} into {base}")];
        lines.extend(
            before
                .as_ref()
                .map(|id| format!("the snapshot {id} of {base} has what was there before")),
        );
        lines.extend(ended.iter().map(|other| {
            let key = other["key"].as_str().unwrap_or_default();
            match other["snapshot"].as_str() {
                Some(name) => format!("ended {key}; its work is the snapshot {name} of {base}"),
                None => format!("ended {key}"),
            }
        }));
        let lines = text(&changes) + &lines.join("\n") + "\n";
        output::write(lines.as_bytes())
    })
}

fn forks(
    settings: Settings,
    named: &Identifier,
    sandbox: &SandboxArguments,
    cli: &Invocation,
) -> Result<Forks> {
    let Some(workspaces) = Workspaces::open_existing(&settings.options)? else {
        let (name, root) = (named.to_string(), settings.options.root);
        return Err(carrel_workspace::Error::NotFound { name, root }.into());
    };
    let events = sandbox::direct_events(&cli.environment);
    let runner = sandbox::server_runner(sandbox, &cli.environment, events)?;
    Ok(Forks { workspaces, runner, hooks: settings.hooks })
}

fn refused(failure: Failure) -> CliError {
    CliError::new(failure.code, failure.message).with(failure.detail)
}

fn list(changes: &[carrel_tools::ForkChange]) -> Vec<Value> {
    let change = |change: &carrel_tools::ForkChange| json!({ "path": change.path.to_string_lossy(), "change": change.kind.as_str() });
    changes.iter().map(change).collect()
}

fn text(changes: &[carrel_tools::ForkChange]) -> String {
    let line = |change: &carrel_tools::ForkChange| {
        format!("{:<10} {}\n", change.kind.as_str(), printable(&change.path.to_string_lossy()))
    };
    changes.iter().map(line).collect()
}
