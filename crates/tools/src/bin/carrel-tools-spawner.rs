//! The spawner with which the tests of this crate start commands.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    carrel_exec::run_helper(std::env::args_os().skip(1)).unwrap_or(ExitCode::FAILURE)
}
