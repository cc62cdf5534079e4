//! The code of the helper processes: blocking, single-threaded, without the server's memory.
//!
//! The spawner and its children are the same binary as the server, entered through [`run_helper`]
//! before `main` does anything else.

mod children;
mod command;
mod hook;
mod init;
mod new_cell;
mod overlay;
mod poll;
mod process_table;
mod process_tree;
mod spawner;
mod supervisor;
mod terminal;
mod usage_sampler;

use std::ffi::OsString;
use std::process::ExitCode;

/// The argument that makes the program a spawner.
pub(crate) const SPAWNER: &str = "__spawner";

/// The argument that makes the program run a hook's script after the login profile.
pub(crate) const HOOK: &str = "__hook";

/// The first descriptor that is not a standard stream.
pub(crate) const FIRST_DESCRIPTOR: u32 = 3;

const SUCCESS: u8 = 0;

const FAILURE: u8 = 1;

pub(crate) use hook::Hook;
pub(crate) use spawner::run_cell;

/// Runs the helper that the first argument names; `None` if it names none.
///
/// `arguments` exclude the program's own name. A program that starts a [`crate::Spawner`] with itself
/// calls this first thing in `main`, before it starts a thread, and exits with the returned code.
/// Processes forked by the spawner return through the same call.
pub fn run_helper(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match arguments.next()?.to_str()? {
        SPAWNER => Some(spawner::run().into()),
        HOOK => Some(hook::run()),
        _ => None,
    }
}
