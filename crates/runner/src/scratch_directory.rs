//! Scratch directories: `/tmp` and `/dev/shm` of commands.
//!
//! Each cell has one, below the root's `.carrel/scratch` or below the operator's state directory. It is
//! on the disk of the workspace, so that temporary files count towards its quota, and is deleted with
//! the cell.
//!
//! A server that is killed leaves its directories behind. Each is locked (`flock`) by its server, and
//! the kernel releases the lock however the server ends: a directory that can be locked is stale. At
//! most every 30 s the next new cell looks for stale ones. Making a directory and locking it are two
//! steps, so making takes a shared lock on the parent and sweeping an exclusive one.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrel_domain::{Tier, sync};
use carrel_fsroot::{Durability, FileKind, Root, WriteOptions};
use carrel_sandbox::{GIT_SETTINGS_TEXT, Owner};
use rustix::fs::{AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, Uid, chownat, flock, openat};
use tracing::warn;

use crate::error::RunError;
use crate::server_directory::{OWN_MODE, ServerDirectory, ServerPart, TRAVERSE_MODE};
use carrel_workspace::Error;

const NAME_DIGITS: usize = 16;

/// The time between two searches for stale directories below one parent.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

const PARTS: [&str; 2] = ["tmp", "shm"];

/// A scratch directory, deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct ScratchDirectory {
    home: Root,
    name: PathBuf,
    directory: Root,
    /// Keeps other servers from taking the directory for stale.
    _lock: OwnedFd,
}

impl ScratchDirectory {
    /// Creates a directory, for `owner` if that is another user than Carrel's, and deletes stale ones if
    /// a search is due.
    pub(crate) fn make(
        parent: &ServerDirectory,
        sweeps: &SweepSchedule,
        owner: Option<Owner>,
        tier: Tier,
    ) -> Result<Self, RunError> {
        let home = parent.open(ServerPart::Scratch)?;
        if sweeps.is_due(home.path()) {
            // A directory that another server has created and not locked yet would look stale.
            let _sweeping = lock(&home, FlockOperation::LockExclusive)?;
            remove_stale(&home);
        }
        let _making = lock(&home, FlockOperation::LockShared)?;
        let name = PathBuf::from(format!("{:016x}", fastrand::u64(..)));
        let directory = fill(&home, &name, owner, tier).inspect_err(|_| {
            // What cannot be deleted is stale, and found by a later sweep.
            let _ = home.remove_tree(&name);
        })?;
        let lock = lock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { home, name, directory, _lock: lock })
    }

    pub(crate) fn directory(&self) -> &Root {
        &self.directory
    }

    /// Creates a directory for the temporary files of one command.
    pub(crate) fn for_command(&self, name: &Path, owner: Option<Owner>) -> Result<(), RunError> {
        let failed = Error::files("could not make a directory for temporary files");
        self.directory.create_directory(name, OWN_MODE).map_err(failed)?;
        give(&self.directory.path().join(name), owner)
    }

    /// Returns whether a command left its own directory empty and with its mode. Takes a bounded number of
    /// calls however full it is.
    pub(crate) fn is_untouched(&self, name: &Path) -> bool {
        let metadata = self.directory.link_metadata(name);
        metadata.is_ok_and(|found| found.kind == FileKind::Directory && found.mode == OWN_MODE)
            && self.has_nothing_in(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        PARTS.iter().all(|part| self.has_nothing_in(Path::new(part)))
    }

    fn has_nothing_in(&self, name: &Path) -> bool {
        self.directory.list_at_most(name, 0).is_ok_and(|entries| entries.is_some())
    }

    /// Deletes a command's own directory. A failure is logged: the rest goes with the cell.
    pub(crate) fn remove(&self, name: &Path) {
        if let Err(error) = self.directory.remove_tree(name) {
            warn!(%error, "could not remove the temporary files of a command");
        }
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if let Err(error) = self.home.remove_tree(&self.name) {
            warn!(%error, "could not remove the temporary files of a workspace");
        }
    }
}

/// The times of the last searches for stale directories, by parent. Searching for each new cell would
/// take longer the more cells there are, and makers would wait for each other's lock.
#[derive(Debug, Default)]
pub(crate) struct SweepSchedule(Mutex<HashMap<PathBuf, Instant>>);

impl SweepSchedule {
    /// Returns whether a search is due, to one caller only.
    fn is_due(&self, home: &Path) -> bool {
        let mut sweeps = sync::lock(&self.0);
        if sweeps.get(home).is_some_and(|last| last.elapsed() < SWEEP_INTERVAL) {
            return false;
        }
        sweeps.insert(home.to_owned(), Instant::now());
        true
    }
}

fn fill(home: &Root, name: &Path, owner: Option<Owner>, tier: Tier) -> Result<Root, RunError> {
    let failed = || Error::files("could not make a directory for temporary files");
    home.create_directory(name, TRAVERSE_MODE).map_err(failed())?;
    let directory = home.open_root_strict(name).map_err(failed())?;
    for part in PARTS {
        directory.create_directory(Path::new(part), OWN_MODE).map_err(failed())?;
        give(&directory.path().join(part), owner)?;
    }
    if tier == Tier::Full {
        // In tier `full` the settings of git are part of the cell's root file system.
        return Ok(directory);
    }
    let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    let text = GIT_SETTINGS_TEXT.as_bytes();
    directory.write(Path::new("gitconfig"), text, options).map_err(failed())?;
    Ok(directory)
}

pub(crate) fn give(path: &Path, owner: Option<Owner>) -> Result<(), RunError> {
    let Some(Owner { user, group }) = owner else { return Ok(()) };
    let user = Uid::from_raw(user);
    let group = Gid::from_raw(group);
    chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| RunError::Scratch { home: path.to_owned(), source: errno.into() })
}

/// Deletes the directories of servers that have ended.
fn remove_stale(home: &Root) {
    let Ok(entries) = home.list(Path::new(".")) else { return };
    for entry in entries {
        let name = Path::new(&entry.name);
        if is_own_name(&entry.name)
            && is_stale(home, name)
            && let Err(error) = home.remove_tree(name)
        {
            warn!(%error, "could not remove temporary files that were left behind");
        }
    }
}

/// Returns whether a name is one of ours. Nothing else is ever deleted.
fn is_own_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == NAME_DIGITS && name.iter().all(u8::is_ascii_hexdigit)
}

fn is_stale(home: &Root, name: &Path) -> bool {
    let Ok(directory) = home.open_root_strict(name) else { return false };
    lock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Locks a directory until the descriptor is closed or the process ends.
fn lock(directory: &Root, operation: FlockOperation) -> Result<OwnedFd, RunError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = openat(directory, ".", flags, Mode::empty()).map_err(std::io::Error::from)?;
    flock(&descriptor, operation).map_err(std::io::Error::from)?;
    Ok(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_directories_are_searched_once_per_parent_and_interval() {
        let schedule = SweepSchedule::default();
        let due = ["/a", "/a", "/b", "/a"].map(|home| schedule.is_due(Path::new(home)));
        assert_eq!(due, [true, false, true, false]);
    }
}
