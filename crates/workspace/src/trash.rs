//! The trash of a root: removed workspaces that are deleted in the background.
//!
//! Removal is a rename, so it takes the same time for any size. What is in the trash needs no record:
//! interrupted deletion is simply continued by the next sweep. One process sweeps at a time, and looks
//! again after releasing the lock, so that a directory that arrived meanwhile is not left behind.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use carrel_domain::WorkspaceKey;
use carrel_fsroot::{Collision, Root};
use tracing::{debug, warn};

use crate::error::Error;
use crate::gc::{GcAction, GcReport};
use crate::lock::Mode;
use crate::root::names_in;
use crate::workspaces::{RootInner, Workspaces};

pub(crate) const TRASH: &str = "trash";

const SWEEP_LOCK: &str = "+sweep";

impl RootInner {
    /// Moves the directory of a workspace into the trash, in constant time.
    pub(crate) fn discard(&self, key: &WorkspaceKey, directory: &Root) -> Result<(), Error> {
        let name = self.trash_name(key);
        debug!(%key, trash = name, "moving the directory into the trash");
        self.move_out(key, directory, Path::new(TRASH), &name)
    }

    /// Moves the directory of a workspace into a part of the server's directory, in constant time.
    pub(crate) fn move_out(
        &self,
        key: &WorkspaceKey,
        directory: &Root,
        part: &Path,
        name: &str,
    ) -> Result<(), Error> {
        let target = part.join(name);
        let root = &self.root.directory;
        let source = Path::new(key.as_str());
        // Moving a directory rewrites its `..`, which needs write permission on it.
        let moved = directory
            .grant_owner_access()
            .and_then(|()| root.rename_into(source, &self.root.own, &target, Collision::Refuse));
        let workspace = self.location(key).workspace;
        let doing = format!("could not move {} into the trash", workspace.display());
        moved.map_err(Error::files(doing))?;
        self.sync_own(part)?;
        self.sync_root()
    }

    /// Returns a new name in the trash for something of a workspace.
    pub(crate) fn trash_name(&self, key: &WorkspaceKey) -> String {
        let now = self.clock.now().as_millis();
        format!("{key}.{now}.{:08x}", fastrand::u32(..))
    }

    pub(crate) fn sync_root(&self) -> Result<(), Error> {
        let synced = self.root.directory.sync_directory(Path::new("."));
        synced.map_err(Error::files("could not sync the root"))
    }

    pub(crate) fn sync_own(&self, part: &Path) -> Result<(), Error> {
        let synced = self.root.own.sync_directory(part);
        synced.map_err(Error::files("could not sync the server's directory"))
    }

    pub(crate) fn trash(&self) -> Result<Vec<String>, Error> {
        names_in(&self.root.own, TRASH, "could not list the trash")
    }
}

impl Workspaces {
    /// Lists the names in the trash.
    pub fn trash(&self) -> Result<Vec<String>, Error> {
        self.inner.trash()
    }

    /// Moves kept work whose time is over into the trash, and deletes the contents of the trash, including what
    /// arrives during the call, unless another process does so. Trees that could not be deleted are retried by
    /// the next sweep.
    pub fn sweep(&self) -> Result<GcReport, Error> {
        let mut report = GcReport::default();
        self.expire_kept(false, &mut report)?;
        let mut failed = Vec::new();
        loop {
            let Some(lock) = self.inner.locks().attempt(SWEEP_LOCK, Mode::Exclusive)? else {
                return Ok(report);
            };
            while let Some(name) = self.next_tree(&failed)? {
                if !self.delete_tree(&name, &mut report) {
                    failed.push(name);
                }
            }
            drop(lock);
            // A process that found the lock held relies on this second look.
            if self.next_tree(&failed)?.is_none() {
                return Ok(report);
            }
        }
    }

    fn next_tree(&self, failed: &[OsString]) -> Result<Option<OsString>, Error> {
        let trees = self.inner.root.own.list(Path::new(TRASH));
        let trees = trees.map_err(Error::files("could not list the trash"))?;
        Ok(trees.into_iter().map(|entry| entry.name).find(|name| !failed.contains(name)))
    }

    /// Deletes a tree; returns whether it is gone.
    fn delete_tree(&self, name: &OsStr, report: &mut GcReport) -> bool {
        let shown = name.to_string_lossy().into_owned();
        match self.inner.root.own.remove_tree(&Path::new(TRASH).join(name)) {
            Ok(()) => report.actions.push(GcAction::DeleteTrash { name: shown }),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                warn!(name = shown, %error, "Trash could not be deleted, trying again next time");
                report.failed.push(format!("{shown}: {error}"));
                return false;
            }
        }
        true
    }
}
