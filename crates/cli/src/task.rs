//! `carrel task`: a client of `carrel serve`, here or on another machine, over its HTTP API.

mod arguments;
mod connect;
mod show;
mod steps;
mod submit;
mod watch;

use std::process::ExitCode;

pub(crate) use self::arguments::{ServerArguments, TaskCommand};
pub(crate) use self::connect::client;
use crate::error::Result;
use crate::output::Invocation;
use crate::runtime;

pub(crate) fn run(command: &TaskCommand, cli: &Invocation) -> Result<ExitCode> {
    runtime()?.block_on(async {
        match command {
            TaskCommand::Submit(arguments) => submit::run(arguments, cli).await,
            TaskCommand::Ls(arguments) => show::list(arguments, cli).await,
            TaskCommand::Show(arguments) => show::show(arguments, cli).await,
            TaskCommand::Cancel(arguments) => show::cancel(arguments, cli).await,
            TaskCommand::Watch(arguments) => watch::run(arguments, cli).await,
        }
    })
}
