//! The workspace, the operator's policy and the sandbox that a command line selects.
//!
//! `exec`, `tool`, `mcp`, `serve`, `run` and `doctor` take the same flags and get the same runner. A
//! directory of a root is opened with its lock and its quota; any other directory has its records below the
//! operator's state directory.

use std::path::{Path, PathBuf};

use carrel_config::{
    Environment, LoadedPolicy, OperatorPolicy, TierChoice, ValidationScope, Workflow,
};
use carrel_exec::LazySpawner;
use carrel_runner::{
    Runner, RunnerMode, RunnerOptions, SandboxMode, WorkspaceHandle, state_directory,
};
use carrel_workspace::{Amount, RootOptions, Workspaces};
use tracing::warn;

use crate::arguments::SandboxArguments;
use crate::error::CliError;
use crate::workspace::own_program;

/// The directory of a root that is the server's own.
const OWN_DIRECTORY: &str = ".carrel";

pub(crate) fn policy(
    arguments: &SandboxArguments,
    environment: &Environment,
) -> Result<LoadedPolicy, CliError> {
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
) -> Result<Runner, CliError> {
    let sandbox = requested_mode(arguments, policy.tier);
    Ok(Runner::new(RunnerOptions {
        spawner: LazySpawner::new(own_program()?),
        policy,
        environment: environment.clone(),
        sandbox,
        disabled: arguments.without.clone(),
        mode: purpose,
    }))
}

/// Opens a directory as a workspace: one of a root with its lock and quota, or any other. A directory
/// of Carrel's own, one inside a workspace, and one that holds the policy file are refused.
pub(crate) async fn workspace(
    named: Option<&Path>,
    loaded: &LoadedPolicy,
    environment: &Environment,
) -> Result<WorkspaceHandle, CliError> {
    let path = real_path(named.unwrap_or(Path::new(".")))?;
    if path.components().any(|part| part.as_os_str() == OWN_DIRECTORY) {
        return Err(CliError::OwnDirectory { path: path.display().to_string() });
    }
    check_location(&path)?;
    if let (true, Some(file)) = (loaded.lies_in(&path), &loaded.file) {
        let (file, workspace) = (file.path.display().to_string(), path.display().to_string());
        return Err(CliError::PolicyInside { file, workspace });
    }
    match of_root(&path, environment).await? {
        Some(handle) => Ok(handle),
        None => Ok(WorkspaceHandle::for_directory(&path, &state(environment)?)?),
    }
}

/// Refuses a root of workspaces, and a directory inside a workspace, which would bypass its lock and
/// its quota.
fn check_location(path: &Path) -> Result<(), CliError> {
    if path.join(OWN_DIRECTORY).is_dir() {
        return Err(CliError::OwnDirectory { path: path.display().to_string() });
    }
    let of_root =
        |path: &&Path| path.parent().is_some_and(|root| root.join(OWN_DIRECTORY).is_dir());
    match path.ancestors().skip(1).find(of_root) {
        None => Ok(()),
        Some(workspace) => Err(CliError::InsideWorkspace {
            path: path.display().to_string(),
            workspace: workspace.display().to_string(),
            relative: path.strip_prefix(workspace).unwrap_or(path).display().to_string(),
        }),
    }
}

pub(crate) fn state(environment: &Environment) -> Result<PathBuf, CliError> {
    state_directory(environment).ok_or(CliError::NoState)
}

/// Opens a workspace of a root; none if the directory is not one.
async fn of_root(
    path: &Path,
    environment: &Environment,
) -> Result<Option<WorkspaceHandle>, CliError> {
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
    let measured = workspaces.check_quota(&key, carrel_workspace::Freshness::Cached).await?;
    workspaces.touch(&key).await?;
    let used = measured.map_or(Amount { bytes: 0, files: 0 }, |measured| measured.amount);
    Ok(Some(WorkspaceHandle::for_workspace(workspace, used)?))
}

#[expect(clippy::disallowed_methods, reason = "an operator names a directory of the host")]
fn real_path(path: &Path) -> Result<PathBuf, CliError> {
    let failed = |source| CliError::Directory { path: path.display().to_string(), source };
    let real = std::fs::canonicalize(path).map_err(failed)?;
    if real.is_dir() {
        return Ok(real);
    }
    Err(failed(std::io::ErrorKind::NotADirectory.into()))
}
