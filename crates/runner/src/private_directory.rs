//! A directory that one command has to itself among its temporary files.

use std::io::Read;
use std::path::PathBuf;

use carrel_fsroot::Root;
use carrel_workspace::blocking;

use crate::error::RunError;
use crate::sandbox_cell::ExecutionSite;

/// A directory of one command, deleted when this is dropped. Other commands can write to the directory
/// above, and must not guess the name.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    scratch: Root,
    name: PathBuf,
    /// Its path inside the sandbox.
    pub(crate) inside: PathBuf,
}

impl PrivateDirectory {
    pub(crate) async fn make(site: &ExecutionSite) -> Result<Self, RunError> {
        let name = format!("{:016x}", fastrand::u64(..));
        let inside = site.temporary().join(&name);
        let site = site.clone();
        let (scratch, name) = blocking(move || site.make_below_temporary(&name)).await?;
        Ok(Self { scratch, name, inside })
    }

    /// Reads the first bytes of a file in it, and returns true if the file is larger; `None` for one that
    /// is missing or special.
    pub(crate) fn read(&self, file: &str, limit: u64) -> Option<(Vec<u8>, bool)> {
        let (file, metadata) = self.scratch.open_file(&self.name.join(file)).ok()?;
        let mut contents = Vec::new();
        file.take(limit).read_to_end(&mut contents).ok()?;
        Some((contents, metadata.size > limit))
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What is left goes with the scratch directory.
        let _ = self.scratch.remove_tree(&self.name);
    }
}
