//! `carrel workspace rm | gc`, and the process that empties the trash.

use std::ffi::OsStr;
use std::process::ExitCode;

use carrel_config::OperatorPolicy;
use carrel_domain::{Code, Failure};
use carrel_tools::{Expired, SweepMode, SweptSnapshots, sweep_snapshots};
use carrel_workspace::{Gc, GcAction, GcReport, Remove, Target, UnsavedWork, Workspaces};
use serde_json::json;
use tracing::warn;

use super::arguments::{GcArguments, RemoveArguments};
use super::settings::Settings;
use super::{fail_if_any, own_program};
use crate::error::{CliError, Result};
use crate::output::{self, Invocation, printable};

pub(super) async fn remove(arguments: RemoveArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let target = match (arguments.path, arguments.identifier) {
        (Some(path), _) => Target::Path(
            std::path::absolute(path).map_err(CliError::start("the current directory"))?,
        ),
        (None, identifier) => {
            Target::Identifier(settings.identifier(&identifier.unwrap_or_default())?)
        }
    };
    let Some(workspaces) = Workspaces::open_existing(&settings.options)? else {
        let (name, root) = (target.to_string(), settings.options.root);
        return Err(carrel_workspace::Error::NotFound { name, root }.into());
    };
    let unsaved = if arguments.keep_if_dirty { UnsavedWork::Refuse } else { UnsavedWork::Discard };
    let request = Remove { target, unsaved };
    let removed = workspaces.remove(request, &settings.hooks).await?;
    sweep_in_background(&workspaces);
    let data = json!({
        "identifier": removed.identifier,
        "key": removed.key,
        "path": removed.path.to_string_lossy(),
        "removed": true,
    });
    cli.print(&data, || {
        output::line(&format!("removed {} at {}", removed.key, removed.path.display()))
    })
}

/// Starts a process that empties the trash, if there is anything in it or in kept work whose time is over.
///
/// It outlives this one: removal returns at once for any size. If it is
/// killed or cannot be started, the next command that finds something in the
/// trash starts another.
pub(crate) fn sweep_in_background(workspaces: &Workspaces) {
    if let Err(error) = start_sweep(workspaces) {
        let error = error.to_string();
        warn!(error, "Trash is left to the next clean-up");
    }
}

fn start_sweep(workspaces: &Workspaces) -> Result<()> {
    if !workspaces.needs_sweep()? {
        return Ok(());
    }
    let root = workspaces.path().as_os_str();
    let command: [&OsStr; 4] =
        ["workspace".as_ref(), "gc".as_ref(), "--trash-only".as_ref(), "--root".as_ref()];
    let arguments = [&command[..], &[root]].concat();
    carrel_exec::start_detached(&own_program()?, &arguments)
        .map_err(CliError::start("the process that empties the trash"))
}

pub(super) async fn gc(arguments: &GcArguments, cli: &Invocation) -> Result<ExitCode> {
    let settings = Settings::load(&arguments.root, &cli.environment)?;
    let root = settings.options.root.clone();
    let options = Gc {
        dry_run: arguments.dry_run,
        retention: arguments.older_than.map(|age| age.0),
        keep_if_dirty: arguments.keep_if_dirty,
        orphans: arguments.orphans,
        drop_kept: arguments.drop_kept,
    };
    let mut expired = Expired::default();
    let mut report = match settings.open_root(&arguments.root)? {
        Some(workspaces) if arguments.trash_only => workspaces.empty_trash().await?,
        Some(workspaces) => {
            // What a fork leaves is a snapshot, too.
            expired =
                super::fork::expire(&workspaces, &settings.hooks, options.dry_run, cli).await?;
            let mut report = workspaces.gc(options, &settings.hooks).await?;
            expire_snapshots(&workspaces, options.dry_run, cli, &mut report);
            report
        }
        None => GcReport::default(),
    };
    let failed = expired.failed.iter().map(|(key, failure)| format!("{key}: {}", failure.message));
    report.failed.splice(0..0, failed);
    let data = json!({
        "root": root.to_string_lossy(),
        "dry_run": options.dry_run,
        "expired_forks": expired.ended,
        "actions": report.actions,
        "failed": report.failed,
    });
    let ended = cli.print(&data, || {
        output::write(report_text(&report, &expired, options.dry_run).as_bytes())
    })?;
    let failed = "steps of the clean-up that failed";
    fail_if_any(report.failed.len(), Code::CleanUpIncomplete, failed).map(|()| ended)
}

/// Deletes the snapshots that the operator's policy does not keep.
fn expire_snapshots(
    workspaces: &Workspaces,
    dry_run: bool,
    cli: &Invocation,
    report: &mut GcReport,
) {
    let mode = if dry_run { SweepMode::DryRun } else { SweepMode::Delete };
    let swept = OperatorPolicy::load(None, &cli.environment)
        .map_err(Failure::from)
        .and_then(|loaded| sweep_snapshots(workspaces, loaded.policy.snapshots, mode));
    match swept {
        Ok(SweptSnapshots { deleted, failed }) => {
            let expired = |(key, count)| GcAction::ExpireSnapshots { key, count };
            report.actions.extend(deleted.into_iter().map(expired));
            report.failed.extend(failed);
        }
        Err(failure) => report.failed.push(failure.message),
    }
}

fn report_text(report: &GcReport, expired: &Expired, dry_run: bool) -> String {
    let mood = if dry_run { "would " } else { "" };
    let forks = expired.ended.iter().map(|fork| format!("{mood}{}", super::fork::describe(fork)));
    let actions = report.actions.iter().map(|action| format!("{mood}{}", describe(action)));
    let mut lines: Vec<String> = forks.chain(actions).collect();
    lines.extend(report.failed.iter().map(|reason| format!("failed: {}", printable(reason))));
    if lines.is_empty() {
        lines.push("nothing to clean up".to_owned());
    }
    lines.join("\n") + "\n"
}

fn describe(action: &GcAction) -> String {
    match action {
        GcAction::FinishRemoval { key } => format!("finish the removal of {key}"),
        GcAction::RemoveHalfMade { key } => format!("remove the half-made {key}"),
        GcAction::DropRecord { key } => {
            format!("drop the record of {key}, whose directory is gone")
        }
        GcAction::RemoveUnused { key, last_used_at, .. } => {
            format!("remove {key}, last used {last_used_at}")
        }
        GcAction::RemoveOrphan { name } => {
            format!("remove {}, which has no record", printable(name))
        }
        GcAction::KeepUnsaved { name } => format!("keep unsaved work as {name}"),
        GcAction::DropKept { name } => format!("drop the kept work {}", printable(name)),
        GcAction::DeleteLogs { name } => format!("delete the logs of {}", printable(name)),
        GcAction::DeleteHome { name } => format!("delete the home of {}", printable(name)),
        GcAction::DeleteSnapshots { name } => {
            format!("delete the snapshots of {}", printable(name))
        }
        GcAction::ExpireSnapshots { key, count } => {
            format!("delete {count} snapshots of {key}, which are too old or too many")
        }
        GcAction::DeleteSymbols { name } => {
            format!("delete the symbol index of {}", printable(name))
        }
        GcAction::DeleteLayers { name } => {
            format!("delete the layers of the fork {}", printable(name))
        }
        GcAction::DeleteLock { name } => format!("delete the idle lock {}", printable(name)),
        GcAction::DeleteUnfinished { path } => format!("delete the unfinished {path}"),
        GcAction::DeleteTrash { name } => format!("delete {} from the trash", printable(name)),
    }
}
