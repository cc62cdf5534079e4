//! Directories for the temporary files of commands.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrel_domain::{Tier, sync};
use carrel_fsroot::{Durability, FileKind, Problem, Root, WriteOptions};
use carrel_sandbox::{GIT_SETTINGS_TEXT, Owner};
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, Uid, chownat, flock, openat, unlinkat,
};
use tracing::warn;

use crate::error::RunError;
use carrel_workspace::Error;

/// The length of a name.
const NAME_DIGITS: usize = 16;

/// How long nobody looks for what killed servers left.
const SWEEP_PAUSE: Duration = Duration::from_secs(30);

/// The directories in it.
const PARTS: [&str; 2] = ["tmp", "shm"];

/// Nobody but the command's own user may look into its temporary files.
const OWN_MODE: u32 = 0o700;

/// Others may pass through where their commands have temporary files, and see nothing.
const PASSED_MODE: u32 = 0o711;

/// A directory for temporary files. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    home: Root,
    name: PathBuf,
    directory: Root,
    /// Tells other servers that it is in use.
    _lock: OwnedFd,
}

impl Scratch {
    /// Makes a directory, for `owner` if that is another user than Carrel's. Those that a killed
    /// server left are removed now and then.
    pub(crate) fn make(
        home: &ScratchHome,
        swept: &Swept,
        owner: Option<Owner>,
        tier: Tier,
    ) -> Result<Self, RunError> {
        let home = home.open()?;
        if swept.is_due(home.path()) {
            // A directory that another server has made and not locked yet would look stale.
            let _sweeping = lock(&home, FlockOperation::LockExclusive)?;
            remove_stale(&home);
        }
        let _making = lock(&home, FlockOperation::LockShared)?;
        let name = PathBuf::from(format!("{:016x}", fastrand::u64(..)));
        let directory = fill(&home, &name, owner, tier).inspect_err(|_| {
            // What is left is removed by the next one.
            let _ = home.remove_tree(&name);
        })?;
        let lock = lock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { home, name, directory, _lock: lock })
    }

    pub(crate) fn directory(&self) -> &Root {
        &self.directory
    }

    /// Makes a directory for the temporary files of one command.
    pub(crate) fn for_command(&self, name: &Path, owner: Option<Owner>) -> Result<(), RunError> {
        let failed = Error::files("could not make a directory for temporary files");
        self.directory.create_directory(name, OWN_MODE).map_err(failed)?;
        give(&self.directory.path().join(name), owner)
    }

    /// Returns whether a command has left its own directory as it was. That takes a few calls, whatever
    /// is in it.
    pub(crate) fn is_untouched(&self, name: &Path) -> bool {
        let metadata = self.directory.link_metadata(name);
        metadata.is_ok_and(|found| found.kind == FileKind::Directory && found.mode == OWN_MODE)
            && self.directory.list_at_most(name, 0).is_ok_and(|entries| entries.is_some())
    }

    /// Tells whether there are no temporary files.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |part: &&str| {
            let entries = self.directory.list_at_most(Path::new(part), 0);
            entries.is_ok_and(|entries| entries.is_some())
        };
        PARTS.iter().all(is_empty)
    }

    /// Removes the directory if nothing is left in it, as is the case with most. What is left of it
    /// otherwise goes the long way.
    fn is_removed_at_once(&self) -> bool {
        let remove = |at: &Root, name: &Path| unlinkat(at, name, AtFlags::REMOVEDIR).is_ok();
        let parts = PARTS.map(Path::new);
        parts.iter().all(|part| remove(&self.directory, part)) && remove(&self.home, &self.name)
    }

    /// Removes what a command left in its own directory.
    pub(crate) fn remove(&self, name: &Path) {
        if let Err(error) = self.directory.remove_tree(name) {
            warn!(%error, "could not remove the temporary files of a command");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_removed_at_once() {
            return;
        }
        if let Err(error) = self.home.remove_tree(&self.name) {
            warn!(%error, "could not remove the temporary files of a workspace");
        }
    }
}

/// When what killed servers left was last looked for, by where. To look at every directory for each new one
/// would take the longer the more are in use.
#[derive(Debug, Default)]
pub(crate) struct Swept(Mutex<HashMap<PathBuf, Instant>>);

