//! `carrel workspace`: create, list, inspect, remove and clean up workspaces of a root, without a server.

mod arguments;
mod create;
mod remove;
mod settings;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use carrel_config::Environment;
use carrel_domain::{Identifier, WorkspaceKey};
use serde_json::json;

use self::arguments::KeyArguments;
pub(crate) use self::arguments::WorkspaceCommand;
use crate::error::CliError;
use crate::output::{self, Format};
use settings::Settings;

pub(crate) fn run(
    command: WorkspaceCommand,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let runtime = crate::runtime()?;
    runtime.block_on(async {
        match command {
            WorkspaceCommand::Key(arguments) => key(&arguments, format, environment),
            WorkspaceCommand::Create(arguments) => {
                create::create(arguments, format, environment).await
            }
            WorkspaceCommand::Ls(arguments) => show::list(&arguments, format, environment).await,
            WorkspaceCommand::Show(arguments) => show::show(arguments, format, environment).await,
            WorkspaceCommand::Verify(arguments) => show::verify(&arguments, format, environment),
            WorkspaceCommand::Rm(arguments) => remove::remove(arguments, format, environment).await,
            WorkspaceCommand::Gc(arguments) => remove::gc(&arguments, format, environment).await,
        }
    })
}

/// Without a root the key is what the identifier alone derives.
fn key(
    arguments: &KeyArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let identifier = Identifier::parse(&arguments.identifier)?;
    let root = &arguments.root;
    let workspaces = if root.root.is_some() || root.config.is_some() {
        Settings::load(root, environment)?.open_existing()?
    } else {
        None
    };
    let key = match workspaces {
        Some(workspaces) => workspaces.key(&identifier)?,
        None => WorkspaceKey::derive(&identifier),
    };
    match format {
        Format::Json => output::json(&json!({ "identifier": identifier, "key": key }))?,
        Format::Text => output::line(key.as_str())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The program itself, for helper processes.
pub(crate) fn own_program() -> Result<PathBuf, CliError> {
    std::env::current_exe()
        .map_err(|source| CliError::Start { doing: "this program again", source })
}
