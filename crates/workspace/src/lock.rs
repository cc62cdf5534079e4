//! Locks between processes: exclusive to create and remove a workspace, shared to use it.
//!
//! A lock is an advisory kernel lock (`flock`) on a file in `.carrel/locks`. It belongs to the open file
//! description: the kernel releases it when the last descriptor is closed, so a process that dies holds
//! nothing, while a hook or command that inherited a descriptor keeps the workspace locked until it has
//! ended. Acquisition polls, because `flock` has no deadline.
//!
//! Before a long operation the holder writes a note for people into the file; the next holder clears the
//! note of a process that died. Clean-up deletes idle lock files, so after locking the link count is
//! checked: a lock on a deleted file protects nothing.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carrel_domain::WorkspaceKey;
use carrel_fsroot::Root;

use crate::error::Error;

/// The longest wait for a lock of another process; then the operation fails with [`Error::Busy`].
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) const FIRST_PAUSE: Duration = Duration::from_micros(100);
pub(crate) const MAX_PAUSE: Duration = Duration::from_millis(20);

const MAX_HOLDER_BYTES: u64 = 200;

/// The first character of locks that belong to no workspace. No key contains it.
const SHARED: char = '+';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
}

/// A held lock. Released when dropped, or with the process.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    has_note: bool,
}

impl Lock {
    /// Writes process and purpose for waiting processes to report. A failure is ignored.
    pub(crate) fn note(&mut self, purpose: &str) {
        let note = format!("process {}, {purpose}\n", std::process::id());
        self.has_note = self.file.write_all_at(note.as_bytes(), 0).is_ok();
    }

    /// Returns a second handle of the same lock, which is held until both are dropped.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, has_note: false })
    }

    /// Returns a descriptor that keeps the lock held while it is open in any process.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.has_note {
            let _ = self.file.set_len(0);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Locks<'a> {
    pub(crate) own: &'a Root,
}

impl Locks<'_> {
    /// Takes a lock, waiting at most [`LOCK_TIMEOUT`].
    pub(crate) fn take(self, name: &str, mode: Mode) -> Result<Lock, Error> {
        poll(FIRST_PAUSE, MAX_PAUSE, || self.attempt(name, mode))?.ok_or_else(|| {
            // The name of a lock that all keys share says nothing about a workspace.
            let key = if name.starts_with(SHARED) { "of another request" } else { name };
            Error::Busy { key: key.to_owned(), holder: self.holder(name) }
        })
    }

    /// Takes a lock without waiting; `None` if it is held.
    pub(crate) fn attempt(self, name: &str, mode: Mode) -> Result<Option<Lock>, Error> {
        let path = path(name);
        let failed = Error::files(format!("could not open the lock of {name}"));
        let file = self.own.open_or_create(&path, 0o600).map_err(failed)?;
        let locked = match mode {
            Mode::Exclusive => file.try_lock(),
            Mode::Shared => file.try_lock_shared(),
        };
        match locked {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(Error::Interrupted(error.to_string())),
            Ok(()) => {}
        }
        let metadata = file.metadata().map_err(|error| Error::Interrupted(error.to_string()))?;
        // Deleted by clean-up since it was opened.
        if metadata.nlink() == 0 {
            return Ok(None);
        }
        if metadata.len() > 0 {
            // The note of a process that was killed.
            let _ = file.set_len(0);
        }
        Ok(Some(Lock { file, has_note: false }))
    }

    /// Returns whether a lock has a file.
    pub(crate) fn exists(self, name: &str) -> bool {
        self.own.metadata(&path(name)).is_ok()
    }

    /// Returns whether a lock is held, without creating its file.
    pub(crate) fn is_held(self, name: &str) -> bool {
        self.exists(name) && matches!(self.attempt(name, Mode::Exclusive), Ok(None))
    }

    /// Deletes the file of a lock, unless it is held.
    pub(crate) fn remove_idle(self, name: &str) -> Result<(), Error> {
        let Some(_lock) = self.attempt(name, Mode::Exclusive)? else { return Ok(()) };
        self.own.remove_file(&path(name)).map_err(Error::files("could not remove a lock"))
    }

    fn holder(self, name: &str) -> Option<String> {
        let range = self.own.read_range(&path(name), 0, MAX_HOLDER_BYTES).ok()?;
        let text = String::from_utf8_lossy(&range.bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// Repeats an attempt with growing pauses until it has a result, at most for [`LOCK_TIMEOUT`]: `flock` has
/// no deadline.
pub fn poll<T>(
    first_pause: Duration,
    max_pause: Duration,
    attempt: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    poll_for(LOCK_TIMEOUT, (first_pause, max_pause), attempt)
}

/// Does the same for a time of the caller's.
pub(crate) fn poll_for<T>(
    time: Duration,
    (first_pause, max_pause): (Duration, Duration),
    mut attempt: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let deadline = Instant::now() + time;
    let mut pause = first_pause;
    loop {
        let taken = attempt()?;
        if taken.is_some() || Instant::now() >= deadline {
            return Ok(taken);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(max_pause);
    }
}

/// Returns the name of one of 16 locks that all keys share, for short steps.
pub(crate) fn shared_name(purpose: &str, key: &WorkspaceKey) -> String {
    const LOCKS: usize = 16;
    let sum: usize = key.as_str().bytes().map(usize::from).sum();
    format!("{SHARED}{purpose}-{:x}", sum % LOCKS)
}

fn path(name: &str) -> PathBuf {
    Path::new("locks").join(format!("{name}.lock"))
}
