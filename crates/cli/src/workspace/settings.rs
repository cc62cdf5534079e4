//! The root and the hooks of `carrel workspace`: from the command line, the workflow file and the
//! environment, in that order.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use carrel_config::{Environment, RootOrigin, ValidationScope, Workflow};
use carrel_domain::{Code, Identifier};
use carrel_exec::LazySpawner;
use carrel_runner::SandboxedHooks;
use carrel_workspace::{Hooks, RootOptions};
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
        Ok(Self { options, hooks })
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
