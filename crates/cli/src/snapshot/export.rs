//! `carrel snapshot export`: for the operator alone, since it writes outside of the workspace.

use std::process::ExitCode;
use std::sync::Arc;

use carrel_domain::{Code, ToolSelection};
use carrel_exec::LazySpawner;
use carrel_tools::{ExportRequest, ExportedBranch, ExportedSnapshots, export_snapshots};

use super::SnapshotCommand;
use crate::arguments::ToolboxArguments;
use crate::error::{CliError, Result};
use crate::output::{self, Invocation, printable};
use crate::sandbox::OverQuota;
use crate::toolbox;
use crate::workspace::own_program;

/// The left-out entries that are printed.
const MAX_SHOWN: usize = 20;

pub(super) fn run(command: &SnapshotCommand, cli: &Invocation) -> Result<ExitCode> {
    let SnapshotCommand::Export { name, all: _, automatic, git, branch, toolbox } = command else {
        unreachable!("the other commands are calls of tools")
    };
    let which = match (name, automatic) {
        (Some(name), _) => ExportedSnapshots::One(name.clone()),
        (None, false) => ExportedSnapshots::All,
        (None, true) => ExportedSnapshots::AllWithAutomatic,
    };
    let request = ExportRequest { which, repository: git.clone(), branch: branch.clone() };
    let exported = crate::runtime()?.block_on(export(toolbox, request, cli))?;
    cli.print(&exported, || print(&exported))
}

async fn export(
    arguments: &ToolboxArguments,
    request: ExportRequest,
    cli: &Invocation,
) -> Result<ExportedBranch> {
    // Nothing is added to the workspace.
    let over_quota = OverQuota::Allowed;
    let registry =
        toolbox::registry(arguments, &cli.environment, over_quota, ToolSelection::ALL).await?;
    let toolbox = registry.toolbox();
    let workspace = toolbox.workspaces.choose(None).map_err(CliError::of_failure)?;
    let spawner = LazySpawner::new(own_program()?);
    let exported = export_snapshots(toolbox.snapshots(), &workspace, &spawner, request).await;
    toolbox::close(&Arc::new(registry)).await;
    exported.map_err(|failure| match failure.code {
        // Of this command, and not of a tool.
        Code::InvalidArguments => CliError::of_failure(failure)
            .hint("`carrel snapshot export --help` lists the arguments"),
        _ => CliError::of_failure(failure),
    })
}

fn print(exported: &ExportedBranch) -> Result<()> {
    let ExportedBranch { repository, branch, commits, left_out, left_out_total } = exported;
    for commit in commits {
        let name = commit.name.as_deref().unwrap_or(&commit.snapshot);
        output::line(&format!("{name}\t{}", commit.commit))?;
    }
    output::line(&format!("branch {branch} of {repository}"))?;
    for omission in left_out.iter().take(MAX_SHOWN) {
        let (path, reason) = (printable(&omission.path), omission.reason.replace('_', " "));
        output::line(&format!("not in git as it is: {path} ({reason})"))?;
    }
    match left_out_total.saturating_sub(MAX_SHOWN as u64) {
        0 => Ok(()),
        more => output::line(&format!("[{more} more are not as they are; --json lists them]")),
    }
}
