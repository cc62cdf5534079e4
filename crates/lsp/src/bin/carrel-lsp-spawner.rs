//! The helper process of this crate's tests: a spawner of commands.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    carrel_exec::run_helper(std::env::args_os().skip(1)).unwrap_or(ExitCode::FAILURE)
}
