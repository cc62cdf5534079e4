//! Opens the terminal of a command, in its init.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{InputModes, OptionalActions, tcgetattr, tcsetattr, tcsetwinsize};

use crate::protocol::Standard;
use crate::terminal::TerminalSize;

/// Both ends of a terminal, until the server has them.
pub(super) struct TerminalPair {
    near: OwnedFd,
    far: OwnedFd,
}

impl TerminalPair {
    /// Opens a terminal inside the sandbox: in tier `full` it is one of the cell's own `devpts`.
    ///
    /// It does not become this process's controlling terminal. The far end is opened by ioctl and not by
    /// its name, which a command could have replaced.
    pub(super) fn open(size: TerminalSize) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags)?;
        unlockpt(&near)?;
        let far = ioctl_tiocgptpeer(&near, flags)?;
        tcsetwinsize(&far, size.into())?;
        let mut modes = tcgetattr(&far)?;
        // The erase key removes a whole UTF-8 character.
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&far, OptionalActions::Now, &modes)?;
        Ok(Self { near, far })
    }

    /// Returns the far end as the command's standard streams.
    pub(super) fn standard(&self) -> io::Result<Standard<OwnedFd>> {
        let copy = || self.far.try_clone();
        Ok(Standard { stdin: copy()?, stdout: copy()?, stderr: copy()? })
    }

    /// Returns the ends in the order of the protocol.
    pub(super) fn in_order(&self) -> [BorrowedFd<'_>; 2] {
        [self.near.as_fd(), self.far.as_fd()]
    }
}
