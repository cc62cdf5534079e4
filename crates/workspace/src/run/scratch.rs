//! Directories for the temporary files of commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use carrel_fsroot::{Durability, Root, WriteOptions};
use carrel_sandbox::{GIT_SETTINGS_TEXT, Owner};
use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};
use tracing::warn;

use super::error::RunError;
use crate::error::Error;

/// The numbers of scratch directories, over all workspaces of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory for temporary files. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    home: Root,
    name: PathBuf,
    directory: Root,
}

impl Scratch {
    /// Makes a directory, for `owner` if that is another user than Carrel's. Those that a killed
    /// server left are removed.
    pub(super) fn make(home: &Path, owner: Option<Owner>) -> Result<Self, RunError> {
        let home = open_home(home)?;
        remove_stale(&home);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!("{}-{number}", std::process::id()));
        let directory = fill(&home, &name, owner).inspect_err(|_| {
            // What is left is removed by the next one.
            let _ = home.remove_tree(&name);
        })?;
        Ok(Self { home, name, directory })
    }

    pub(super) fn directory(&self) -> &Root {
        &self.directory
    }

    /// Makes a directory for the temporary files of one command.
    pub(super) fn for_command(&self, name: &Path, owner: Option<Owner>) -> Result<(), RunError> {
        let failed = Error::files("could not make a directory for temporary files");
        self.directory.create_directory(name, 0o700).map_err(failed)?;
        give(&self.directory.path().join(name), owner)
    }

    /// Removes what a command left in its own directory.
    pub(super) fn remove(&self, name: &Path) {
        if let Err(error) = self.directory.remove_tree(name) {
            warn!(%error, "could not remove the temporary files of a command");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = self.home.remove_tree(&self.name) {
            warn!(%error, "could not remove the temporary files of a workspace");
        }
    }
}

/// Opens the directory that holds scratch directories. Others may pass through it, since some
/// commands run as others, and see nothing.
fn open_home(home: &Path) -> Result<Root, RunError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o711).create(home);
    made.map_err(|source| RunError::Scratch { home: home.to_owned(), source })?;
    let opened = Root::open(home);
    Ok(opened.map_err(Error::files("could not open the directory for temporary files"))?)
}

fn fill(home: &Root, name: &Path, owner: Option<Owner>) -> Result<Root, RunError> {
    let failed = || Error::files("could not make a directory for temporary files");
    home.create_directory(name, 0o711).map_err(failed())?;
    let directory = home.open_root_strict(name).map_err(failed())?;
    for part in ["tmp", "shm"] {
        directory.create_directory(Path::new(part), 0o700).map_err(failed())?;
        give(&directory.path().join(part), owner)?;
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
        if is_stale(&entry.name)
            && let Err(error) = home.remove_tree(Path::new(&entry.name))
        {
            warn!(%error, "could not remove temporary files that were left behind");
        }
    }
}

fn is_stale(name: &OsString) -> bool {
    let server = name.to_str().and_then(|name| name.split_once('-')).map(|(pid, _)| pid);
    let pid = server.and_then(|pid| pid.parse().ok()).and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}
