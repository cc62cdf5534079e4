//! The `carrel` command.
//!
//! Data goes to stdout, everything else to stderr. With `--json` each line of
//! stderr is a JSON object, and the last one is the error when there is one.
//! Exit codes: 0 for success, 1 for an error, 2 for wrong usage; `carrel exec` ends with the status of
//! its command, with 124 when its time is over and with 125 when it did not run; `carrel task watch`
//! ends with 1 when the task does not complete, and with 130 when it is interrupted; `carrel run --once`
//! ends with 1 when an agent does not end well.
#![forbid(unsafe_code)]

mod arguments;
mod check;
mod conductor;
mod database;
mod doctor;
mod error;
mod exec;
mod issue;
mod logging;
mod mcp;
mod migrate;
mod output;
mod policy;
mod profile;
mod run;
mod sandbox;
mod serve;
mod task;
mod token;
mod tool;
mod toolbox;
mod traces;
mod worker;
mod workspace;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use carrel_config::Environment;
use carrel_runner::Prefork;
use clap::{CommandFactory, Parser};
use error::CliError;
use output::Format;
use traces::Traces;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // Helper processes are this same program; they must not start a single thread.
    if let Some(code) = carrel_exec::run_helper(arguments.iter().skip(1).cloned()) {
        return code;
    }
    let early = exec::prefork_before_parsing(&arguments);
    if let Some(parsed) = Arguments::of_exec(&arguments) {
        return dispatch(parsed, early);
    }
    match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => dispatch(parsed, early),
        Err(error) => error::report_usage(&error, &arguments),
    }
}

fn dispatch(arguments: Arguments, early: Option<Prefork>) -> ExitCode {
    let early = match (&arguments.command, early) {
        (Command::Exec(_), Some(early)) => early,
        (Command::Exec(command), None) => exec::prefork(command),
        _ => Prefork::default(),
    };
    let environment = Environment::process();
    let format = arguments.format();
    let dashboard = run::dashboard::is_supported(&environment) && format == Format::Text;
    let traces = Traces::of(&arguments.command, &environment);
    let logs = arguments.command.logs(dashboard);
    logging::start(format, arguments.verbose, &environment, logs, traces.layer());
    let export = traces.start();
    let result = match arguments.command {
        Command::Workspace(command) => workspace::run(command, format, &environment),
        Command::Exec(command) => return exec::run(*command, early, format, &environment),
        Command::Doctor(command) => doctor::run(&command, format, &environment),
        Command::Mcp(command) => mcp::run(&command, &environment),
        Command::Tool(command) => tool::run(&command, format, &environment),
        Command::Profile(command) => profile::run(&command, format, &environment),
        Command::Serve(command) => serve::run(&command, &environment),
        Command::Run(command) => run::run(&command, format, &environment),
        Command::Conductor(command) => conductor::run(&command, format, &environment),
        Command::Check(command) => check::run(&command, format, &environment),
        Command::Issue(command) => issue::run(&command, format, &environment),
        Command::Migrate(command) => migrate::run(&command, format, &environment),
        Command::Task(command) => task::run(&command, format, &environment),
        Command::Worker(command) => worker::run(&command, &environment),
        Command::Token(command) => token::run(&command, &environment),
        Command::Policy(command) => policy::run(&command, format),
        Command::Completions { shell } => write_completions(shell),
    };
    if let Some(export) = export {
        export.finish();
    }
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(format),
    }
}

fn write_completions(shell: clap_complete::Shell) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::<Command>::command(), "carrel", &mut script);
    output::write(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a runtime on this thread, for commands that end.
fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let made = tokio::runtime::Builder::new_current_thread().enable_all().build();
    made.map_err(|source| CliError::Start { doing: "the runtime", source })
}

/// Returns a runtime with a thread for each processor, for servers. The heap is shared between threads
/// first, which keeps the memory of an idle server below its budget.
fn server_runtime() -> Result<tokio::runtime::Runtime, CliError> {
    carrel_sandbox::limit_malloc_arenas();
    let made = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    made.map_err(|source| CliError::Start { doing: "the runtime", source })
}
