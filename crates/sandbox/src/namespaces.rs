//! User, process and network namespaces of cells and commands.
//!
//! A cell lives in a user namespace in which exactly one user and one group of the host are mapped. In
//! it the cell holds every capability over the namespaces it creates and none over anything else. Each
//! command gets a process namespace of its own, so that killing its init kills the whole tree, and its
//! own mounts and System V objects unless the cell serves only that command.
//!
//! The namespaces are created by a [`SetupProcess`] and joined afterwards: creating them is the slowest
//! part of a cell, and only a process outside a user namespace may write its id maps.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, UnshareFlags, move_into_link_name_space,
    move_into_thread_name_spaces,
};

use crate::cell::CellLifetime;
use crate::fork::{Fork, is_single_threaded};
use crate::policy::Owner;
use crate::setup_process::{SetupProcess, SetupTask};

/// The namespaces of every command.
const COMMAND_NAMESPACES: i32 = libc::CLONE_NEWPID;

/// Further namespaces of a command that shares its cell with others.
const UNSHARED_NAMESPACES: i32 = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// `unshare` with this flag succeeds exactly in a process with one thread, and changes nothing there.
const THREAD: UnshareFlags = UnshareFlags::from_bits_retain(libc::CLONE_THREAD.cast_unsigned());

/// Forks the calling process into the namespaces of a command. As with [`crate::fork`], it must be the
/// only thread.
pub(crate) fn fork_for_command(lifetime: CellLifetime) -> io::Result<Fork> {
    let (own, alone) = match lifetime {
        // Such a cell has no `/proc` in which threads could be counted.
        CellLifetime::OneCommand => (COMMAND_NAMESPACES, unshare(THREAD).is_ok()),
        CellLifetime::ManyCommands => {
            (COMMAND_NAMESPACES | UNSHARED_NAMESPACES, is_single_threaded()?)
        }
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
    // other threads share; this crate passes neither flag.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

/// The one user and the one group that a user namespace maps to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdMapping {
    pub(crate) inside: Owner,
    pub(crate) outside: Owner,
    /// Set if the writer of the maps has `CAP_SETGID` outside. Without it the kernel accepts a group
    /// map only after `setgroups` was denied in the namespace.
    pub(crate) privileged: bool,
}

/// A user namespace and others that it owns, held by a setup process until they are joined.
#[derive(Debug)]
pub(crate) struct UserNamespace {
    holder: SetupProcess,
    others: UnshareFlags,
}

impl UserNamespace {
    /// Creates a user namespace without mappings, and begins to create the others in it.
    pub(crate) fn create(others: UnshareFlags) -> io::Result<Self> {
        Ok(Self { holder: SetupProcess::start(SetupTask::HoldNamespaces(others))?, others })
    }

    /// Writes the user and group maps, which is possible once.
    pub(crate) fn write_id_maps(&self, mapping: IdMapping) -> io::Result<()> {
        let IdMapping { inside, outside, privileged } = mapping;
        let of = |name: &str| format!("/proc/{}/{name}", self.holder.pid().as_raw_pid());
        if !privileged {
            write(&of("setgroups"), "deny")?;
        }
        write(&of("uid_map"), &format!("{} {} 1", inside.user, outside.user))?;
        write(&of("gid_map"), &format!("{} {} 1", inside.group, outside.group))
    }

    /// Creates a user namespace for id-mapped mounts, or takes the spare one. Returns its ended holder and a
    /// descriptor that keeps it.
    pub(crate) fn of_owners(
        mapping: IdMapping,
        spare: Option<Self>,
    ) -> io::Result<(Self, OwnedFd)> {
        let users = spare.map_or_else(|| Self::create(UnshareFlags::empty()), Ok)?;
        users.write_id_maps(mapping)?;
        let kept = users.open("user")?;
        users.release();
        Ok((users, kept))
    }

    /// Ends the holder, without waiting for that. The namespaces stay as long as they are open or joined.
    pub(crate) fn release(&self) {
        self.holder.kill();
    }

    /// Waits until the other namespaces are created.
    pub(crate) fn wait(&self) -> io::Result<()> {
        self.holder.wait_for_task()
    }

    /// Opens a descriptor that keeps the namespace with this name in `/proc` alive.
    pub(crate) fn open(&self, name: &str) -> io::Result<OwnedFd> {
        let path = format!("/proc/{}/ns/{name}", self.holder.pid().as_raw_pid());
        Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Moves the calling process into the user namespace and into those of the `wanted` namespaces that
    /// the holder could create. Returns the ones that were joined; the caller creates the rest.
    pub(crate) fn join(&self, wanted: UnshareFlags) -> io::Result<UnshareFlags> {
        let made = self.others.intersection(wanted);
        // A process that comes from outside may be able to create what the holder could not.
        let others = self.holder.wait_for_task().map_or(UnshareFlags::empty(), |()| made);
        let process = pidfd_open(self.holder.pid(), PidfdFlags::empty())?;
        let others_too = ThreadNameSpaceType::from_bits_retain(others.bits());
        let all = ThreadNameSpaceType::USER | others_too;
        move_into_thread_name_spaces(process.as_fd(), all)?;
        self.holder.kill();
        Ok(others)
    }
}

fn write(path: &str, text: &str) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text.as_bytes())?;
    Ok(())
}

/// A network namespace with the user namespace that owns it, which cells of one workspace share.
///
/// A process that joins them needs their descriptors: those of a cell in `/proc` are closed to ordinary
/// users, because a cell is not dumpable.
#[derive(Debug)]
pub struct NetworkNamespace<T = OwnedFd> {
    /// The user namespace.
    pub users: T,
    /// The network namespace.
    pub network: T,
}

impl NetworkNamespace {
    /// Opens those of the calling process, whose `/proc` must be of its process namespace.
    pub(crate) fn of_this_process() -> io::Result<Self> {
        let open = |path| open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        Ok(Self { users: open("/proc/self/ns/user")?, network: open("/proc/self/ns/net")? })
    }

    /// Moves the calling process into both namespaces.
    pub(crate) fn join(&self) -> io::Result<()> {
        move_into_link_name_space(self.users.as_fd(), Some(LinkNameSpaceType::User))?;
        self.join_network()
    }

    /// Moves the calling process, which is in the user namespace already, into the network namespace.
    pub(crate) fn join_network(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.network.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// `IFF_UP` and `IFF_RUNNING`.
const UP_AND_RUNNING: i16 = 0x41;

/// Brings up the loopback interface of the current network namespace.
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
