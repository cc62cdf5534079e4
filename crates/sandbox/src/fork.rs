//! Forking: a plain `fork` for processes with one thread, and a `vfork` with a stack of its own.
//!
//! Both refuse a caller with several threads with `EDEADLK`, because locks that another thread holds
//! would stay locked in the child. With that check the child may run any code, not only functions that
//! are async-signal-safe.

use std::ffi::c_void;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Pid;

/// The side of a [`fork`] on which the calling code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The caller, with the process id of its new child.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks the calling process.
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
    Fork::of(result.into())
}

impl Fork {
    /// Interprets the return value of `fork` or `clone`; a negative one takes the error from `errno`.
    pub(crate) fn of(result: i64) -> io::Result<Self> {
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let pid = i32::try_from(result).ok().and_then(Pid::from_raw);
        Ok(pid.map_or(Self::Child, Self::Parent))
    }
}

/// The stack of a [`VforkStack`]. The code that runs there calls a few levels deep and has no
/// recursion; a shallow call uses about a hundredth of this.
const VFORK_STACK_BYTES: usize = 1 << 20;

/// Unmapped bytes below a stack, so that an overflow ends the process instead of overwriting other
/// memory.
const GUARD_BYTES: usize = 1 << 16;

/// A mapping for a stack with a guard page range at its lower end.
#[derive(Debug)]
pub(crate) struct GuardedStack {
    start: *mut c_void,
    length: usize,
}

impl GuardedStack {
    /// Maps a stack of `bytes`, which must be a multiple of the page size.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let length = GUARD_BYTES + bytes;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { start, length };
        // SAFETY: the range is the beginning of the mapping, which nothing refers to.
        if unsafe { libc::mprotect(start, GUARD_BYTES, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }

    pub(crate) fn top(&self) -> *mut c_void {
        self.start.wrapping_byte_add(self.length)
    }
}

impl Drop for GuardedStack {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing runs on it any more.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// A stack on which children of `vfork` run, mapped before it is needed.
///
/// A supervisor maps it while it waits, so that starting a command takes one `clone` and one `execve`.
#[derive(Debug)]
pub struct VforkStack(GuardedStack);

impl VforkStack {
    /// Maps the stack. A process with more than one thread is refused with `EDEADLK`.
    pub fn prepare() -> io::Result<Self> {
        if !is_single_threaded()? {
            return Err(Errno::DEADLK.into());
        }
        GuardedStack::new(VFORK_STACK_BYTES).map(Self)
    }

    /// Runs `work` in a new process that uses this one's memory, and returns its id when it has
    /// executed a program or has ended with the status that `work` returns.
    ///
    /// No page table is copied and the parent is suspended meanwhile, which makes this much cheaper than
    /// [`fork`]. Descriptors, credentials, limits and signals of the new process are its own. Changes
    /// that `work` makes to memory stay in the parent.
    pub fn vfork(&mut self, mut work: impl FnMut() -> u8) -> io::Result<Pid> {
        let mut work: &mut dyn FnMut() -> u8 = &mut work;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the new process runs on a stack of its own, which is aligned to a page, outlives the
        // call and is used by nothing else meanwhile, since it is borrowed exclusively. The kernel lets
        // the calling thread go on only when the new process has given the memory back, so at any
        // moment one of them uses it, as if `work` had been called here by this thread: no reference is
        // used from two places, and what it points to outlives the call.
        let result = unsafe {
            libc::clone(vfork_main, self.0.top(), flags, (&raw mut work).cast::<c_void>())
        };
        match Fork::of(result.into())? {
            Fork::Parent(pid) => Ok(pid),
            Fork::Child => Err(Errno::INVAL.into()),
        }
    }
}

/// The status of a process whose work panicked.
pub(crate) const PANICKED: i32 = 101;

/// The main function of a `vfork` child. Returning from it ends the process.
extern "C" fn vfork_main(work: *mut c_void) -> i32 {
    // SAFETY: `VforkStack::vfork` passes a pointer to a reference of this type, which nothing else uses until
    // this process has ended or executed a program.
    let work = unsafe { &mut *work.cast::<&mut dyn FnMut() -> u8>() };
    panic::catch_unwind(AssertUnwindSafe(work)).map_or(PANICKED, i32::from)
}

/// Returns whether the process has one thread, by the link count of `/proc/self/task`: itself, its
/// parent, and one for each thread. That takes one system call; reading the directory would take four.
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
