//! The helper process of this crate's tests: a spawner of commands, and a tool relay for their agents.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use carrel_agent::relay;
use carrel_config::{Environment, environment};

fn main() -> ExitCode {
    if let Some(code) = carrel_exec::run_helper(std::env::args_os().skip(1)) {
        return code;
    }
    let variables = Environment::process();
    match variables.get(environment::CARREL_TOOLS).map(|socket| relay(Path::new(socket))) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) | None => ExitCode::FAILURE,
    }
}
