//! Terminals for commands.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{InputModes, OptionalActions, tcgetattr, tcsetattr, tcsetwinsize};

use crate::protocol::Standard;
use crate::terminal::TerminalSize;

/// Both ends of a terminal, on their way to the server.
pub(super) struct Ends {
    near: OwnedFd,
    far: OwnedFd,
}

impl Ends {
    /// Opens a terminal on the command's side of the walls: in a full cell it is one of the cell's
    /// own, whose number there has nothing to do with the host's.
    ///
    /// It becomes nobody's controlling terminal, and the far end is not looked up by its name, which
    /// could stand for something else.
    pub(super) fn open(size: TerminalSize) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags)?;
        unlockpt(&near)?;
        let far = ioctl_tiocgptpeer(&near, flags)?;
        tcsetwinsize(&far, size.into())?;
        let mut modes = tcgetattr(&far)?;
        // Erasing takes away a character, however many bytes it has.
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&far, OptionalActions::Now, &modes)?;
        Ok(Self { near, far })
    }

    /// Returns the far end as the command's input and output.
    pub(super) fn standard(&self) -> io::Result<Standard<OwnedFd>> {
        let copy = || self.far.try_clone();
        Ok(Standard { stdin: copy()?, stdout: copy()?, stderr: copy()? })
    }

    /// Returns the ends in the order in which they are sent.
    pub(super) fn in_order(&self) -> [BorrowedFd<'_>; 2] {
        [self.near.as_fd(), self.far.as_fd()]
    }
}
