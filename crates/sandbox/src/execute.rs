//! Becoming another program, and starting one.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::process::Pid;
use rustix::stdio::{dup2_stdin, dup2_stdout};

use crate::fork::{Fork, fork};

/// Replaces the program of the calling process. Returns only if that fails.
///
/// Nothing but the file that is named is tried: one that is no program is not handed to a shell.
pub fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: the path ends in a zero, and both lists are of strings that end in one, outlive the
    // call and are followed by a null pointer.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// The status of a process that could not become its program.
const NOT_EXECUTED: i32 = 127;

/// Starts a program with an empty environment and the caller's stderr, and does not wait until it runs.
/// If it cannot, it ends at once.
///
/// As with [`fork`], the caller must be the only thread.
pub fn launch(
    program: &CStr,
    arguments: &[CString],
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
) -> io::Result<Pid> {
    match fork()? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => {
            if dup2_stdin(stdin).and_then(|()| dup2_stdout(stdout)).is_ok() {
                execute(program, arguments, &[]);
            }
            // SAFETY: the call ends the process and takes a number. Nothing that the caller has begun
            // is finished here, which is the caller's own to do.
            unsafe { libc::_exit(NOT_EXECUTED) }
        }
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}
