//! The home directories of commands, the snapshots and the symbol indexes, beside the workspaces.
//!
//! `homes/KEY` is made by the first command of a workspace whose directory is a work tree. It counts towards the
//! workspace's quota and goes with it: removal moves it into the trash after the directory, so a crash in
//! between leaves a home without a workspace, which the next creation with that key or the next clean-up discards.
//! `snapshots/KEY` holds the snapshots and undo checkpoints, and goes the same way. `symbols/KEY` is a cache that
//! code tools write; it is deleted at once.

use std::path::{Path, PathBuf};

use carrel_domain::WorkspaceKey;
use carrel_fsroot::{Collision, Root};

use crate::error::Error;
use crate::fork::FORKS;
use crate::trash::TRASH;
use crate::workspaces::RootInner;

pub(crate) const HOMES: &str = "homes";

pub(crate) const SNAPSHOTS: &str = "snapshots";

pub(crate) const SYMBOLS: &str = "symbols";

impl RootInner {
    /// Opens the home of a workspace; `None` if there is none.
    pub(crate) fn open_home(&self, key: &WorkspaceKey) -> Result<Option<Root>, Error> {
        match self.root.own.open_root_strict(&home(key)) {
            Err(error) if error.is_not_found() => Ok(None),
            opened => opened.map(Some).map_err(Error::files("could not open a home directory")),
        }
    }

    /// Moves the home, the snapshots and a fork's layers into the trash and deletes the symbol index of a workspace,
    /// as far as they are there.
    pub(crate) fn discard_beside(&self, key: &WorkspaceKey) -> Result<(), Error> {
        match self.root.own.remove_file(&Path::new(SYMBOLS).join(key.as_str())) {
            Err(error) if !error.is_not_found() => {
                return Err(Error::files("could not delete a symbol index")(error));
            }
            Ok(()) | Err(_) => {}
        }
        for part in [FORKS, SNAPSHOTS, HOMES] {
            self.discard_part(part, key).map_err(Error::files(format!(
                "could not move a directory of {part} into the trash"
            )))?;
        }
        Ok(())
    }

    fn discard_part(&self, part: &str, key: &WorkspaceKey) -> Result<(), carrel_fsroot::Error> {
        let own = &self.root.own;
        let path = Path::new(part).join(key.as_str());
        let directory = match own.open_root_strict(&path) {
            Err(error) if error.is_not_found() => return Ok(()),
            opened => opened?,
        };
        // Moving a directory rewrites its `..`, which needs write permission on it.
        directory.grant_owner_access()?;
        own.rename(&path, &Path::new(TRASH).join(self.trash_name(key)), Collision::Refuse)
    }
}

fn home(key: &WorkspaceKey) -> PathBuf {
    Path::new(HOMES).join(key.as_str())
}
