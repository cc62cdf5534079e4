//! `carrel workspace fork`, `diff` and `promote`: attempts on a workspace that cost nothing until they change something.

use std::path::PathBuf;
use std::process::ExitCode;

use carrel_domain::{Age, Code, Identifier};
use carrel_tools::{
    AdoptedChanges, Expired, ExpiredFork, ForkPatch, Forks, Interface, OtherForks, PromotedFork,
    Rebased, RebasedFork,
};
use carrel_workspace::{Created, Hooks, Quota, Workspaces};
use serde_json::{Value, json};

use super::arguments::{DiffArguments, ForkArguments, PromoteArguments, RebaseArguments};
use super::change_list;
use super::remove::sweep_in_background;
use super::settings::Settings;
use crate::arguments::SandboxArguments;
use crate::error::{CliError, Result};
use crate::output::{self, Invocation};
use crate::progress::ProgressDisplay;
use crate::sandbox;

/// Bounds the text of `diff --patch`.
const MAX_PATCH_BYTES: usize = 16 << 20;

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
    let (made, put) = match &arguments.from {
        None => (forks.make(&base, names, quota).await.map_err(CliError::of_failure)?, None),
        Some(from) => {
            let [name] = <[_; 1]>::try_from(names).map_err(|_| {
                let message = "--from makes one fork, so --as is given once at most";
                CliError::new(Code::Usage, message)
            })?;
            let rebased = Box::pin(forks.make_from(&base, from, name, quota)).await;
            let RebasedFork { fork, work } = rebased.map_err(CliError::of_failure)?;
            (vec![fork], Some(work))
        }
    };
    let listed: Vec<Value> = made.iter().map(|created| fork_of(created, &base)).collect();
    let idle = Some(forks.runner.policy().fork_idle).filter(|idle| !idle.is_zero());
    let seconds = idle.map(|idle| idle.as_secs());
    let mut data = json!({ "base": base, "forks": listed, "idle_seconds": seconds });
    if let Some(work) = &put {
        data["work"] = work_facts(work);
    }
    cli.print(&data, || {
        let lines = made.iter().map(|Created { record, path, .. }| {
            format!("forked {base} as {} at {}\n", record.key, path.display())
        });
        let expiry = idle.map_or_else(String::new, |idle| {
            let idle = Age(idle);
            format!("unused for {idle}, a fork is ended by the next clean-up, and its work becomes a snapshot of {base}\n")
        });
        let work = put.as_ref().map_or_else(String::new, in_words);
        output::write((lines.collect::<String>() + &work + &expiry).as_bytes())
    })
}

/// The work that a fork begins with, as data.
fn work_facts(work: &Rebased) -> Value {
    let texts = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    let changes = work.changes.iter().map(
        |change| json!({ "path": change.path.to_string_lossy(), "change": change.kind.as_str() }),
    );
    let left_alone = work.left_alone.iter().map(
        |(path, omission)| json!({ "path": path.to_string_lossy(), "reason": omission.as_str() }),
    );
    json!({
        "changes": changes.collect::<Vec<_>>(),
        "already": texts(&work.already),
        "kept": texts(&work.kept),
        "left_alone": left_alone.collect::<Vec<_>>(),
    })
}

fn in_words(work: &Rebased) -> String {
    let counts = [
        (work.already.len(), "more are in the base already"),
        (work.kept.len(), "directories that the work removed are not empty, and stay"),
        (work.left_alone.len(), "entries are not in the work, and are as in the base"),
    ];
    let notes = counts.iter().filter(|(count, _)| *count > 0);
    let notes = notes.map(|(count, what)| format!("{count} {what}\n"));
    format!("it has {} changes of the work\n", work.changes.len()) + &notes.collect::<String>()
}

