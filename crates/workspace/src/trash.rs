//! Removed workspaces on their way out.

use std::path::{Path, PathBuf};

use carrel_domain::WorkspaceKey;
use carrel_fsroot::Collision;
use tracing::{debug, warn};

use crate::error::Error;
use crate::lock::Mode;
use crate::manager::{Inner, Workspaces};

const TRASH: &str = "trash";

/// The lock that keeps two processes from emptying the same trash.
const SWEEP_LOCK: &str = "+sweep";

/// What emptying the trash did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The trees that were deleted.
    pub deleted: Vec<String>,
    /// The trees that could not be deleted, with the reason; they are tried again next time.
    pub failed: Vec<(String, String)>,
    /// Whether another process is emptying the trash already.
    pub busy: bool,
}

impl Inner {
    /// Moves the directory of a workspace out of the way, in constant time.
    pub(crate) fn discard(&self, key: &WorkspaceKey) -> Result<(), Error> {
        let now = self.clock.now().as_millis();
        let name = format!("{key}.{now}.{:08x}", fastrand::u32(..));
        debug!(%key, trash = name, "moving the directory into the trash");
        let target = Path::new(TRASH).join(name);
        let source = Path::new(key.as_str());
        self.root
            .directory
            .rename_into(source, &self.root.own, &target, Collision::Refuse)
            .map_err(Error::files("could not move the workspace into the trash"))?;
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
    /// Lists what waits to be deleted.
    pub fn trash(&self) -> Result<Vec<String>, Error> {
        self.inner.trash()
    }

    /// Deletes what is in the trash. Stopping half-way loses nothing: what is
    /// left is found by its place and deleted the next time.
    pub fn sweep(&self) -> Result<Sweep, Error> {
        let inner = &self.inner;
        let Some(_lock) =
            inner.locks().attempt(SWEEP_LOCK, Mode::Exclusive, "emptying the trash")?
        else {
            return Ok(Sweep { busy: true, ..Sweep::default() });
        };
        let mut sweep = Sweep::default();
        let trees = inner.root.own.list(Path::new(TRASH));
        for entry in trees.map_err(Error::files("could not list the trash"))? {
            let path: PathBuf = Path::new(TRASH).join(&entry.name);
            let name = entry.name.to_string_lossy().into_owned();
            match inner.root.own.remove_tree(&path) {
                Ok(()) => sweep.deleted.push(name),
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    warn!(%name, %error, "Trash could not be deleted, trying again next time");
                    sweep.failed.push((name, error.to_string()));
                }
            }
        }
        Ok(sweep)
    }
}
