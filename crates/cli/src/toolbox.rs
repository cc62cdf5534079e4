//! The workspaces and tools that `carrel tool` and `carrel mcp` offer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_config::Environment;
use carrel_domain::{NetworkRequest, ToolSelection, WorkspaceAccess};
use carrel_runner::RunnerMode;
use carrel_tools::{
    GitOptions, NamedWorkspace, Registry, Secrets, Toolbox, ToolboxOptions, WorkspaceEntry,
    Workspaces, parse_workspaces,
};

use crate::arguments::ToolboxArguments;
use crate::error::Result;
use crate::sandbox::{self, OverQuota};

/// The name of a workspace whose directory gives it none.
pub(crate) const UNNAMED: &str = "workspace";

/// Makes the registry of a command. `unless_chosen` are its tools if the operator chose no groups.
pub(crate) async fn registry(
    arguments: &ToolboxArguments,
    environment: &Environment,
    over_quota: OverQuota,
    unless_chosen: ToolSelection,
) -> Result<Registry> {
    let loaded = sandbox::policy(&arguments.sandbox, environment)?;
    let (policy, mode) = (loaded.policy.clone(), RunnerMode::Server);
    let events = sandbox::events(environment);
    let runner = sandbox::runner(&arguments.sandbox, policy, environment, mode, events)?;
    let mut workspaces = Vec::new();
    for (index, entry) in entries(arguments)?.into_iter().enumerate() {
        let path = Some(entry.path.as_path());
        let handle = sandbox::workspace(path, &loaded, &runner, environment, over_quota).await;
        // Where there are several, the error says which one it is about.
        let handle = handle.map_err(|error| match entry.name.as_str() {
            "" => error,
            name => error.context(format_args!("workspace[{index}] ({name})")),
        })?;
        let path = sandbox::named_path(&entry.path, handle.path(), environment);
        let entry = named_after(WorkspaceEntry { path, ..entry }, handle.path());
        workspaces.push(NamedWorkspace::new(entry, handle));
    }
    let workspaces = Workspaces::new(workspaces)?;
    let typed = NetworkRequest::of_operator(arguments.network);
    // An option above the policy's limit is an error now, and not with each command.
    runner.decide_network(typed)?;
    let toolbox = Toolbox::new(ToolboxOptions {
        workspaces,
        runner,
        secrets: Secrets::new(environment, arguments.secrets_dir.clone()),
        access: sandbox::access(arguments.read_only),
        network: NetworkRequest { requested: None, ..typed },
        git: GitOptions::new(environment),
        reply_bytes: arguments.max_reply,
        symbols: Arc::default(),
        snapshots: Arc::default(),
    });
    Ok(Registry::new(toolbox, arguments.tools.unwrap_or(unless_chosen)))
}

/// Reads the list of workspaces; the current directory if none is given.
fn entries(arguments: &ToolboxArguments) -> Result<Vec<WorkspaceEntry>> {
    if let Some(spec) = &arguments.workspaces {
        return Ok(parse_workspaces(spec)?);
    }
    let path = arguments.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    Ok(vec![WorkspaceEntry { name: String::new(), path, access: WorkspaceAccess::ReadWrite }])
}

/// Names an unnamed workspace after its real directory.
fn named_after(entry: WorkspaceEntry, real: &Path) -> WorkspaceEntry {
    if !entry.name.is_empty() {
        return entry;
    }
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or(UNNAMED);
    let name = if carrel_tools::is_workspace_name(name) { name } else { UNNAMED };
    WorkspaceEntry { name: name.to_owned(), ..entry }
}

pub(crate) fn announce(registry: &Registry) {
    let workspaces = &registry.toolbox().workspaces;
    if workspaces.len() > 1 {
        let (count, names) = (workspaces.len(), workspaces.names().join(", "));
        crate::output::note(&format!(
            "carrel multi-workspace mode: {count} workspaces configured ({names})"
        ));
    }
}

pub(crate) async fn close(registry: &Arc<Registry>) -> usize {
    registry.toolbox().stop_jobs().await
}
