//! Prints the guide to the tools: `docs/tools.md`.

use std::io::{self, Write as _};
use std::path::Path;

use carrel_config::{Environment, OperatorPolicy};
use carrel_domain::WorkspaceAccess;
use carrel_exec::LazySpawner;
use carrel_runner::{Runner, RunnerMode, RunnerOptions, SandboxMode, WorkspaceHandle};
use carrel_tools::{
    AuditLog, GitOptions, NamedWorkspace, Registry, Secrets, Toolbox, ToolboxOptions, Toolset,
    WorkspaceEntry, Workspaces, tool_reference_markdown,
};

fn main() -> io::Result<()> {
    let (code, service) = (registry(Toolset::Code)?, registry(Toolset::Workspace)?);
    let text = tool_reference_markdown(code.definitions(), service.definitions());
    io::stdout().write_all(text.as_bytes())
}

/// Makes a registry whose tools are never called.
fn registry(toolset: Toolset) -> io::Result<Registry> {
    let environment = Environment::default();
    let policy = OperatorPolicy::default();
    let path = Path::new(".");
    let handle = WorkspaceHandle::for_directory(path, path).map_err(io::Error::other)?;
    let entry = WorkspaceEntry {
        name: "main".into(),
        path: path.into(),
        access: WorkspaceAccess::ReadWrite,
    };
    let workspaces =
        Workspaces::new(vec![NamedWorkspace::new(entry, handle)]).map_err(io::Error::other)?;
    let toolbox = Toolbox::new(ToolboxOptions {
        workspaces,
        runner: Runner::new(RunnerOptions {
            spawner: LazySpawner::new("carrel".into()),
            sandbox: SandboxMode::Enforced(policy.tier),
            policy,
            environment: environment.clone(),
            disabled: Vec::new(),
            mode: RunnerMode::Server,
            events: AuditLog::none(),
        }),
        secrets: Secrets::new(&environment, None),
        access: WorkspaceAccess::ReadWrite,
        network: carrel_domain::NetworkRequest::default(),
        git: GitOptions::new(&environment),
        reply_bytes: carrel_tools::DEFAULT_REPLY_BYTES,
    });
    Ok(Registry::new(toolbox, toolset))
}