impl Swept {
    /// Tells whether it is time to look again; if so, for whoever asks first.
    fn is_due(&self, home: &Path) -> bool {
        let mut swept = sync::lock(&self.0);
        if swept.get(home).is_some_and(|last| last.elapsed() < SWEEP_PAUSE) {
            return false;
        }
        swept.insert(home.to_owned(), Instant::now());
        true
    }
}

/// Where scratch directories, and the locks of writers, are made.
#[derive(Clone, Debug)]
pub(crate) struct ScratchHome {
    /// A directory of the operator's.
    base: PathBuf,
    /// The way from there, on which nothing is a link.
    below: &'static str,
    /// The mode of the directory.
    mode: u32,
}

impl ScratchHome {
    /// The scratch directories of directories that an operator named.
    pub(crate) fn of_state(state: &Path) -> Self {
        Self { base: state.to_owned(), below: "scratch", mode: PASSED_MODE }
    }

    /// The scratch directories of a root's workspaces.
    pub(crate) fn of_root(root: &Path) -> Self {
        Self { base: root.to_owned(), below: ".carrel/scratch", mode: PASSED_MODE }
    }

    /// The directory beside them for the locks of those who write files.
    pub(crate) fn of_writers(&self) -> Self {
        let below = if self.below == "scratch" { "writers" } else { ".carrel/writers" };
        Self { base: self.base.clone(), below, mode: OWN_MODE }
    }

    /// Opens the directory, and makes it if it is missing.
    ///
    /// What is below the base may have been put there by somebody who would like to see something
    /// else removed: no link is followed.
    pub(crate) fn open(&self) -> Result<Root, RunError> {
        use std::os::unix::fs::DirBuilderExt;
        let failed = || Error::files("could not open the directory for temporary files");
        let made = std::fs::DirBuilder::new().recursive(true).mode(PASSED_MODE).create(&self.base);
        made.map_err(|source| RunError::Scratch { home: self.base.clone(), source })?;
        let base = Root::open(&self.base).map_err(failed())?;
        let below = Path::new(self.below);
        match base.open_root_strict(below) {
            Err(error) if error.is_not_found() => {
                match base.create_directory(below, self.mode) {
                    // Another process was faster.
                    Err(error) if error.problem() == Problem::Exists => {}
                    made => made.map_err(failed())?,
                }
                Ok(base.open_root_strict(below).map_err(failed())?)
            }
            opened => Ok(opened.map_err(failed())?),
        }
    }
}

fn fill(home: &Root, name: &Path, owner: Option<Owner>, tier: Tier) -> Result<Root, RunError> {
    let failed = || Error::files("could not make a directory for temporary files");
    home.create_directory(name, 0o711).map_err(failed())?;
    let directory = home.open_root_strict(name).map_err(failed())?;
    for part in PARTS {
        directory.create_directory(Path::new(part), 0o700).map_err(failed())?;
        give(&directory.path().join(part), owner)?;
    }
    if tier == Tier::Full {
        // There the settings of git are a file of the root directory.
        return Ok(directory);
    }
    let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    let text = GIT_SETTINGS_TEXT.as_bytes();
    directory.write(Path::new("gitconfig"), text, options).map_err(failed())?;
    Ok(directory)
}

fn give(path: &Path, owner: Option<Owner>) -> Result<(), RunError> {
    let Some(Owner { user, group }) = owner else { return Ok(()) };
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| RunError::Scratch { home: path.to_owned(), source: errno.into() })
}

/// Removes the directories of servers that are gone.
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

/// Tells whether a name is one that is given here. Nothing else is ever removed.
fn is_own_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == NAME_DIGITS && name.iter().all(u8::is_ascii_hexdigit)
}

fn is_stale(home: &Root, name: &Path) -> bool {
    let Ok(directory) = home.open_root_strict(name) else { return false };
    lock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Takes the lock that says that a directory is in use; the kernel gives it back when this process
/// is gone, however that happens.
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
    fn what_was_left_is_looked_for_once_for_each_place() {
        let swept = Swept::default();
        let due = ["/a", "/a", "/b", "/a"].map(|home| swept.is_due(Path::new(home)));
        assert_eq!(due, [true, false, true, false]);
    }
}
