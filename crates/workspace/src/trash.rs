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
use crate::lock::Mode;
use crate::workspaces::{RootInner, Workspaces};

const TRASH: &str = "trash";

const SWEEP_LOCK: &str = "+sweep";

/// The result of emptying the trash.
///
/// Trees that could not be deleted are listed with the reason, and retried by the next sweep. `busy` is set
/// if another process was emptying the trash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the summary defines the fields")]
pub struct Sweep {
    pub deleted: Vec<String>,
    pub failed: Vec<(OsString, String)>,
    pub busy: bool,
}

impl RootInner {
    /// Moves the directory of a workspace into the trash, in constant time.
    pub(crate) fn discard(&self, key: &WorkspaceKey, directory: &Root) -> Result<(), Error> {
        let now = self.clock.now().as_millis();
        let name = format!("{key}.{now}.{:08x}", fastrand::u32(..));
        debug!(%key, trash = name, "moving the directory into the trash");
        // Moving a directory rewrites its `..`, which needs write permission on it.
        let opened = directory.grant_owner_access();
        let target = Path::new(TRASH).join(name);
        let source = Path::new(key.as_str());
        let doing =
            || format!("could not move {} into the trash", self.location(key).workspace.display());
        opened.map_err(Error::files(doing()))?;
        self.root
            .directory
            .rename_into(source, &self.root.own, &target, Collision::Refuse)
            .map_err(Error::files(doing()))?;
        self.root
            .directory
            .sync_directory(Path::new("."))
            .map_err(Error::files("could not sync the root"))
    }

    pub(crate) fn trash(&self) -> Result<Vec<String>, Error> {
        let entries = self
            .root
            .own
            .list(Path::new(TRASH))
            .map_err(Error::files("could not list the trash"))?;
        Ok(entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect())
    }
}

impl Workspaces {
    /// Lists the names in the trash.
    pub fn trash(&self) -> Result<Vec<String>, Error> {
        self.inner.trash()
    }

    /// Deletes the contents of the trash, including what arrives during the call.
    pub fn sweep(&self) -> Result<Sweep, Error> {
        let mut sweep = Sweep::default();
        loop {
            let locks = self.inner.locks();
            let Some(lock) = locks.attempt(SWEEP_LOCK, Mode::Exclusive)? else {
                return Ok(Sweep { busy: true, ..sweep });
            };
            while let Some(name) = self.next_tree(&sweep)? {
                self.delete_tree(name, &mut sweep);
            }
            drop(lock);
            // A process that found the lock held relies on this second look.
            if self.next_tree(&sweep)?.is_none() {
                return Ok(sweep);
            }
        }
    }

    fn next_tree(&self, sweep: &Sweep) -> Result<Option<OsString>, Error> {
        let trees = self.inner.root.own.list(Path::new(TRASH));
        let trees = trees.map_err(Error::files("could not list the trash"))?;
        let failed = |name: &OsStr| sweep.failed.iter().any(|(failed, _)| failed == name);
        Ok(trees.into_iter().map(|entry| entry.name).find(|name| !failed(name)))
    }

    fn delete_tree(&self, name: OsString, sweep: &mut Sweep) {
        let shown = name.to_string_lossy().into_owned();
        match self.inner.root.own.remove_tree(&Path::new(TRASH).join(&name)) {
            Ok(()) => sweep.deleted.push(shown),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                warn!(name = shown, %error, "Trash could not be deleted, trying again next time");
                sweep.failed.push((name, error.to_string()));
            }
        }
    }
}
