//! Starting this same program once more, on its own.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use carrel_sandbox::close_on_exec;

use crate::helper::FIRST_DESCRIPTOR;

/// Starts a process that outlives this one, with no input, output or environment.
///
/// It is for the product's own maintenance only: nothing supervises it, so it must
/// end by itself, and what it runs is this program and never a user's.
#[expect(clippy::disallowed_methods, reason = "this crate starts processes for all others")]
pub fn start_detached(program: &Path, arguments: &[&OsStr]) -> io::Result<()> {
    // What the caller's shell left open, such as a lock or a pipe, is not for this process to hold.
    close_on_exec(FIRST_DESCRIPTOR..=u32::MAX)?;
    Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Out of the terminal's reach: an interrupt there is not meant for it.
        .process_group(0)
        .spawn()
        .map(drop)
}
