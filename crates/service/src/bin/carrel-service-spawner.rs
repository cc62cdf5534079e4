//! The spawner process of this crate's tests, which have no `carrel` binary to start as one.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    carrel_exec::run_helper(std::env::args_os().skip(1)).unwrap_or(ExitCode::FAILURE)
}
