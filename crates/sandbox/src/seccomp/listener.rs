//! The listener: receives reports of denied system calls and responds with their error numbers.
//!
//! The kernel suspends a caller whose rule says [`Notify`](super::action::SeccompAction::Notify) and makes the listener's
//! descriptor readable. Responding takes two `ioctl`s, receive and send. The response is always an error
//! number: letting a call continue would be unsafe, because the caller's other threads could change its
//! arguments in memory between the check and the call.
//!
//! A caller that is killed in between makes the second `ioctl` fail with `ENOENT`; its call is then not
//! recorded. If the supervisor dies, the descriptor closes and pending calls fail with `ENOSYS`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::action::Errno;
use super::syscall::Architecture;
use super::{SeccompFilter, call_detail};

/// Spare space for newer kernels with larger structures, in words of eight bytes.
const SPARE_WORDS: usize = 32;

/// A system call that the filter denied and reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedCall {
    /// The name of the call.
    pub call: String,
    /// The most significant argument, such as `AF_INET` or `CLONE_NEWUSER`.
    pub detail: Option<String>,
    /// The error number that the caller got.
    pub errno: i32,
    /// The calling thread's id in the process namespace of the listener; zero if it is not visible there.
    pub pid: u32,
    /// The number of such calls; each report is one.
    pub count: u64,
}

/// The descriptor on which the kernel reports denied calls.
///
/// It is readable while a caller waits for a response, and hung up once no process is left that the
/// filter applies to. Every reported caller waits until there is a response or it is killed.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Denies one waiting call and returns it. Returns `None` if no call waits or if its caller has ended.
    ///
    /// The call gets the error number of the rule of `filter` that matches it, or `EPERM` if there is
    /// none; it never continues. This does not block, provided that no copy of the
    /// descriptor is read elsewhere at the same time: receiving would block when nothing is there,
    /// even with a non-blocking descriptor, but it takes from a counter that the kernel raises
    /// with each report and that only a receiver lowers. After a report was seen, receiving at
    /// worst finds that its caller was killed.
    pub fn deny_pending(&mut self, filter: &SeccompFilter) -> io::Result<Option<DeniedCall>> {
        if !self.is_readable()? {
            return Ok(None);
        }
        let Some(report) = self.receive()? else { return Ok(None) };
        let refused = DeniedCall::new(&report, filter);
        Ok(self.send(report.id, refused.errno)?.then_some(refused))
    }

    fn is_readable(&self) -> io::Result<bool> {
        let mut descriptors = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(_) => Ok(descriptors[0].revents().contains(PollFlags::IN)),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn receive(&self) -> io::Result<Option<libc::seccomp_notif>> {
        check_sizes()?;
        let mut buffer = Padded::new(NO_REPORT);
        // SAFETY: the kernel writes its structure to the pointer, which is valid for as many bytes
        // as `check_sizes` compared with the kernel's size, and which holds zeros as it demands.
        // The letter in the request belongs to seccomp alone, so a descriptor of any other kind
        // refuses it.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut buffer)
        };
        Ok(unless_gone(result)?.then_some(buffer.value))
    }

    pub(super) fn send(&self, id: u64, errno: i32) -> io::Result<bool> {
        check_sizes()?;
        let response = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 };
        let mut buffer = Padded::new(response);
        // SAFETY: the kernel reads its structure from the pointer, which is valid for as many bytes
        // as `check_sizes` compared with the kernel's size. The letter in the request belongs to
        // seccomp alone, so a descriptor of any other kind refuses it.
        let result = unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut buffer)
        };
        unless_gone(result)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Wraps the descriptor of a listener that another process sent.
impl From<OwnedFd> for Listener {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> Self {
        listener.0
    }
}

impl DeniedCall {
    fn new(report: &libc::seccomp_notif, filter: &SeccompFilter) -> Self {
        let number = report.data.nr.cast_unsigned();
        let args = &report.data.args;
        let rule = filter.rule_for(Architecture::CURRENT, number, args);
        let errno = rule.map_or(Errno::Eperm, |rule| rule.action.errno());
        Self {
            call: rule
                .map_or_else(|| format!("call {number}"), |rule| rule.syscall.name().to_owned()),
            detail: rule.and_then(|rule| call_detail::detail(rule.syscall, args)),
            errno: errno.number().into(),
            pid: report.pid,
            count: 1,
        }
    }
}

/// Returns whether a request found its caller, which may have been killed or interrupted. An interrupted
/// call is reported again if it is restarted.
fn unless_gone(result: libc::c_int) -> io::Result<bool> {
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR | libc::EAGAIN) => Ok(false),
        _ => Err(error),
    }
}

const NO_REPORT: libc::seccomp_notif = libc::seccomp_notif {
    id: 0,
    pid: 0,
    flags: 0,
    data: libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] },
};

/// A structure followed by zeros, for kernels whose own is larger.
#[repr(C)]
struct Padded<T> {
    value: T,
    padding: [u64; SPARE_WORDS],
}

impl<T> Padded<T> {
    fn new(value: T) -> Self {
        Self { value, padding: [0; SPARE_WORDS] }
    }
}

/// Fails with `EOVERFLOW` if the kernel's structures are larger than the padded ones.
fn check_sizes() -> io::Result<()> {
    let mut sizes =
        libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the pointer is valid for writing the three sizes, which is all the call does.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let fits = usize::from(sizes.seccomp_notif) <= size_of::<Padded<libc::seccomp_notif>>()
        && usize::from(sizes.seccomp_notif_resp) <= size_of::<Padded<libc::seccomp_notif_resp>>();
    if fits { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EOVERFLOW)) }
}
