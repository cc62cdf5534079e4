//! The terminal of a command, as the server has it.
//!
//! A terminal has two ends. The command has the far one, as its input and output. The near one is
//! the server's: it reads there what the command prints, and writes what somebody types.
//!
//! Input has no queue here. A write waits until the kernel, which takes a few kilobytes, has room,
//! so a command that does not read holds up only those who type.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use rustix::io::ioctl_fionbio;
use rustix::termios::{Winsize, tcsetwinsize};
use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How large a terminal is, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// How many lines there are.
    pub rows: u16,
    /// How many characters are in a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    /// The size of the terminals that all others imitate: 24 lines of 80 characters.
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

impl From<TerminalSize> for Winsize {
    fn from(TerminalSize { rows, columns }: TerminalSize) -> Self {
        Self { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// Why something could not be done with a terminal.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// The command that it belonged to is over.
    #[error("the command of this terminal is over")]
    Over,
    /// The system refused it.
    #[error("could not control the terminal of a command")]
    Io(#[source] io::Error),
}

/// A handle to the terminal of a running command. Clones are handles to the same one, and none
/// keeps it open: it ends with its command.
#[derive(Clone, Debug)]
pub struct Terminal {
    input: Weak<Input>,
    over: CancellationToken,
}

impl Terminal {
    /// Types the bytes, and returns when the terminal has taken them all. Whether the command reads
    /// them is its own affair. Two writes at the same time follow one after the other.
    ///
    /// The command's output has to be read meanwhile, by [`crate::Running::wait`]. A command that
    /// does not read its input makes this wait until it does or is over; if the wait is given up,
    /// some of the bytes may have been taken.
    ///
    /// Unless the command has changed that, the terminal works line by line: it shows what is
    /// typed, hands on a line at its end, and drops what goes beyond 4095 bytes in one line. The
    /// byte 3 interrupts the foreground processes, and 4 at the start of a line ends the input.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), TerminalError> {
        let writing = async {
            // Held by this wait alone, which ends with the command.
            let input = self.input()?;
            input.write(bytes).await.map_err(TerminalError::Io)
        };
        tokio::select! {
            biased;
            () = self.over.cancelled() => Err(TerminalError::Over),
            written = writing => written,
        }
    }

    /// Changes the size. Unless it is the same, the foreground processes get `SIGWINCH`.
    pub fn resize(&self, size: TerminalSize) -> Result<(), TerminalError> {
        let resized = tcsetwinsize(&self.input()?.near, size.into());
        resized.map_err(|errno| TerminalError::Io(errno.into()))
    }

    fn input(&self) -> Result<Arc<Input>, TerminalError> {
        self.input.upgrade().ok_or(TerminalError::Over)
    }
}

/// What the server has of a terminal. Dropping both parts hangs the terminal up.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) output: Receiver,
    pub(crate) keyboard: Keyboard,
}

/// Where handles to a terminal come from, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Keyboard {
    input: Arc<Input>,
    over: DropGuard,
}

#[derive(Debug)]
struct Input {
    near: Sender,
    /// The command's end. Without it, a moment in which no process has the terminal open would look
    /// like its end; a process that opens `/dev/tty` afterwards could not be heard.
    _far: OwnedFd,
    /// Held by whoever types.
    typing: Mutex<()>,
}

impl Screen {
    /// Takes both ends, inside a tokio runtime.
    pub(crate) fn new(near: OwnedFd, far: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&near, true)?;
        // The types stand for anything that can be read and written without blocking.
        let output = Receiver::from_owned_fd_unchecked(near.try_clone()?)?;
        let near = Sender::from_owned_fd_unchecked(near)?;
        let input = Arc::new(Input { near, _far: far, typing: Mutex::new(()) });
        let over = CancellationToken::new().drop_guard();
        Ok(Self { output, keyboard: Keyboard { input, over } })
    }
}

impl Keyboard {
    /// Returns a handle.
    pub(crate) fn terminal(&self) -> Terminal {
        Terminal { input: Arc::downgrade(&self.input), over: self.over.token().clone() }
    }
}

impl Input {
    async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _typing = self.typing.lock().await;
        let mut left = bytes;
        while !left.is_empty() {
            self.near.writable().await?;
            match self.near.try_write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