pub(super) async fn rebase(arguments: RebaseArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.workspace.root, &cli.environment)?;
    let fork = settings.identifier(&arguments.workspace.identifier)?;
    let forks = forks(settings, &fork, &arguments.sandbox, cli)?;
    let adopted = forks.rebase(&fork).await.map_err(CliError::of_failure)?;
    let AdoptedChanges { base, paths } = adopted;
    let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
    cli.print(&json!({ "fork": fork, "base": base, "changed": paths }), || {
        let lines = paths.iter().map(|path| format!("{path}\n"));
        let end = if paths.is_empty() {
            format!("{base} has not changed past Carrel\n")
        } else {
            format!("{fork} has taken over what changed in {base}\n")
        };
        output::write((lines.collect::<String>() + &end).as_bytes())
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
    let against =
        arguments.against.as_deref().map(|other| settings.identifier(other)).transpose()?;
    let forks = forks(settings, &fork, &arguments.sandbox, cli)?;
    let (changes, patch) = if arguments.patch {
        let compared = forks.patch(&fork, against.as_ref(), MAX_PATCH_BYTES).await;
        compared.map(|(changes, patch)| (changes, Some(patch)))
    } else {
        forks.changes_against(&fork, against.as_ref()).await.map(|changes| (changes, None))
    }
    .map_err(CliError::of_failure)?;
    let mut data = json!({
        "fork": fork, "against": against, "changes": change_list::facts(&changes),
    });
    if let Some(ForkPatch { text, not_shown, .. }) = &patch {
        let not_shown: Vec<_> = not_shown.iter().map(|path| path.to_string_lossy()).collect();
        data["patch"] = json!({ "text": text, "not_shown": not_shown });
    }
    cli.print(&data, || match (&patch, &against) {
        (_, Some(other)) if changes.is_empty() => {
            output::line(&format!("{fork} and {other} have the same files"))
        }
        (_, None) if changes.is_empty() => output::line(&format!("{fork} has changed nothing")),
        (Some(patch), _) => {
            if patch.in_repositories > 0 {
                let count = patch.in_repositories;
                output::note(&format!("{count} changes in .git are not in the patch"));
            }
            if !patch.not_shown.is_empty() {
                let count = patch.not_shown.len();
                output::note(&format!("{count} more changes do not fit; --json names them"));
            }
            output::write(patch.text.as_bytes())
        }
        (None, _) => output::write(change_list::text(&changes).as_bytes()),
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
    let PromotedFork { base, changes, before, ended, only_ignored } =
        promoted.map_err(CliError::of_failure)?;
    let ended = ended.into_iter().map(|(key, snapshot)| {
        let snapshot = snapshot.map(|name| name.to_string());
        json!({ "key": key, "snapshot": snapshot, "only_ignored": only_ignored.contains(&key) })
    });
    let ended: Vec<Value> = ended.collect();
    let before = before.map(|id| id.to_string());
    let data = json!({
        "fork": fork, "base": base, "changes": change_list::facts(&changes), "before": before, "ended": ended,
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
                None if other["only_ignored"] == json!(true) => {
                    format!("ended {key}, which changed only what ignore rules exclude")
                }
                None => format!("ended {key}"),
            }
        }));
        let lines = change_list::text(&changes) + &lines.join("\n") + "\n";
        output::write(lines.as_bytes())
    })
}

/// Ends the forks that nothing has used for long; in a dry run it only names them.
pub(super) async fn expire(
    workspaces: &Workspaces,
    hooks: &Hooks,
    dry_run: bool,
    cli: &Invocation,
) -> Result<Expired> {
    // The policy is not looked at where there is nothing that it could be about.
    if workspaces.all_forks()?.is_empty() {
        return Ok(Expired::default());
    }
    let events = sandbox::direct_events(&cli.environment);
    let runner = sandbox::server_runner(&SandboxArguments::default(), &cli.environment, events)?;
    let forks = Forks { workspaces: workspaces.clone(), runner, hooks: hooks.clone() };
    if !dry_run {
        return forks.expire(Interface::Cli).await.map_err(CliError::of_failure);
    }
    let idle = forks.expiry().map_or(Ok(Vec::new()), |moment| forks.idle_since(moment));
    let planned = idle.map_err(CliError::of_failure)?.into_iter().filter_map(|fork| {
        let base = fork.fork?.base;
        Some(ExpiredFork { key: fork.key, base, snapshot: None, lost: false })
    });
    Ok(Expired { ended: planned.collect(), failed: Vec::new() })
}

/// Returns the end of an idle fork in words.
pub(super) fn describe(fork: &ExpiredFork) -> String {
    let ExpiredFork { key, base, snapshot, lost } = fork;
    let work = match snapshot {
        Some(name) => format!("; its work is the snapshot {name} of {base}"),
        None if *lost => "; its work was lost when the machine was started anew".to_owned(),
        None => String::new(),
    };
    format!("end the idle fork {key} of {base}{work}")
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
