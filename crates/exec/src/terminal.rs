//! The terminal of a command, on the server's side.
//!
//! The command has the far end of a pseudo-terminal as its input and output; the server has the near
//! end, reads the output there and writes the input.
//!
//! Input is not queued. A write waits until the kernel, which takes a few kilobytes, accepts it, so a
//! command that does not read holds up only its own writers.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use rustix::io::ioctl_fionbio;
use rustix::termios::{Winsize, tcsetwinsize};
use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    /// Returns the traditional size, 24 lines of 80 characters.
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

impl From<TerminalSize> for Winsize {
    fn from(TerminalSize { rows, columns }: TerminalSize) -> Self {
        Self { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// The reason why a terminal could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// The command has ended.
    #[error("the command of this terminal is over")]
    Over,
    /// The system call failed.
    #[error("could not control the terminal of a command")]
    Io(#[source] io::Error),
}

/// A handle to the terminal of a running command. No handle keeps it open: it ends with its command.
#[derive(Clone, Debug)]
pub struct Terminal {
    input: Weak<Input>,
    over: CancellationToken,
}

impl Terminal {
    /// Writes input, and returns when the terminal has accepted all of it, read or not. Concurrent writes
    /// are serialised.
    ///
    /// The command's output has to be read at the same time, by [`crate::RunningCommand::wait`]. A command
    /// that does not read its input makes this wait until it does or ends. After a cancelled wait some of
    /// the bytes may have been written.
    ///
    /// Unless the command has changed that, the terminal works line by line: it shows what is
    /// typed, hands on a line at its end, and drops what goes beyond 4095 bytes in one line. The
    /// byte 3 interrupts the foreground processes, and 4 at the start of a line ends the input.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), TerminalError> {
        let writing = async {
            // The strong reference lives only as long as this wait, which ends with the command.
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

/// The server's end of a terminal. Dropping both parts hangs the terminal up.
#[derive(Debug)]
pub(crate) struct TerminalConnection {
    pub(crate) output: Receiver,
    pub(crate) input: TerminalInput,
}

/// The owner of a terminal's input. Handles made from it end when it is dropped.
#[derive(Debug)]
pub(crate) struct TerminalInput {
    input: Arc<Input>,
    over: DropGuard,
}

#[derive(Debug)]
struct Input {
    near: Sender,
    /// The far end, kept open: otherwise a moment in which no process has the terminal open would be its
    /// end, and a process that opens `/dev/tty` later could not be heard.
    _far: OwnedFd,
    write_lock: Mutex<()>,
}

impl TerminalConnection {
    pub(crate) fn new(near: OwnedFd, far: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&near, true)?;
        // The pipe types work for any non-blocking descriptor.
        let output = Receiver::from_owned_fd_unchecked(near.try_clone()?)?;
        let near = Sender::from_owned_fd_unchecked(near)?;
        let input = Arc::new(Input { near, _far: far, write_lock: Mutex::new(()) });
        let over = CancellationToken::new().drop_guard();
        Ok(Self { output, input: TerminalInput { input, over } })
    }
}

impl TerminalInput {
    pub(crate) fn terminal(&self) -> Terminal {
        Terminal { input: Arc::downgrade(&self.input), over: self.over.token().clone() }
    }
}

impl Input {
    async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _guard = self.write_lock.lock().await;
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
