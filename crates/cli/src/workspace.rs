//! `carrel workspace`: create, list, inspect, remove, restore and clean up workspaces of a root, without a server.

mod arguments;
mod change_list;
mod create;
mod fork;
mod kept;
mod remove;
mod settings;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use carrel_domain::{Code, Identifier, WorkspaceKey};
use carrel_workspace::Workspaces;
use serde_json::json;

use self::arguments::IdentifierArguments;
pub(crate) use self::arguments::{RootArguments, WorkspaceCommand};
pub(crate) use self::remove::sweep_in_background;
pub(crate) use self::settings::Settings;
use crate::error::{CliError, Result};
use crate::output::{self, Invocation};

pub(crate) fn run(command: WorkspaceCommand, cli: &Invocation) -> Result<ExitCode> {
    crate::runtime()?.block_on(async {
        match command {
            WorkspaceCommand::Key(arguments) => key(&arguments, cli),
            WorkspaceCommand::Create(arguments) => create::create(arguments, cli).await,
            WorkspaceCommand::Ls(arguments) if arguments.kept => kept::list(&arguments, cli).await,
            WorkspaceCommand::Ls(arguments) => show::list(&arguments, cli).await,
            WorkspaceCommand::Show(arguments) => show::show(&arguments, cli).await,
            WorkspaceCommand::Verify(arguments) => show::verify(&arguments, cli),
            WorkspaceCommand::Rm(arguments) => remove::remove(arguments, cli).await,
            WorkspaceCommand::Fork(arguments) => fork::fork(arguments, cli).await,
            WorkspaceCommand::Diff(arguments) => fork::diff(arguments, cli).await,
            WorkspaceCommand::Rebase(arguments) => Box::pin(fork::rebase(arguments, cli)).await,
            WorkspaceCommand::Promote(arguments) => Box::pin(fork::promote(arguments, cli)).await,
            WorkspaceCommand::Restore(arguments) => kept::restore(arguments, cli).await,
            WorkspaceCommand::Drop(arguments) => kept::drop(arguments, cli).await,
            WorkspaceCommand::Gc(arguments) => remove::gc(&arguments, cli).await,
        }
    })
}

/// Without a root the key is what the identifier alone derives.
fn key(arguments: &IdentifierArguments, cli: &Invocation) -> Result<ExitCode> {
    let identifier =
        Identifier::parse(&arguments.identifier).map_err(carrel_workspace::Error::from)?;
    let root = &arguments.root;
    let workspaces = if root.root.is_some() || root.config.is_some() {
        Workspaces::open_existing(&Settings::load(root, &cli.environment)?.options)?
    } else {
        None
    };
    let key = match workspaces {
        Some(workspaces) => workspaces.key(&identifier)?,
        None => WorkspaceKey::derive(&identifier),
    };
    cli.print(&json!({ "identifier": identifier, "key": key }), || output::line(key.as_str()))
}

/// The program itself, for helper processes.
pub(crate) fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(CliError::start("this program again"))
}

/// Fails a command that has printed everything and has to end with 1 nevertheless.
fn fail_if_any(count: usize, code: Code, failed: &str) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    Err(CliError::new(code, format!("{failed}: {count}")).with(json!({ "count": count })))
}
