//! The `carrel` command.
//!
//! Data goes to stdout, everything else to stderr. With `--json` each line of
//! stderr is a JSON object, and the last one is the error when there is one.
//! Exit codes: 0 for success, 1 for an error, 2 for wrong usage; `carrel exec` ends with the status of
//! its command, with 124 when its time is over and with 125 when it did not run; `carrel task watch`
//! ends with 1 when the task does not complete, and with 130 when it is interrupted; `carrel run --once`
//! ends with 1 when an agent does not end well; `carrel try` ends with 3 when no candidate passes, and with 4 when the
//! best one is not promoted.
#![forbid(unsafe_code)]

mod arguments;
mod check;
mod code;
mod completion;
mod conductor;
mod database;
mod doctor;
mod error;
mod events;
mod exec;
mod init;
mod issue;
mod logging;
mod mcp;
mod migrate;
mod output;
mod policy;
mod profile;
mod progress;
mod run;
mod sandbox;
mod serve;
mod signals;
mod snapshot;
mod task;
mod token;
mod tool;
mod toolbox;
mod traces;
mod tries;
mod worker;
mod workspace;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use carrel_config::Environment;
use carrel_runner::Prefork;
use clap::Parser as _;
use error::{CliError, Result};
use output::{Format, Invocation};
use progress::ProgressMode;
use traces::Traces;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // Helper processes are this same program; they must not start a single thread.
    if let Some(code) = carrel_exec::run_helper(arguments.iter().skip(1).cloned()) {
        return code;
    }
    completion::answer_shell();
    let early = exec::prefork_before_parsing(&arguments);
    if let Some(parsed) = Arguments::of_exec(&arguments) {
        return dispatch(parsed, early);
    }
    match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => dispatch(parsed, early),
        Err(error) => error::report_usage(error, &arguments),
    }
}

fn dispatch(arguments: Arguments, early: Option<Prefork>) -> ExitCode {
    let early = match (&arguments.command, early) {
        (Command::Exec(_), Some(early)) => early,
        (Command::Exec(command), None) => exec::prefork(command),
        _ => Prefork::default(),
    };
    let environment = Environment::process();
    let progress = ProgressMode::of(arguments.format(), arguments.quiet, &environment);
    let cli = Invocation { format: arguments.format(), progress, environment };
    let environment = &cli.environment;
    let dashboard = run::dashboard::is_supported(environment) && cli.format == Format::Text;
    let traces = Traces::of(&arguments.command, environment);
    let logs = arguments.command.logs(dashboard);
    logging::start(&cli, arguments.verbose, logs, traces.layer());
    let export = traces.start();
    let audited = arguments.command.audited_name();
    let result = match arguments.command {
        Command::Workspace(command) => workspace::run(command, &cli),
        Command::Exec(command) => return exec::run(*command, early, &cli),
        Command::Doctor(command) => doctor::run(&command, &cli),
        Command::Mcp(command) => mcp::run(&command, environment),
        Command::Tool(command) => tool::run(&command, &cli),
        Command::Code(command) => code::run(&command, &cli),
        Command::Snapshot(command) => snapshot::run(&command, &cli),
        Command::Try(command) => tries::run(*command, &cli),
        Command::Profile(command) => profile::run(&command, &cli),
        Command::Serve(command) => serve::run(&command, environment),
        Command::Run(command) => run::run(&command, &cli),
        Command::Conductor(command) => conductor::run(&command, &cli),
        Command::Check(command) => check::run(&command, &cli),
        Command::Init(command) => init::run(&command, &cli),
        Command::Events(command) => events::run(&command, &cli),
        Command::Issue(command) => issue::run(&command, &cli),
        Command::Migrate(command) => migrate::run(&command, &cli),
        Command::Task(command) => task::run(&command, &cli),
        Command::Worker(command) => worker::run(&command, environment),
        Command::Token(command) => token::run(&command, environment),
        Command::Policy(command) => policy::run(&command, cli.format),
        Command::Completions { shell } => completion::write_script(shell),
        Command::Man { directory } => completion::write_manual(&directory),
    };
    if let Some(export) = export {
        export.finish();
    }
    if result.is_ok() {
        logging::show_held(None);
    }
    result.unwrap_or_else(|error| {
        if let Some(name) = audited {
            error.audit(name, environment);
        }
        error.report(cli.format)
    })
}

/// Returns a runtime on this thread, for commands that end.
fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(CliError::start("the runtime"))
}

/// Runs a server to its end, on a thread for each processor. The heap is shared between threads first,
/// which keeps the memory of an idle server below its budget. Threads that still block at the end, such as
/// one that reads stdin, are left behind.
fn run_server<T>(server: impl Future<Output = Result<T>>) -> Result<T> {
    carrel_sandbox::limit_malloc_arenas();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build().map_err(CliError::start("the runtime"))?;
    let ended = runtime.block_on(server);
    runtime.shutdown_background();
    ended
}
