//! The root and the hooks of `carrel workspace`: from the command line, the workflow file and the
//! environment, in that order.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use carrel_config::{Environment, RootOrigin, ValidationScope, Workflow};
use carrel_domain::{Code, Identifier};
use carrel_exec::LazySpawner;
use carrel_runner::SandboxedHooks;
use carrel_workspace::{Hooks, RootOptions, Workspaces};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::arguments::RootArguments;
use super::own_program;
use crate::error::{CliError, Result};
use crate::sandbox;

/// The workflow file that is used when none is named.
const DEFAULT_FILE: &str = "WORKFLOW.md";

pub(crate) struct Settings {
    pub(crate) options: RootOptions,
    pub(crate) hooks: Hooks,
    /// Neither the command line nor the workflow file names a root.
    pub(crate) is_default_root: bool,
}

impl Settings {
    /// Reads the workflow file, if there is one. `--root` overrides its root.
    pub(crate) fn load(arguments: &RootArguments, environment: &Environment) -> Result<Self> {
        let workflow = load_workflow(arguments, environment)?;
        for warning in &workflow.warnings {
            warn!("{}", warning.located(&workflow.path));
        }
        let mut options = RootOptions::of(&workflow, environment);
        if let Some(value) = &arguments.root {
            options.root = root_of_command_line(value, environment)?;
        }
        let commands = LazySpawner::new(own_program()?);
        let (events, cancel) = (sandbox::direct_events(environment), CancellationToken::new());
        let hooks = SandboxedHooks::of_workflow(&workflow, environment, commands, events, cancel);
        let is_default_root = arguments.root.is_none()
            && workflow.config.workspace.root.origin == RootOrigin::Default;
        Ok(Self { options, hooks, is_default_root })
    }

    /// Opens the root; none if no workspace was ever made in it. A root that was named on the command line
    /// has to exist, since a misspelt one would look like an empty one.
    pub(crate) fn open_root(&self, arguments: &RootArguments) -> Result<Option<Workspaces>> {
        let workspaces = Workspaces::open_existing(&self.options)?;
        let root = &self.options.root;
        if workspaces.is_none() && arguments.root.is_some() && !root.exists() {
            let root_text = root.display();
            let hint = format!(
                "check the spelling; `carrel workspace create NAME --root {root_text}` makes it"
            );
            let message = format!("there is no root {root_text}");
            return Err(CliError::new(Code::NotFound, message).hint(hint).at(root));
        }
        Ok(workspaces)
    }

    /// Parses an identifier; the error names the root.
    pub(crate) fn identifier(&self, text: &str) -> Result<Identifier> {
        let parsed = Identifier::parse(text);
        Ok(parsed
            .map_err(|error| carrel_workspace::Error::of_identifier(error, &self.options.root))?)
    }
}

fn load_workflow(arguments: &RootArguments, environment: &Environment) -> Result<Workflow> {
    let scope = ValidationScope::WorkspaceAndHooks;
    let file = match (&arguments.config, &arguments.root) {
        (Some(file), _) => Some(file.as_path()),
        // A root that was named stands for itself; the hooks of some file nearby do not belong to it.
        (None, Some(_)) => None,
        (None, None) => Some(Path::new(DEFAULT_FILE)).filter(|file| file.exists()),
    };
    Ok(match file {
        Some(file) => Workflow::load(file, environment, scope)?,
        None => Workflow::parse(b"", Path::new(DEFAULT_FILE), environment, scope)?,
    })
}

/// Resolves `--root` like `workspace.root`, relative to the current directory.
fn root_of_command_line(value: &Path, environment: &Environment) -> Result<PathBuf> {
    let directory = std::env::current_dir().map_err(CliError::start("the current directory"))?;
    let value: &OsStr = value.as_os_str();
    let root = carrel_config::resolve_root(value, RootOrigin::CommandLine, &directory, environment)
        .map_err(|error| {
            let text = value.to_string_lossy();
            CliError::of(Code::RootRefused, &error)
                .context(format_args!("--root {text:?} cannot be used"))
                .with(json!({ "root": text }))
        })?;
    if root.relative {
        warn!("--root {value:?} is relative and means {}", root.path.display());
    }
    Ok(root.path)
}
