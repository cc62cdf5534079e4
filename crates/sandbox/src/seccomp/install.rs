//! Installation of a filter program on the calling thread.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use super::listener::Listener;
use super::program::{BpfProgram, Reporting};

impl BpfProgram {
    /// Installs the program on the calling thread and all its descendants, for good.
    ///
    /// The thread must have set `no_new_privs`. Returns a listener if denied calls are reported. `exec`
    /// closes it, so it has to be handed to the supervisor before; without a listener the calls that it
    /// would report fail with `ENOSYS`.
    pub fn install(&self) -> io::Result<Option<Listener>> {
        if !rustix::thread::no_new_privs()? {
            let text = "a system call filter needs no_new_privs to be set first";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        match self.reporting {
            Reporting::Silent => self.set(0).map(|_| None),
            Reporting::Supervisor => self.set_with_listener().map(Some),
        }
    }

    /// Installs with a listener whose callers, once their report was read, can only be interrupted by a
    /// fatal signal: an interrupted call would be restarted and reported twice. Kernels before 5.19 do not
    /// have that flag.
    fn set_with_listener(&self) -> io::Result<Listener> {
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let calm = flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        let descriptor = match self.set(calm) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.set(flags)?,
            result => result?,
        };
        // SAFETY: with this flag the kernel answers with a descriptor that it just made for this
        // call; nothing else owns it.
        Ok(Listener::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    fn set(&self, flags: libc::c_ulong) -> io::Result<i32> {
        let too_long = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let program = libc::sock_fprog {
            len: self.instructions.len().try_into().map_err(too_long)?,
            filter: self.instructions.as_ptr().cast_mut(),
        };
        // SAFETY: `program` points to as many instructions as it says, which outlive the call; the
        // kernel copies them, checks them and writes nothing. A filter can make calls of this
        // thread fail, which every caller of a system call has to expect.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            i32::try_from(result).map_err(io::Error::other)
        }
    }
}
