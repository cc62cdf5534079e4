//! Starts this program once more, detached, for maintenance.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use carrel_sandbox::close_on_exec;

use crate::helper::FIRST_DESCRIPTOR;

/// Starts a process that outlives this one, with no input, output or environment.
///
/// Only for this program's own maintenance: nothing supervises the process, so it must end by itself,
/// and it must never run a user's program.
#[expect(clippy::disallowed_methods, reason = "this crate starts processes for all others")]
pub fn start_detached(program: &Path, arguments: &[&OsStr]) -> io::Result<()> {
    // The process must not keep a lock or a pipe of the caller's shell open.
    close_on_exec(FIRST_DESCRIPTOR..=u32::MAX)?;
    Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // An interrupt at the caller's terminal is not meant for it.
        .process_group(0)
        .spawn()
        .map(drop)
}
