//! The directory of a workspace's snapshots, in the server's own directory.
//!
//! | workspace | directory | removed |
//! |---|---|---|
//! | in a root | `<root>/.carrel/snapshots/KEY` | with the workspace |
//! | a directory that an operator named | `snapshots/HASH` in the state directory | [`KEPT_FOR`] after the directory was last used and is gone |
//!
//! A directory in the state directory has a file that names its workspace. A directory that is gone may only be
//! unmounted, or deleted by mistake, so that its snapshots are worth keeping for a while. A directory within a
//! workspace, which a client's roots can be, has none.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carrel_fsroot::{Durability, Error as FileError, Root, WriteOptions};
use carrel_workspace::Error;

use crate::error::RunError;
use crate::server_directory::{OWN_MODE, ServerPart, open_or_create};
use crate::workspace_handle::WorkspaceHandle;

/// The time for which snapshots outlive a directory that an operator named.
const KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// The file with the path of the workspace.
const WORKSPACE_FILE: &str = "workspace";

/// The longest path that the file holds.
const MAX_PATH_BYTES: u64 = 4096;

/// The file of a store that the last restore or undo left.
const RESTORED: &str = "restored";

/// The files of a store while something is being written to the workspace.
const JOURNALS: [&str; 2] = ["restore.journal", "undo.journal"];

impl WorkspaceHandle {
    /// Returns whether a process that ended was writing to the workspace, so that opening the store of its snapshots
    /// would finish that. Makes nothing.
    pub fn has_interrupted_restore(&self) -> bool {
        let Some(name) = self.name_beside() else { return false };
        let store = self.shared.server.path(ServerPart::Snapshots).join(name);
        JOURNALS.iter().any(|journal| rustix::fs::lstat(store.join(journal)).is_ok())
    }

    /// Returns the time at which a restore or undo last put files of the workspace back, by whichever process. Makes
    /// nothing.
    pub fn restored_at(&self) -> Option<SystemTime> {
        let store = self.shared.server.path(ServerPart::Snapshots).join(self.name_beside()?);
        let found = rustix::fs::lstat(store.join(RESTORED)).ok()?;
        let seconds = Duration::from_secs(u64::try_from(found.st_mtime).ok()?);
        Some(UNIX_EPOCH + seconds + Duration::from_nanos(found.st_mtime_nsec))
    }

    /// Opens the directory of the workspace's snapshots, and makes it if it is missing; none for a directory within
    /// a workspace.
    pub fn snapshot_directory(&self) -> Result<Option<Root>, RunError> {
        let Some(name) = self.name_beside() else { return Ok(None) };
        let all = self.shared.server.open(ServerPart::Snapshots)?;
        let failed = || Error::files("could not open the directory of the snapshots");
        let (directory, is_new) = open_or_create(&all, &name, OWN_MODE).map_err(failed())?;
        if is_new {
            // A snapshot that survives a power loss is of no use in a directory that does not.
            all.sync_directory(Path::new(".")).map_err(failed())?;
            self.shared.server.sync().map_err(failed())?;
        }
        if self.workspace_root().is_none() {
            note_workspace(&directory, self.path()).map_err(failed())?;
            delete_stale(&all, &name);
        }
        Ok(Some(directory))
    }
}

/// Writes the path of the workspace, at every opening, so that the file's time tells when that was.
fn note_workspace(directory: &Root, workspace: &Path) -> Result<(), FileError> {
    let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    directory.write(Path::new(WORKSPACE_FILE), workspace.as_os_str().as_bytes(), options)
}

/// Deletes the snapshots of workspaces that have been gone for long.
fn delete_stale(all: &Root, own: &Path) {
    let Ok(entries) = all.list(Path::new(".")) else { return };
    for entry in entries.iter().filter(|entry| Path::new(&entry.name) != own) {
        let name = Path::new(&entry.name);
        if is_stale(all, name)
            && let Err(error) = all.remove_tree(name)
        {
            tracing::warn!(%error, "could not remove the snapshots of a workspace that is gone");
        }
    }
}

/// A directory without a readable note is left to people.
fn is_stale(all: &Root, name: &Path) -> bool {
    let note = name.join(WORKSPACE_FILE);
    let Ok(path) = all.read_strict(&note, MAX_PATH_BYTES) else { return false };
    let workspace = PathBuf::from(OsString::from_vec(path));
    let is_gone = matches!(rustix::fs::lstat(&workspace), Err(rustix::io::Errno::NOENT));
    let noted = all.link_metadata(&note).map(|metadata| metadata.modified);
    let age = |noted| SystemTime::now().duration_since(noted).unwrap_or_default();
    is_gone && noted.is_ok_and(|noted| age(noted) > KEPT_FOR)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at the state directory as it is")]
mod tests {
    use super::*;

    #[test]
    fn snapshots_outlive_a_directory_for_a_while() {
        let state = tempfile::tempdir().unwrap();
        let open = |path: &Path| WorkspaceHandle::for_directory(path, state.path()).unwrap();
        let stores = || std::fs::read_dir(state.path().join("snapshots")).unwrap().count();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directory = open(one.path()).snapshot_directory().unwrap().unwrap();
        let again = open(one.path()).snapshot_directory().unwrap().unwrap();
        assert_eq!(directory.identity().unwrap(), again.identity().unwrap());
        open(other.path()).snapshot_directory().unwrap().unwrap();
        one.close().unwrap();
        open(other.path()).snapshot_directory().unwrap().unwrap();
        assert_eq!(stores(), 2, "deleted a moment ago");
        let note = std::fs::File::open(directory.path().join(WORKSPACE_FILE)).unwrap();
        note.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_mins(1)).unwrap();
        open(other.path()).snapshot_directory().unwrap().unwrap();
        assert_eq!(stores(), 1);
    }

    #[test]
    fn a_directory_within_a_workspace_has_no_snapshots() {
        let (state, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(tree.path().join("part")).unwrap();
        let whole = WorkspaceHandle::for_directory(tree.path(), state.path()).unwrap();
        let part = whole.subdirectory(Path::new("part")).unwrap();
        assert!(part.snapshot_directory().unwrap().is_none());
        assert!(!state.path().join("snapshots").exists());
    }
}
