//! A short-lived process that does one slow step of a cell's setup while its parent does others.
//!
//! Two steps are worth a process of their own. Creating namespaces takes longer than anything else
//! about a cell, and a user namespace needs a first process whose id maps only a process outside may
//! write: so the process that is to move in starts another one, writes its maps from outside and joins
//! its namespaces. Detaching the old root blocks until no processor uses the mount tree any more, and
//! overlaps with installing the seccomp filter. Together with the prebuilt root directory this brought
//! `carrel exec -- true` from 1.17 to 1.05 times the time of bubblewrap.
//!
//! The process shares the memory of its parent (`CLONE_VM`) and runs at the same time, on a stack of its
//! own. It reads one immutable request and makes system calls without the C library: no allocator, no
//! lock, no `errno`. Its result arrives as an error number through a pipe.
//!
//! It never outlives its parent: the kernel kills it when the parent dies, and dropping
//! [`SetupProcess`] kills it and waits, because its stack and request must not be freed before.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::pause;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal,
    waitpid,
};
use rustix::thread::UnshareFlags;

use crate::fork::{Fork, GuardedStack, is_single_threaded};

/// Enough for a few system calls.
const STACK_BYTES: usize = 64 << 10;

/// The result of a task that succeeded. Any other value is an error number.
const SUCCESS: i32 = 0;

#[derive(Clone, Copy, Debug)]
pub(crate) enum SetupTask {
    /// Hold a new user namespace, and these others created in it, until killed.
    HoldNamespaces(UnshareFlags),
    /// Detach the mount on top of the root directory, with everything below it.
    DetachOldRoot,
}

/// A running setup process. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct SetupProcess {
    pid: Pid,
    result: OwnedFd,
    killed: Cell<bool>,
    /// Freed only after the process has ended.
    memory: ManuallyDrop<SharedMemory>,
}

/// The memory that the process uses besides its program.
#[derive(Debug)]
struct SharedMemory {
    request: *mut SetupRequest,
    stack: GuardedStack,
}

impl SharedMemory {
    fn new(request: SetupRequest) -> io::Result<Self> {
        let stack = GuardedStack::new(STACK_BYTES)?;
        Ok(Self { request: Box::into_raw(Box::new(request)), stack })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `Box::into_raw` and is freed nowhere else; the owner drops
        // this value only when no process reads it any more.
        drop(unsafe { Box::from_raw(self.request) });
    }
}

/// Written once before the process starts, read-only afterwards.
#[derive(Debug)]
struct SetupRequest {
    task: SetupTask,
    /// The writing end of the result pipe, by its number in the process's own descriptor table.
    result: RawFd,
    parent: Pid,
}

impl SetupProcess {
    /// Starts the process. A caller with more than one thread gets `EDEADLK`.
    pub(crate) fn start(task: SetupTask) -> io::Result<Self> {
        if !is_single_threaded()? {
            return Err(Errno::DEADLK.into());
        }
        let (result, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let request = SetupRequest { task, result: writer.as_raw_fd(), parent: getpid() };
        let memory = SharedMemory::new(request)?;
        let own = match task {
            SetupTask::HoldNamespaces(_) => libc::CLONE_NEWUSER,
            SetupTask::DetachOldRoot => 0,
        };
        let flags = libc::CLONE_VM | libc::SIGCHLD | own;
        let top = memory.stack.top();
        let request = memory.request.cast::<c_void>();
        // SAFETY: the new process shares the memory and runs at the same time, on a stack of its own.
        // It reads the request, which is never written again and which, like the stack, is freed only
        // after it has ended (see `drop`). It calls nothing but `setup_main`, which touches no other
        // memory: no allocator, no lock, and no `errno`, since its system calls are made without the C
        // library.
        let cloned = unsafe { libc::clone(setup_main, top, flags, request) };
        match Fork::of(cloned.into())? {
            Fork::Parent(pid) => {
                let memory = ManuallyDrop::new(memory);
                Ok(Self { pid, result, killed: Cell::new(false), memory })
            }
            Fork::Child => Err(Errno::INVAL.into()),
        }
    }

    /// Returns the process id, which is not reused before this value is dropped.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until the task is done, and returns its error if it failed.
    pub(crate) fn wait_for_task(&self) -> io::Result<()> {
        let mut received = [0; size_of::<i32>()];
        let length = rustix::io::read(&self.result, &mut received)?;
        match i32::from_ne_bytes(received) {
            // The process was killed before it could report.
            _ if length < received.len() => Err(Errno::SRCH.into()),
            SUCCESS => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Kills the process without waiting for its end. Processes that joined its namespaces keep them.
    pub(crate) fn kill(&self) {
        // It is a child that has not been waited for, so the id is still its own.
        let killed = self.killed.get() || kill_process(self.pid, Signal::KILL).is_ok();
        self.killed.set(killed);
    }
}

impl Drop for SetupProcess {
    fn drop(&mut self) {
        self.kill();
        if !self.killed.get() {
            // This process has become a user who may not kill it. The setup process ends together
            // with this process and uses its memory until then, so nothing is freed.
            return;
        }
        // A signal that interrupts the wait changes nothing.
        while matches!(waitpid(Some(self.pid), WaitOptions::empty()), Err(Errno::INTR)) {}
        // SAFETY: the process has ended, so nothing uses the memory any more, and this is the only
        // place that drops it.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}

/// The main function of the process: runs the task, reports its result, and stays if namespaces are to
/// be held.
extern "C" fn setup_main(request: *mut c_void) -> i32 {
    // SAFETY: `start` passes a pointer to a request that outlives this process and is never written.
    let request = unsafe { &*request.cast::<SetupRequest>() };
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The parent may have died before the signal was requested.
    if getppid() != Some(request.parent) {
        return 0;
    }
    let outcome = match request.task {
        SetupTask::HoldNamespaces(none) if none.is_empty() => Ok(()),
        // SAFETY: what makes the call dangerous is a descriptor table or a file system context that
        // is shared with others; neither is shared with this process, and neither flag is passed.
        SetupTask::HoldNamespaces(others) => unsafe { rustix::thread::unshare_unsafe(others) },
        SetupTask::DetachOldRoot => rustix::mount::unmount(c"/", UnmountFlags::DETACH),
    };
    let errno = outcome.map_or_else(Errno::raw_os_error, |()| SUCCESS);
    // SAFETY: the descriptor is open in this process's own table, of which nothing is ever closed.
    let result = unsafe { BorrowedFd::borrow_raw(request.result) };
    // If this fails, the parent reads the end of the pipe when this process ends.
    let _ = rustix::io::write(result, &errno.to_ne_bytes());
    match request.task {
        SetupTask::HoldNamespaces(_) => loop {
            pause();
        },
        SetupTask::DetachOldRoot => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_is_refused() {
        // The test harness runs every test on a thread of its own.
        let error = SetupProcess::start(SetupTask::DetachOldRoot).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::DEADLK.raw_os_error()));
    }
}
