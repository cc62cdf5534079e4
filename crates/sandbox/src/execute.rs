//! Executing a program by its exact path.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::ptr;

/// Replaces the program of the calling process. Returns only if that fails.
///
/// Only the named file is tried: there is no search in `PATH`, and a file without an executable format
/// is not handed to a shell.
pub fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let arguments = pointers(arguments);
    let environment = pointers(environment);
    // SAFETY: the path ends in a zero, and both lists are of strings that end in one, outlive the
    // call and are followed by a null pointer.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}
