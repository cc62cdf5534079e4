//! Copying the calling process.

use std::io;

use rustix::io::Errno;
use rustix::process::Pid;

/// Which of the two processes this is after a [`fork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The caller, with the process id of its new child.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Copies the calling process.
///
/// A process with more than one thread is refused with `EDEADLK`: its copy would have a single
/// thread and could wait forever for a lock that a missing one holds.
pub fn fork() -> io::Result<Fork> {
    if !is_single_threaded()? {
        return Err(Errno::DEADLK.into());
    }
    // SAFETY: the calling thread is the only one, as just checked, and only it could start another.
    // So no lock is held elsewhere and the memory that the child gets is in a consistent state,
    // which is what makes it correct for the child to run any code, not just async-signal-safe
    // functions.
    let result = unsafe { libc::fork() };
    match Pid::from_raw(result) {
        None => Ok(Fork::Child),
        Some(pid) if result > 0 => Ok(Fork::Parent(pid)),
        Some(_) => Err(io::Error::last_os_error()),
    }
}

/// Counts threads by the links of their directory: itself, its parent, and one for each thread.
/// That takes one system call; reading the directory would take four.
pub(crate) fn is_single_threaded() -> io::Result<bool> {
    Ok(rustix::fs::stat("/proc/self/task")?.st_nlink == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_is_refused() {
        // The test harness runs every test on a thread of its own.
        let error = fork().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::DEADLK.raw_os_error()));
    }
}
