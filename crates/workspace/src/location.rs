//! The directory of a workspace: its path and its owner are checked whenever it is opened.

use std::path::Path;

use carrel_domain::WorkspaceKey;
use carrel_fsroot::{FileKind, Root};
use rustix::process::geteuid;
use tracing::debug;

use crate::error::{CwdReason, Error, LocationRule, WorkspaceLocation, is_link};
use crate::workspaces::RootInner;

impl RootInner {
    /// Opens the directory of a workspace: a real direct child of the root that belongs to this user.
    /// `None` if there is nothing. Anything else at the path is an error.
    pub(crate) fn open_directory(&self, key: &WorkspaceKey) -> Result<Option<Root>, Error> {
        let name = Path::new(key.as_str());
        let location = self.location(key);
        let directory = match self.root.directory.open_root_strict(name) {
            Ok(directory) => directory,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => {
                let kind = self.root.directory.link_metadata(name).map(|metadata| metadata.kind);
                return Err(match kind {
                    Ok(FileKind::Link) => {
                        Error::Misplaced { rule: LocationRule::NoLinks, location }
                    }
                    Ok(kind) if kind != FileKind::Directory => Error::Occupied { kind, location },
                    _ => Error::files("could not open the workspace")(error),
                });
            }
        };
        let owner = owner_of(&directory)?;
        debug!(workspace = %location.workspace.display(), "path and link check passed");
        // A server that runs as root hands workspaces to other users on purpose.
        if owner != geteuid().as_raw() && !geteuid().is_root() {
            return Err(Error::ForeignOwner { owner, location });
        }
        Ok(Some(directory))
    }

    pub(crate) fn refuse_foreign(&self, key: &WorkspaceKey, directory: &Root) -> Result<(), Error> {
        let owner = owner_of(directory)?;
        if owner == geteuid().as_raw() {
            return Ok(());
        }
        Err(Error::ForeignOwner { owner, location: self.location(key) })
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
        let Ok(below) = path.strip_prefix(self.root.path()) else { return false };
        let directory = &self.root.directory;
        let mut opened = below.ancestors().map(|part| directory.open_root_strict(part));
        opened.any(|opened| opened.is_err_and(|error| is_link(&error)))
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

fn owner_of(directory: &Root) -> Result<u32, Error> {
    let metadata = directory.own_metadata();
    Ok(metadata.map_err(Error::files("could not look at the workspace"))?.uid)
}

fn same_directory(path: &Path, directory: &Root) -> bool {
    let identity = |root: &Root| root.identity().ok();
    Root::open(path).is_ok_and(|other| identity(&other) == identity(directory))
}
