//! What runs in the helper processes: blocking, single-threaded, without the server's memory.

mod children;
mod command;
mod hook;
mod init;
mod proc;
mod ready;
mod sample;
mod spawner;
mod supervise;
mod terminal;
mod tree;

use std::ffi::OsString;
use std::process::ExitCode;

/// The argument that makes the program a spawner.
pub(crate) const SPAWNER: &str = "__spawner";

/// The argument that makes the program the last step of a login shell that runs a hook.
pub(crate) const HOOK: &str = "__hook";

/// The first descriptor that is not a standard stream.
pub(crate) const FIRST_DESCRIPTOR: u32 = 3;

/// The status of a helper that did what it was for.
const SUCCESS: u8 = 0;

/// The status of one that could not.
const FAILURE: u8 = 1;

pub(crate) use hook::Hook;
pub(crate) use spawner::run_cell;

/// Runs the helper that the arguments name; none when they name none.
///
/// `arguments` are those after the program's own name. A program that starts a [`crate::Spawner`]
/// with itself calls this first thing in `main`, before it starts a thread, and returns what it
/// gets. Processes forked by the spawner return through the same call.
pub fn run_helper(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match arguments.next()?.to_str()? {
        SPAWNER => Some(spawner::run().into()),
        HOOK => Some(hook::run()),
        _ => None,
    }
}
