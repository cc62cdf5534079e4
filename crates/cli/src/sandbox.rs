//! The workspace, the operator's policy and the sandbox that a command line selects.
//!
//! `exec`, `tool`, `mcp`, `serve`, `run` and `doctor` take the same flags and get the same runner. A
//! directory of a root is opened with its lock and its quota; any other directory has its records below the
//! operator's state directory.

use std::io;
use std::path::{Component, Path, PathBuf};

use carrel_config::environment::PWD;
use carrel_config::{
    Environment, LoadedPolicy, OperatorPolicy, TierChoice, ValidationScope, Workflow,
};
use carrel_domain::{Code, Coded as _, WorkspaceAccess};
use carrel_exec::LazySpawner;
use carrel_runner::{
    Runner, RunnerMode, RunnerOptions, SandboxMode, WorkspaceHandle, state_directory,
};
use carrel_tools::AuditLog;
use carrel_workspace::{Amount, Freshness, RootOptions, Workspaces};
use serde_json::json;
use tracing::warn;

use crate::arguments::SandboxArguments;
use crate::error::{CliError, Result};
use crate::workspace::own_program;

/// The directory of a root that is the server's own.
pub(crate) const OWN_DIRECTORY: &str = ".carrel";

pub(crate) fn policy(
    arguments: &SandboxArguments,
    environment: &Environment,
) -> Result<LoadedPolicy> {
    let loaded = OperatorPolicy::load(arguments.policy.as_deref(), environment)?;
    if let Some(file) = &loaded.file {
        for warning in &loaded.warnings {
            warn!("{}", warning.located(&file.path));
        }
    }
    Ok(loaded)
}

/// Returns the sandbox that the arguments request, else that of the policy.
pub(crate) fn requested_mode(arguments: &SandboxArguments, policy: TierChoice) -> SandboxMode {
    match arguments.mode {
        Some(_) => SandboxMode::Off,
        None => SandboxMode::Enforced(arguments.tier.unwrap_or(policy)),
    }
}

pub(crate) fn runner(
    arguments: &SandboxArguments,
    policy: OperatorPolicy,
    environment: &Environment,
    purpose: RunnerMode,
    events: AuditLog,
) -> Result<Runner> {
    let sandbox = requested_mode(arguments, policy.tier);
    Ok(Runner::new(RunnerOptions {
        spawner: LazySpawner::new(own_program()?),
        policy,
        environment: environment.clone(),
        sandbox,
        disabled: arguments.without.clone(),
        mode: purpose,
        events,
    }))
}

pub(crate) fn access(read_only: bool) -> WorkspaceAccess {
    if read_only { WorkspaceAccess::ReadOnly } else { WorkspaceAccess::ReadWrite }
}

/// Returns the runner of a process that runs many commands, with the operator's policy.
pub(crate) fn server_runner(
    arguments: &SandboxArguments,
    environment: &Environment,
    events: AuditLog,
) -> Result<Runner> {
    let loaded = policy(arguments, environment)?;
    runner(arguments, loaded.policy, environment, RunnerMode::Server, events)
}

/// The file of the audit log.
pub(crate) const EVENTS: &str = "events.jsonl";

/// Returns the audit log in a directory. Work goes on without it.
pub(crate) fn events_in(directory: &Path) -> AuditLog {
    AuditLog::to_file(&directory.join(EVENTS))
}

/// Returns the operator's audit log, for a server.
pub(crate) fn events(environment: &Environment) -> AuditLog {
    state_directory(environment).map_or_else(AuditLog::none, |state| events_in(&state))
}

/// Returns the operator's audit log, for a command that ends.
pub(crate) fn direct_events(environment: &Environment) -> AuditLog {
    let state = state_directory(environment);
    state.map_or_else(AuditLog::none, |state| AuditLog::direct(&state.join(EVENTS)))
}

/// The handling of a workspace that is over its quota when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverQuota {
    Refused,
    /// For a call that frees space.
    Allowed,
}

/// Opens a directory as a workspace: one of a root with its lock and quota, or any other. A directory
/// of Carrel's own, one inside a workspace, and one that holds the policy file are refused.
pub(crate) async fn workspace(
    named: Option<&Path>,
    loaded: &LoadedPolicy,
    runner: &Runner,
    environment: &Environment,
    over_quota: OverQuota,
) -> Result<WorkspaceHandle> {
    let path = real_path(named.unwrap_or(Path::new(".")))?;
    if let Some(root) = path.ancestors().find(|part| part.ends_with(OWN_DIRECTORY)) {
        return Err(own_directory(&path, root));
    }
    check_location(&path)?;
    if let (true, Some(file)) = (loaded.lies_in(&path), &loaded.file) {
        let (file, workspace) = (file.path.display().to_string(), path.display().to_string());
        let message =
            format!("the policy file {file} lies in the workspace {workspace} that it applies to");
        let detail = json!({ "file": file, "workspace": workspace });
        return Err(CliError::new(Code::PolicyUnsafe, message).with(detail));
    }
    match of_root(&path, runner, environment, over_quota).await? {
        Some(handle) => Ok(handle),
        None => Ok(WorkspaceHandle::for_directory(&path, &state(environment)?)?),
    }
}

