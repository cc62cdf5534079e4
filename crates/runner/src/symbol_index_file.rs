//! The files of symbol indexes, in the server's own directory.
//!
//! | workspace | file | removed |
//! |---|---|---|
//! | in a root | `<root>/.carrel/symbols/KEY` | with the workspace |
//! | a directory that an operator named | `symbols/HASH` in the state directory | after the directory is gone |
//!
//! A file begins with the path of its workspace. Where another file names a workspace that no longer exists, it is
//! deleted when an index is written. The rest is a cache that its reader checks. A directory within a workspace, which
//! a client's roots can be, has none.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use carrel_fsroot::{Durability, Root, WriteOptions};
use carrel_workspace::Error;

use crate::error::RunError;
use crate::server_directory::ServerPart;
use crate::workspace_handle::WorkspaceHandle;

/// The longest path of a workspace that is kept with its index.
const MAX_PATH_BYTES: usize = 4096;

impl WorkspaceHandle {
    /// Reads the symbol index that was written last; none if there is none.
    pub fn read_symbol_index(&self, limit: u64) -> Result<Option<Vec<u8>>, RunError> {
        let Some((directory, name)) = self.symbol_index_file()? else { return Ok(None) };
        let failed = || Error::files("could not read the symbol index");
        match directory.read_strict(&name, limit) {
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(failed()(error).into()),
            Ok(mut bytes) => {
                let header = header(self.path());
                Ok(bytes.starts_with(&header).then(|| bytes.split_off(header.len())))
            }
        }
    }

    /// Writes a symbol index, in place of an earlier one.
    pub fn write_symbol_index(&self, index: &[u8]) -> Result<(), RunError> {
        let Some((directory, name)) = self.symbol_index_file()? else { return Ok(()) };
        let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
        let bytes = [&header(self.path()), index].concat();
        let written = directory.write(&name, &bytes, options);
        written.map_err(Error::files("could not write the symbol index"))?;
        if self.workspace_root().is_none() {
            delete_stale(&directory, &name);
        }
        Ok(())
    }

    fn symbol_index_file(&self) -> Result<Option<(Root, PathBuf)>, RunError> {
        let Some(name) = self.name_beside() else { return Ok(None) };
        let directory = self.shared.server.open(ServerPart::Symbols)?;
        Ok(Some((directory, name)))
    }
}

/// Returns the path of a workspace and the line feed behind it, which no index begins with.
fn header(workspace: &Path) -> Vec<u8> {
    [workspace.as_os_str().as_bytes(), b"\0\n"].concat()
}

/// Deletes the indexes of workspaces that no longer exist.
fn delete_stale(directory: &Root, own: &Path) {
    let Ok(entries) = directory.list(Path::new(".")) else { return };
    for entry in entries.iter().filter(|entry| Path::new(&entry.name) != own) {
        let name = Path::new(&entry.name);
        let Some(workspace) = workspace_of(directory, name) else { continue };
        if matches!(rustix::fs::lstat(&workspace), Err(rustix::io::Errno::NOENT))
            && let Err(error) = directory.remove_file(name)
        {
            tracing::warn!(%error, "could not remove the symbol index of a workspace that is gone");
        }
    }
}

fn workspace_of(directory: &Root, name: &Path) -> Option<PathBuf> {
    let (file, _) = directory.open_file(name).ok()?;
    let mut start = Vec::new();
    file.take(MAX_PATH_BYTES as u64 + 2).read_to_end(&mut start).ok()?;
    let end = start.windows(2).position(|bytes| bytes == b"\0\n")?;
    start.truncate(end);
    Some(OsString::from_vec(start).into())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at the state directory as it is")]
mod tests {
    use super::*;

    #[test]
    fn an_index_comes_back_and_goes_after_its_workspace() {
        let state = tempfile::tempdir().unwrap();
        let open = |path: &Path| WorkspaceHandle::for_directory(path, state.path()).unwrap();
        let files = || std::fs::read_dir(state.path().join("symbols")).unwrap().count();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let handle = open(one.path());
        assert_eq!(handle.read_symbol_index(100).unwrap(), None);
        handle.write_symbol_index(b"first").unwrap();
        handle.write_symbol_index(b"index").unwrap();
        assert_eq!(handle.read_symbol_index(1000).unwrap(), Some(b"index".to_vec()));
        assert_eq!(open(other.path()).read_symbol_index(1000).unwrap(), None);
        open(other.path()).write_symbol_index(b"other").unwrap();
        assert_eq!(files(), 2);
        drop(handle);
        one.close().unwrap();
        open(other.path()).write_symbol_index(b"other").unwrap();
        assert_eq!(files(), 1);
    }

    #[test]
    fn a_directory_within_a_workspace_has_no_index_on_disk() {
        let (state, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(tree.path().join("part")).unwrap();
        let whole = WorkspaceHandle::for_directory(tree.path(), state.path()).unwrap();
        let part = whole.subdirectory(Path::new("part")).unwrap();
        part.write_symbol_index(b"part").unwrap();
        assert_eq!(part.read_symbol_index(1000).unwrap(), None);
        assert!(!state.path().join("symbols").exists());
    }
}
