//! Processes and users in namespaces of their own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces};

use crate::cell::CellLifetime;
use crate::fork::{Fork, is_single_threaded};
use crate::policy::Owner;
use crate::setup_process::{SetupProcess, SetupTask};

/// What each command has of its own: processes.
const OF_COMMAND: i32 = libc::CLONE_NEWPID;

/// What it has of its own as well unless it is the only one: mounts and System V objects.
const OF_ONE_AMONG_MANY: i32 = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// What a process leaves that is its only thread, which changes nothing; the kernel refuses any other.
const THREAD: UnshareFlags = UnshareFlags::from_bits_retain(libc::CLONE_THREAD.cast_unsigned());

/// Copies the calling process into new namespaces for a command. As with [`crate::fork`], it must be
/// the only thread.
pub(crate) fn fork_for_command(lifetime: CellLifetime) -> io::Result<Fork> {
    let (own, alone) = match lifetime {
        // There is no `/proc` to look into until the command has its own.
        CellLifetime::OneCommand => (OF_COMMAND, unshare(THREAD).is_ok()),
        CellLifetime::ManyCommands => (OF_COMMAND | OF_ONE_AMONG_MANY, is_single_threaded()?),
    };
    if !alone {
        return Err(Errno::DEADLK.into());
    }
    let flags = i64::from(own | libc::SIGCHLD);
    // SAFETY: without a stack and without CLONE_VM the call copies the process as `fork` does. The
    // calling thread is the only one, as just checked, so the memory of the child is consistent.
    // The C library does not learn of the new process: its handlers for `fork` do not run, of
    // which this program registers none, and it asks the kernel for ids instead of remembering.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, 0_i64, 0_i64, 0_i64, 0_i64) };
    Fork::of(result)
}

/// Moves the calling process, which must be the only thread, into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: what makes the call dangerous is a descriptor table or a file system context that
    // other threads share; neither flag is among those that this crate passes.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

/// Who is who between a user namespace and the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdMapping {
    pub(crate) inside: Owner,
    pub(crate) outside: Owner,
    /// Whether processes inside may keep groups that are not mapped, which an ordinary user must.
    pub(crate) privileged: bool,
}

/// A user namespace, and others that belong to it.
#[derive(Debug)]
pub(crate) struct UserNamespace {
    first: SetupProcess,
    others: UnshareFlags,
}

impl UserNamespace {
    /// Makes a user namespace that knows nobody yet, and begins to make the others in it.
    pub(crate) fn make(others: UnshareFlags) -> io::Result<Self> {
        Ok(Self { first: SetupProcess::start(SetupTask::Namespaces(others))?, others })
    }

    /// Makes one user and one group known there.
    pub(crate) fn describe(&self, mapping: IdMapping) -> io::Result<()> {
        let IdMapping { inside, outside, privileged } = mapping;
        let of = |name: &str| format!("/proc/{}/{name}", self.first.pid().as_raw_pid());
        if !privileged {
            write(&of("setgroups"), "deny")?;
        }
        write(&of("uid_map"), &format!("{} {} 1", inside.user, outside.user))?;
        write(&of("gid_map"), &format!("{} {} 1", inside.group, outside.group))
    }

    /// Returns a descriptor that keeps the user namespace.
    pub(crate) fn keep(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/{}/ns/user", self.first.pid().as_raw_pid());
        let namespace = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        self.first.dismiss();
        Ok(namespace)
    }

    /// Moves the calling process there, and into those of the other namespaces that are wanted.
    /// Returns which of them that are.
    pub(crate) fn join(&self, wanted: UnshareFlags) -> io::Result<UnshareFlags> {
        let made = self.others.intersection(wanted);
        // What a process of that namespace may not make, one that comes from outside perhaps may.
        let others = self.first.done().map_or(UnshareFlags::empty(), |()| made);
        let process = pidfd_open(self.first.pid(), PidfdFlags::empty())?;
        let others_too = ThreadNameSpaceType::from_bits_retain(others.bits());
        let all = ThreadNameSpaceType::USER | others_too;
        move_into_thread_name_spaces(process.as_fd(), all)?;
        self.first.dismiss();
        Ok(others)
    }
}

fn write(path: &str, text: &str) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text.as_bytes())?;
    Ok(())
}

/// Moves the calling process to the user and network namespace of another one.
pub(crate) fn join_network(process: BorrowedFd<'_>) -> io::Result<()> {
    let both = ThreadNameSpaceType::USER | ThreadNameSpaceType::NETWORK;
    move_into_thread_name_spaces(process, both)?;
    Ok(())
}

/// `IFF_UP` and `IFF_RUNNING`.
const UP_AND_RUNNING: i16 = 0x41;

/// Brings the loopback of the current network namespace up.
pub(crate) fn raise_loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use std::os::fd::AsRawFd;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    // SAFETY: all bytes of the structure may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l'.cast_signed();
    request.ifr_name[1] = b'o'.cast_signed();
    request.ifr_ifru.ifru_flags = UP_AND_RUNNING;
    // SAFETY: the request takes a pointer to this structure, which it only reads, with a name that
    // ends in a zero.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
