//! Copying the calling process.

use std::ffi::c_void;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

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
    Fork::of(result.into())
}

impl Fork {
    /// Reads what the kernel answers to each of the two.
    pub(crate) fn of(result: i64) -> io::Result<Self> {
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let pid = i32::try_from(result).ok().and_then(Pid::from_raw);
        Ok(pid.map_or(Self::Child, Self::Parent))
    }
}

/// The stack of a process that borrows memory. What runs there calls a few levels deep and has no
/// recursion; a shallow call uses about a hundredth of this.
const BORROWED_STACK_BYTES: usize = 1 << 20;

/// What lies below a stack, so that one that grows too far ends its process instead of writing to
/// memory that is something else.
const GUARD_BYTES: usize = 1 << 16;

/// A stack with a guard.
#[derive(Debug)]
pub(crate) struct GuardedStack {
    start: *mut c_void,
    length: usize,
}

impl GuardedStack {
    /// Makes a stack of so many bytes, a multiple of the size of a page.
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

/// What it takes to lend this process's memory to another one, made before it is needed.
#[derive(Debug)]
pub struct VforkStack(GuardedStack);

impl VforkStack {
    /// Gets ready. A process with more than one thread is refused with `EDEADLK`.
    pub fn prepare() -> io::Result<Self> {
        if !is_single_threaded()? {
            return Err(Errno::DEADLK.into());
        }
        GuardedStack::new(BORROWED_STACK_BYTES).map(Self)
    }

    /// Runs `work` in a new process that borrows this one's memory, and returns its id when it has
    /// executed a program or has ended with the status that `work` returns.
    ///
    /// Nothing is copied and nobody is scheduled in between, which makes this much cheaper than
    /// [`fork`]. Descriptors, credentials, limits and signals of the new process are its own. What
    /// `work` does to memory stays done.
    pub fn vfork(&mut self, mut work: impl FnMut() -> u8) -> io::Result<Pid> {
        let mut work: &mut dyn FnMut() -> u8 = &mut work;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the new process runs on a stack of its own, which is aligned to a page, outlives the
        // call and is used by nobody else meanwhile, since it is borrowed exclusively. The kernel lets
        // the calling thread go on only when the new process has given the memory back, so at any
        // moment one of them uses it, as if `work` had been called here by this thread: no reference is
        // used from two places, and what it points to outlives the call.
        let result =
            unsafe { libc::clone(borrow, self.0.top(), flags, (&raw mut work).cast::<c_void>()) };
        match Fork::of(result.into())? {
            Fork::Parent(pid) => Ok(pid),
            Fork::Child => Err(Errno::INVAL.into()),
        }
    }
}

/// The status of a process whose work panicked.
pub(crate) const PANICKED: i32 = 101;

/// What a process that borrows memory begins with. Returning ends it.
extern "C" fn borrow(work: *mut c_void) -> i32 {
    // SAFETY: `VforkStack::vfork` passes a pointer to a reference of this type, which nothing else uses until
    // this process has ended or executed a program.
    let work = unsafe { &mut *work.cast::<&mut dyn FnMut() -> u8>() };
    panic::catch_unwind(AssertUnwindSafe(work)).map_or(PANICKED, i32::from)
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
