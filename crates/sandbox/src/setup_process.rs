//! A process beside another one, which does one thing that takes long.
//!
//! Namespaces are one such thing. One of users also needs a first process, and only a process around it
//! may say who is who there. So the one that wants to move in makes another, describes the namespace
//! from outside, and joins it.
//!
//! To take a tree of mounts off is the other: the kernel waits until no processor looks at it any more.

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

/// The stack of a process that makes a few system calls.
const STACK_BYTES: usize = 64 << 10;

/// What it says when its task is done. Anything else is the number of an error.
const DONE: i32 = 0;

/// What such a process is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetupTask {
    /// Being in a new user namespace, and in others that it makes there.
    Namespaces(UnshareFlags),
    /// Taking off what is mounted on the root directory, with everything below it.
    OldRoot,
}

/// A process beside this one. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct SetupProcess {
    pid: Pid,
    /// Where it says whether its task is done.
    news: OwnedFd,
    /// Whether it was told to end.
    dismissed: Cell<bool>,
    /// What it uses of the memory, which must be there until it has ended.
    memory: ManuallyDrop<Memory>,
}

/// What the process uses of the memory that it shares.
#[derive(Debug)]
struct Memory {
    orders: *mut Orders,
    stack: GuardedStack,
}

impl Memory {
    fn new(orders: Orders) -> io::Result<Self> {
        let stack = GuardedStack::new(STACK_BYTES)?;
        Ok(Self { orders: Box::into_raw(Box::new(orders)), stack })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `Box::into_raw` and is freed nowhere else; whoever drops this
        // has seen to it that no process reads it any more.
        drop(unsafe { Box::from_raw(self.orders) });
    }
}

/// What the process is to do. Nobody changes it.
#[derive(Debug)]
struct Orders {
    task: SetupTask,
    /// The number of the descriptor that it writes to, in its own table.
    news: RawFd,
    /// Who it ends with.
    maker: Pid,
}

impl SetupProcess {
    /// Starts the process. The caller, which must be the only thread of its process, does something else
    /// meanwhile.
    pub(crate) fn start(task: SetupTask) -> io::Result<Self> {
        if !is_single_threaded()? {
            return Err(Errno::DEADLK.into());
        }
        let (news, told) = pipe_with(PipeFlags::CLOEXEC)?;
        let memory = Memory::new(Orders { task, news: told.as_raw_fd(), maker: getpid() })?;
        let own = match task {
            SetupTask::Namespaces(_) => libc::CLONE_NEWUSER,
            SetupTask::OldRoot => 0,
        };
        let flags = libc::CLONE_VM | libc::SIGCHLD | own;
        let (top, orders) = (memory.stack.top(), memory.orders.cast::<c_void>());
        // SAFETY: the new process shares the memory and runs at the same time, on a stack of its own.
        // It reads the orders, which nobody changes and which, like the stack, are freed only after it
        // has ended (see `drop`). It calls nothing but `obey`, which touches no other memory: no
        // allocator, no lock, and no `errno`, since its system calls are made without the C library.
        let result = unsafe { libc::clone(obey, top, flags, orders) };
        match Fork::of(result.into())? {
            Fork::Parent(pid) => {
                let memory = ManuallyDrop::new(memory);
                Ok(Self { pid, news, dismissed: Cell::new(false), memory })
            }
            Fork::Child => Err(Errno::INVAL.into()),
        }
    }

    /// Returns its process id, which no other process can have before this is dropped.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until its task is done, and fails as that did.
    pub(crate) fn done(&self) -> io::Result<()> {
        let mut said = [0; size_of::<i32>()];
        let length = rustix::io::read(&self.news, &mut said)?;
        match i32::from_ne_bytes(said) {
            // It was killed by somebody.
            _ if length < said.len() => Err(Errno::SRCH.into()),
            DONE => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Lets it end, which takes a moment. Whoever joined its namespaces keeps them.
    pub(crate) fn dismiss(&self) {
        // It is a child that has not been waited for, so the id is still its own.
        let told = self.dismissed.get() || kill_process(self.pid, Signal::KILL).is_ok();
        self.dismissed.set(told);
    }
}

impl Drop for SetupProcess {
    fn drop(&mut self) {
        self.dismiss();
        if !self.dismissed.get() {
            // This process has become a user who may not end it. It ends with this process, and uses
            // its memory until then.
            return;
        }
        // A signal that interrupts the wait changes nothing.
        while matches!(waitpid(Some(self.pid), WaitOptions::empty()), Err(Errno::INTR)) {}
        // SAFETY: the process has ended, so nobody uses the memory any more, and this is the only
        // place that drops it.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}

/// What the process does: its task. It says that it is done, and stays where it is needed.
extern "C" fn obey(orders: *mut c_void) -> i32 {
    // SAFETY: `start` passes a pointer to orders that outlive this process and that nobody changes.
    let orders = unsafe { &*orders.cast::<Orders>() };
    // Whatever happens to the maker, this process must not stay.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // It may have died before it could be asked for a signal.
    if getppid() != Some(orders.maker) {
        return 0;
    }
    let done = match orders.task {
        SetupTask::Namespaces(none) if none.is_empty() => Ok(()),
        // SAFETY: what makes the call dangerous is a descriptor table or a file system context that
        // others share; neither is shared with this process, and neither flag is among those passed.
        SetupTask::Namespaces(others) => unsafe { rustix::thread::unshare_unsafe(others) },
        SetupTask::OldRoot => rustix::mount::unmount(c"/", UnmountFlags::DETACH),
    };
    let said = done.map_or_else(Errno::raw_os_error, |()| DONE);
    // SAFETY: the descriptor is open in this process's own table, of which nothing is ever closed.
    let news = unsafe { BorrowedFd::borrow_raw(orders.news) };
    // The maker finds out by itself if it hears nothing: the pipe closes when this process ends.
    let _ = rustix::io::write(news, &said.to_ne_bytes());
    match orders.task {
        SetupTask::Namespaces(_) => loop {
            pause();
        },
        SetupTask::OldRoot => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_is_refused() {
        // The test harness runs every test on a thread of its own.
        let error = SetupProcess::start(SetupTask::OldRoot).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::DEADLK.raw_os_error()));
    }
}
