//! The workspaces and tools that `carrel tool` and `carrel mcp` offer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::WorkspaceAccess;
use carrel_runner::RunnerMode;
use carrel_tools::{
    AuditLog, GitOptions, NamedWorkspace, Registry, Secrets, Toolbox, ToolboxOptions,
    WorkspaceEntry, Workspaces, parse_workspaces,
};
use tracing::warn;

use crate::arguments::ToolboxArguments;
use crate::boundary;
use crate::failure::Failure;

/// The name of a workspace whose directory gives it none.
pub(crate) const UNNAMED: &str = "workspace";

/// Where events are kept, below the operator's state.
const EVENTS: &str = "events.jsonl";

/// Opens the workspaces and prepares the tools.
pub(crate) async fn registry(
    arguments: &ToolboxArguments,
    environment: &Environment,
) -> Result<Registry, Failure> {
    let loaded = boundary::policy(&arguments.boundary, environment)?;
    let mut places = Vec::new();
    for (index, entry) in entries(arguments)?.into_iter().enumerate() {
        let desk = boundary::desk(Some(&entry.path), &loaded, environment).await;
        let desk = desk.map_err(|failure| about(failure, index, &entry.name))?;
        places.push(NamedWorkspace::new(named_after(entry, desk.path()), desk));
    }
    let workspaces = Workspaces::new(places)?;
    let purpose = RunnerMode::Server;
    let toolbox = Toolbox::new(ToolboxOptions {
        workspaces,
        runner: boundary::runner(&arguments.boundary, loaded.policy, environment, purpose)?,
        secrets: Secrets::new(environment, arguments.secrets_dir.clone()),
        events: events(environment),
        access: if arguments.read_only {
            WorkspaceAccess::ReadOnly
        } else {
            WorkspaceAccess::ReadWrite
        },
        network: arguments.network,
        git: GitOptions::new(environment),
    });
    Ok(Registry::new(toolbox, arguments.toolset.into()))
}

/// Says which of several workspaces a failure is about. The only one has no name yet.
fn about(failure: Failure, index: usize, name: &str) -> Failure {
    if name.is_empty() {
        return failure;
    }
    Failure::Entry { index, name: name.to_owned(), source: Box::new(failure) }
}

/// Reads which workspaces there are; the current directory if nothing is said.
fn entries(arguments: &ToolboxArguments) -> Result<Vec<WorkspaceEntry>, Failure> {
    if let Some(spec) = &arguments.workspaces {
        return Ok(parse_workspaces(spec)?);
    }
    let path = arguments.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    Ok(vec![WorkspaceEntry { name: String::new(), path, access: WorkspaceAccess::ReadWrite }])
}

/// Names a workspace after the directory that it really is, if it has no name.
fn named_after(entry: WorkspaceEntry, real: &Path) -> WorkspaceEntry {
    if !entry.name.is_empty() {
        return entry;
    }
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or(UNNAMED);
    let name = if carrel_tools::is_workspace_name(name) { name } else { UNNAMED };
    WorkspaceEntry { name: name.to_owned(), ..entry }
}

/// Opens the file of events of the operator. Work goes on without it.
fn events(environment: &Environment) -> AuditLog {
    boundary::state(environment).map_or_else(|_| AuditLog::none(), |state| events_in(&state))
}

/// Opens the file of events in a directory. Work goes on without it.
pub(crate) fn events_in(directory: &Path) -> AuditLog {
    AuditLog::to_file(&directory.join(EVENTS)).unwrap_or_else(|error| {
        warn!(%error, "events are not kept");
        AuditLog::none()
    })
}

/// Says on stderr which workspaces there are, when there are several.
pub(crate) fn announce(registry: &Registry) {
    let workspaces = &registry.toolbox().workspaces;
    if workspaces.len() > 1 {
        let (count, names) = (workspaces.len(), workspaces.names().join(", "));
        crate::output::note(&format!(
            "carrel multi-workspace mode: {count} workspaces configured ({names})"
        ));
    }
}

/// Ends what runs in the background, and returns how many commands that were.
pub(crate) async fn close(registry: &Arc<Registry>) -> usize {
    registry.toolbox().jobs.stop_all().await.len()
}
