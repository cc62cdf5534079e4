//! `carrel task`: a client of `carrel serve`, here or on another machine, over its HTTP API.

mod arguments;
mod connect;
mod show;
mod steps;
mod submit;
mod watch;

use std::process::ExitCode;

use carrel_config::Environment;

pub(crate) use self::arguments::{ServerArguments, TaskCommand};
pub(crate) use self::connect::client;
use crate::error::CliError;
use crate::output::Format;
use crate::runtime;

pub(crate) fn run(
    command: &TaskCommand,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    runtime()?.block_on(async {
        match command {
            TaskCommand::Submit(arguments) => submit::run(arguments, format, environment).await,
            TaskCommand::Ls(arguments) => show::list(arguments, format, environment).await,
            TaskCommand::Show(arguments) => show::show(arguments, format, environment).await,
            TaskCommand::Cancel(arguments) => show::cancel(arguments, format, environment).await,
            TaskCommand::Watch(arguments) => watch::run(arguments, format, environment).await,
        }
    })
}