/// Refuses a root of workspaces, and a directory inside a workspace, which would bypass its lock and
/// its quota.
fn check_location(path: &Path) -> Result<()> {
    if path.join(OWN_DIRECTORY).is_dir() {
        return Err(root_of_workspaces(path));
    }
    let of_root =
        |path: &&Path| path.parent().is_some_and(|root| root.join(OWN_DIRECTORY).is_dir());
    let Some(workspace) = path.ancestors().skip(1).find(of_root) else { return Ok(()) };
    let message = format!(
        "{} lies inside a workspace; write --workspace {} --cwd {}",
        path.display(),
        workspace.display(),
        path.strip_prefix(workspace).unwrap_or(path).display()
    );
    Err(CliError::new(Code::InvalidWorkspaceCwd, message).at(path))
}

fn own_directory(path: &Path, own: &Path) -> CliError {
    let message = format!("{} is a directory of Carrel itself", path.display());
    let hint = format!("name a directory outside {}", own.display());
    CliError::new(Code::SandboxViolation, message).hint(hint).at(path)
}

fn root_of_workspaces(path: &Path) -> CliError {
    let path_text = path.display();
    let message = format!(
        "{path_text} is a root of workspaces: it holds {OWN_DIRECTORY}, Carrel's own state"
    );
    let hint = format!(
        "name a workspace in it, which `carrel workspace ls --root {path_text}` lists, or a directory outside it"
    );
    CliError::new(Code::SandboxViolation, message).hint(hint).at(path)
}

pub(crate) fn state(environment: &Environment) -> Result<PathBuf> {
    let message = "there is no directory for state: HOME and XDG_STATE_HOME are both unset";
    state_directory(environment).ok_or_else(|| CliError::new(Code::Usage, message))
}

/// Opens a workspace of a root; none if the directory is not one.
async fn of_root(
    path: &Path,
    runner: &Runner,
    environment: &Environment,
    over_quota: OverQuota,
) -> Result<Option<WorkspaceHandle>> {
    let Some(root) = path.parent().filter(|root| root.join(OWN_DIRECTORY).is_dir()) else {
        return Ok(None);
    };
    // The settings of no file: what they say about the root is replaced, and records have the rest.
    let scope = ValidationScope::WorkspaceAndHooks;
    let defaults = Workflow::parse(b"", Path::new("defaults"), environment, scope)?;
    let options = RootOptions { root: root.to_owned(), ..RootOptions::of(&defaults, environment) };
    let Some(workspaces) = Workspaces::open_existing(&options)? else { return Ok(None) };
    let workspace = workspaces.open_at(path).await?;
    let key = workspace.record().key.clone();
    let measured = match workspaces.check_quota(&key, Freshness::Cached).await {
        Err(error) if over_quota == OverQuota::Allowed && error.code() == Code::QuotaExceeded => {
            workspaces.usage(&key, Freshness::Cached).await?
        }
        checked => checked?,
    };
    workspaces.touch(&key).await?;
    let used = measured.map_or(Amount { bytes: 0, files: 0 }, |measured| measured.amount);
    Ok(Some(runner.open_counted(workspace, used).await?))
}

#[expect(clippy::disallowed_methods, reason = "an operator names a directory of the host")]
pub(crate) fn real_path(path: &Path) -> Result<PathBuf> {
    let failed = |error: io::Error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::NotADirectory => Code::NotADirectory,
            io::ErrorKind::PermissionDenied => Code::PermissionDenied,
            _ => Code::Io,
        };
        let subject = format!("--workspace {} cannot be used", path.display());
        CliError::of(code, &error).context(subject).at(path)
    };
    let real = std::fs::canonicalize(path).map_err(|error| match path.strip_prefix("~") {
        // `--workspace=~` reaches the program as it is typed.
        Ok(below) if error.kind() == io::ErrorKind::NotFound => {
            let hint = Path::new("$HOME").join(below);
            let hint = hint.display().to_string();
            let hint = hint.trim_end_matches('/');
            failed(error).hint(format!("the shell did not expand ~: write --workspace \"{hint}\""))
        }
        _ => failed(error),
    })?;
    if real.is_dir() {
        return Ok(real);
    }
    Err(failed(io::ErrorKind::NotADirectory.into()))
}

/// Returns the absolute path by which an operator named a workspace, possibly through links. `real` is its path
/// without links.
#[expect(clippy::disallowed_methods, reason = "compares a path; no file is opened by it")]
pub(crate) fn named_path(named: &Path, real: &Path, environment: &Environment) -> PathBuf {
    // The shell's own path comes first: it has the links by which the operator entered the directory.
    let shell = environment.get(PWD).map(PathBuf::from);
    let kernel = std::env::current_dir().ok();
    let from = [shell, kernel].into_iter().flatten().filter(|path| path.is_absolute());
    let mut candidates = from.map(|directory| without_dots(&directory.join(named)));
    let leads_there = |path: &PathBuf| std::fs::canonicalize(path).is_ok_and(|path| path == real);
    candidates.find(leads_there).unwrap_or_else(|| real.to_owned())
}

/// Takes `.` and `..` out of an absolute path, by its text.
fn without_dots(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(result.pop()),
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => {
                result.push(component);
            }
        }
    }
    result
}
