//! Signals of supervisors, which read them from a descriptor, and of commands, which start with default
//! dispositions and nothing blocked.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::Signal;

/// The highest signal number of Linux on every architecture Carrel runs on.
const LAST_SIGNAL: i32 = 64;

/// The size of one record read from a signal descriptor.
const RECORD_BYTES: usize = size_of::<libc::signalfd_siginfo>();

/// Records read at once. A standard signal is pending at most once, so this is rarely filled.
const RECORDS_AT_ONCE: usize = 4;

/// A signal descriptor: signals stay pending until they are read instead of interrupting the process.
#[derive(Debug)]
pub struct SignalQueue(OwnedFd);

impl SignalQueue {
    /// Blocks every signal for the calling thread and queues the given ones.
    ///
    /// Signals that are not given stay pending without effect; only signals that cannot be blocked
    /// still act. A copy made by `fork` reads the signals of the process that reads.
    pub fn block_all_except_reading(signals: &[Signal]) -> io::Result<Self> {
        set_mask(&filled())?;
        let watched = set_of(signals);
        // SAFETY: the first argument asks for a new descriptor and `watched` is an initialised set
        // that outlives the call.
        let descriptor = unsafe {
            libc::signalfd(-1, &raw const watched, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just made this descriptor for this call; nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Reads the pending signals without blocking.
    pub fn take(&self) -> io::Result<Vec<Signal>> {
        let mut records = [0; RECORD_BYTES * RECORDS_AT_ONCE];
        let length = match rustix::io::read(&self.0, &mut records) {
            Ok(length) => length,
            Err(Errno::AGAIN) => 0,
            Err(errno) => return Err(errno.into()),
        };
        Ok(records[..length].chunks_exact(RECORD_BYTES).filter_map(signal_of).collect())
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads the signal number, which a record begins with.
fn signal_of(record: &[u8]) -> Option<Signal> {
    let number = u32::from_ne_bytes(*record.first_chunk()?);
    Signal::from_named_raw(number.try_into().ok()?)
}

/// Unblocks every signal, which is the state that programs expect at their start.
pub fn unblock_all_signals() -> io::Result<()> {
    set_mask(&set_of(&[]))
}

/// Gives every signal its default disposition.
///
/// Handlers do not survive an `exec` but ignored signals do, and the process that started Carrel may
/// have ignored some.
pub fn restore_default_dispositions() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: the default action runs no code of this process. The kernel and the C library
        // refuse the few signals that cannot be changed, which leaves them as they are.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn set_mask(set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `set` is an initialised set, and a null pointer says that the old mask is not wanted.
    let errno = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, ptr::null_mut()) };
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

fn filled() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is valid for writing a set, which is all the function does.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: `sigfillset` initialises the whole set and fails only for a bad pointer.
    unsafe { set.assume_init() }
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is valid for writing a set, which is all the function does.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: the set was initialised above, and a `Signal` is a number that fits the set.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal.as_raw()) };
    }
    // SAFETY: `sigemptyset` initialises the whole set and fails only for a bad pointer.
    unsafe { set.assume_init() }
}

/// Sends a signal to the process group whose leader the pidfd refers to, even if the leader has ended.
///
/// The kernel signals all members at once, so a member cannot escape by forking. A group of a later
/// process with the same id is never signalled. Kernels before 6.9 answer `EINVAL`, and a group without
/// members `ESRCH`.
pub fn signal_process_group(leader: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    /// `PIDFD_SIGNAL_PROCESS_GROUP` of `linux/pidfd.h`.
    const PROCESS_GROUP: libc::c_uint = 1 << 2;
    // SAFETY: the call takes three integers and a null pointer, which stands for the default
    // information about the sender. The descriptor is borrowed for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            leader.as_raw_fd(),
            signal.as_raw(),
            ptr::null::<libc::siginfo_t>(),
            PROCESS_GROUP,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_read_once_and_does_not_act() {
        let queue = SignalQueue::block_all_except_reading(&[Signal::USR2]).unwrap();
        assert_eq!(queue.take().unwrap(), []);
        // SAFETY: the call sends a signal to this thread, which has just blocked it.
        unsafe { libc::raise(Signal::USR2.as_raw()) };
        assert_eq!(queue.take().unwrap(), [Signal::USR2]);
        assert_eq!(queue.take().unwrap(), []);
    }
}
