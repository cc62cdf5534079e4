//! The state of a workspace on disk, from its record and its directory.

use std::path::{Path, PathBuf};

use carrel_domain::WorkspaceKey;
use carrel_fsroot::{FileKind, Root};
use rustix::process::geteuid;
use tracing::debug;

use crate::error::{CwdReason, Error, LocationRule, WorkspaceLocation, is_link};
use crate::record::{Record, State};
use crate::workspaces::RootInner;

/// The condition of a workspace: ready, or a record without a directory, or an interrupted creation or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Ready,
    Missing,
    HalfMade,
    HalfRemoved,
}

impl Condition {
    pub(crate) fn of(record: &Record, directory: Option<&Root>) -> Self {
        match (record.state, directory) {
            (_, None) => Self::Missing,
            (State::Ready, Some(_)) => Self::Ready,
            (State::Creating, Some(_)) => Self::HalfMade,
            (State::Removing, Some(_)) => Self::HalfRemoved,
        }
    }
}

impl RootInner {
    /// Opens the directory of a workspace: a real direct child of the root that belongs to this user.
    /// `None` if there is nothing. Anything else at the path is an error.
    pub(crate) fn open_directory(&self, key: &WorkspaceKey) -> Result<Option<Root>, Error> {
        let name = Path::new(key.as_str());
        let location = self.location(key);
        let directory = match self.root.directory.open_root_strict(name) {
            Ok(directory) => directory,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(self.explain(name, location, error)),
        };
        let owner =
            directory.own_metadata().map_err(Error::files("could not look at the workspace"))?.uid;
        debug!(workspace = %location.workspace.display(), "path and link check passed");
        // A server that runs as root hands workspaces to other users on purpose.
        if owner != geteuid().as_raw() && !geteuid().is_root() {
            return Err(Error::ForeignOwner { owner, location });
        }
        Ok(Some(directory))
    }

    pub(crate) fn refuse_foreign(&self, key: &WorkspaceKey, directory: &Root) -> Result<(), Error> {
        let owner =
            directory.own_metadata().map_err(Error::files("could not look at the workspace"))?.uid;
        if owner == geteuid().as_raw() {
            return Ok(());
        }
        Err(Error::ForeignOwner { owner, location: self.location(key) })
    }

    fn explain(
        &self,
        name: &Path,
        location: WorkspaceLocation,
        error: carrel_fsroot::Error,
    ) -> Error {
        match self.root.directory.link_metadata(name).map(|metadata| metadata.kind) {
            Ok(FileKind::Link) => Error::Misplaced { rule: LocationRule::NoLinks, location },
            Ok(kind) if kind != FileKind::Directory => Error::Occupied { kind, location },
            _ => Error::files("could not open the workspace")(error),
        }
    }

    /// Returns the key of the workspace at an absolute path, by the same rules.
    pub(crate) fn locate(&self, path: &Path) -> Result<WorkspaceKey, Error> {
        let root = self.root.path();
        let broken = |rule| Error::Misplaced {
            rule,
            location: WorkspaceLocation { workspace: path.to_owned(), root: root.to_owned() },
        };
        if same_directory(path, &self.root.directory) {
            return Err(broken(LocationRule::NotTheRoot));
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let key = name.and_then(WorkspaceKey::from_name);
        match (path.parent(), key) {
            (Some(parent), Some(key)) if same_directory(parent, &self.root.directory) => {
                match self.root.directory.open_root_strict(Path::new(key.as_str())) {
                    Err(error) if is_link(&error) => Err(broken(LocationRule::NoLinks)),
                    _ => Ok(key),
                }
            }
            _ if self.passes_a_link(path) => Err(broken(LocationRule::NoLinks)),
            _ => Err(broken(LocationRule::DirectChild)),
        }
    }

    /// Returns whether a path below the root, by its names, passes a link.
    fn passes_a_link(&self, path: &Path) -> bool {
        let below: Option<PathBuf> = path.strip_prefix(self.root.path()).ok().map(Into::into);
        below.is_some_and(|below| {
            below.ancestors().any(|part| {
                self.root.directory.open_root_strict(part).is_err_and(|error| is_link(&error))
            })
        })
    }

    pub(crate) fn check_cwd(&self, path: &Path) -> Result<WorkspaceKey, Error> {
        self.locate(path).map_err(|error| match error {
            Error::Misplaced { rule, location } => {
                let reason = match rule {
                    LocationRule::NotTheRoot => CwdReason::WorkspaceRoot,
                    LocationRule::DirectChild => CwdReason::OutsideWorkspaceRoot,
                    LocationRule::NoLinks => CwdReason::SymlinkEscape,
                };
                Error::InvalidCwd { reason, location }
            }
            other => other,
        })
    }
}

fn same_directory(path: &Path, directory: &Root) -> bool {
    let identity = |root: &Root| root.identity().ok();
    Root::open(path).is_ok_and(|other| identity(&other) == identity(directory))
}
