//! Locks between processes: exclusive to make and remove a workspace, shared to use it.

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

/// The longest pause between two tries. The kernel's lock has no deadline of its own.
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// Bounds what is read about a holder.
const MAX_HOLDER_BYTES: u64 = 200;

/// How the names of locks begin that belong to no workspace. No key contains it.
const SHARED: char = '+';

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Alone.
    Exclusive,
    /// Together with other users.
    Shared,
}

/// A lock that is held until it is dropped, or until the process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    noted: bool,
}

impl Lock {
    /// Says who holds the lock and what for, to those who wait, before something that
    /// takes long. Only a help for people, so a failure does not matter.
    pub(crate) fn note(&mut self, purpose: &str) {
        let note = format!("process {}, {purpose}\n", std::process::id());
        self.noted = self.file.write_all_at(note.as_bytes(), 0).is_ok();
    }

    /// Returns a descriptor that keeps the lock held for as long as it is open anywhere.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.noted {
            let _ = self.file.set_len(0);
        }
    }
}

/// The locks of a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locks<'a> {
    pub(crate) own: &'a Root,
}

impl Locks<'_> {
    /// Takes a lock, waiting for a bounded time.
    pub(crate) fn take(self, name: &str, mode: Mode) -> Result<Lock, Error> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let mut pause = Duration::from_micros(100);
        loop {
            if let Some(lock) = self.attempt(name, mode)? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                let holder = self.holder(name);
                // Locks that all keys share say what is done under them, not which one it is.
                let key = if name.starts_with(SHARED) { "of another request" } else { name };
                return Err(Error::Busy { key: key.to_owned(), holder });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Takes a lock if nobody stands in the way.
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
        // Clean-up unlinks idle lock files; a lock on an unlinked file holds nothing.
        if metadata.nlink() == 0 {
            return Ok(None);
        }
        if metadata.len() > 0 {
            // The note of a process that was killed. It would accuse somebody else.
            let _ = file.set_len(0);
        }
        Ok(Some(Lock { file, noted: false }))
    }

    /// Tells whether somebody holds a lock, without making the file.
    pub(crate) fn is_held(self, name: &str) -> bool {
        let exists = self.own.metadata(&path(name)).is_ok();
        exists && matches!(self.attempt(name, Mode::Exclusive), Ok(None))
    }

    /// Removes a lock file that nobody holds; tells whether it did.
    pub(crate) fn remove_idle(self, name: &str) -> Result<bool, Error> {
        let Some(_lock) = self.attempt(name, Mode::Exclusive)? else {
            return Ok(false);
        };
        self.own
            .remove_file(&path(name))
            .map(|()| true)
            .map_err(Error::files("could not remove a lock"))
    }

    /// Lists the names that have a lock file.
    pub(crate) fn names(self) -> Result<Vec<String>, Error> {
        let entries =
            self.own.list(Path::new("locks")).map_err(Error::files("could not list locks"))?;
        let names = entries.iter().filter_map(|entry| entry.name.to_str()?.strip_suffix(".lock"));
        Ok(names.map(str::to_owned).collect())
    }

    fn holder(self, name: &str) -> Option<String> {
        let range = self.own.read_range(&path(name), 0, MAX_HOLDER_BYTES).ok()?;
        let text = String::from_utf8_lossy(&range.bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// Names one of a few locks that all keys share, for steps that take no time.
pub(crate) fn shared_name(purpose: &str, key: &WorkspaceKey) -> String {
    const LOCKS: usize = 16;
    let sum: usize = key.as_str().bytes().map(usize::from).sum();
    format!("{SHARED}{purpose}-{:x}", sum % LOCKS)
}

fn path(name: &str) -> PathBuf {
    Path::new("locks").join(format!("{name}.lock"))
}
