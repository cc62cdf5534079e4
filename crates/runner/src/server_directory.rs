//! The server's own directory beside workspaces: scratch directories, homes, files of write locks.
//!
//! For the workspaces of a root it is `<root>/.carrel`, for directories that an operator named Carrel's state
//! directory. Its parts are made when they are first needed, and opened without following links: a link
//! could lead a later deletion elsewhere.

use std::path::{Path, PathBuf};

use carrel_fsroot::{Problem, Root};
use carrel_workspace::Error;

use crate::error::RunError;

/// Open to Carrel's own user only.
pub(crate) const OWN_MODE: u32 = 0o700;

/// Commands of other users may pass through, and list nothing.
pub(crate) const TRAVERSE_MODE: u32 = 0o711;

/// The server's own directory for the workspaces of a root, or for directories that an operator named.
#[derive(Clone, Debug)]
pub(crate) struct ServerDirectory {
    /// A directory of the operator's, whose path may have links.
    base: PathBuf,
    /// The path below it.
    below: &'static str,
}

/// A directory in the server's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServerPart {
    Scratch,
    Homes,
    WriteLocks,
    Snapshots,
    Symbols,
}

impl ServerPart {
    fn name(self) -> &'static str {
        match self {
            Self::Scratch => "scratch",
            Self::Homes => "homes",
            Self::WriteLocks => "writers",
            Self::Snapshots => "snapshots",
            Self::Symbols => "symbols",
        }
    }

    fn mode(self) -> u32 {
        match self {
            Self::Scratch | Self::Homes => TRAVERSE_MODE,
            Self::WriteLocks | Self::Snapshots | Self::Symbols => OWN_MODE,
        }
    }
}

impl ServerDirectory {
    /// Returns the one for directories that an operator named, given Carrel's state directory.
    pub(crate) fn of_state(state: &Path) -> Self {
        Self { base: state.to_owned(), below: "" }
    }

    /// Returns the one for the workspaces of a root.
    pub(crate) fn of_root(root: &Path) -> Self {
        Self { base: root.to_owned(), below: ".carrel" }
    }

    /// Returns the path of a part.
    pub(crate) fn path(&self, part: ServerPart) -> PathBuf {
        self.base.join(self.below).join(part.name())
    }

    /// Syncs the names of the parts, and those of the directories above that may have been made for them.
    pub(crate) fn sync(&self) -> Result<(), carrel_fsroot::Error> {
        let own = self.base.join(self.below);
        for directory in own.ancestors().take(3) {
            match Root::open(directory).and_then(|opened| opened.sync_directory(Path::new("."))) {
                // A directory above that Carrel may not read was not made by it.
                Err(error) if error.problem() == Problem::PermissionDenied => {}
                synced => synced?,
            }
        }
        Ok(())
    }

    /// Opens a part, and creates it if it is missing.
    pub(crate) fn open(&self, part: ServerPart) -> Result<Root, RunError> {
        use std::os::unix::fs::DirBuilderExt;
        let failed = || Error::files(format!("could not open the directory for {}", part.name()));
        let made =
            std::fs::DirBuilder::new().recursive(true).mode(TRAVERSE_MODE).create(&self.base);
        made.map_err(|source| RunError::Scratch { home: self.base.clone(), source })?;
        let base = Root::open(&self.base).map_err(failed())?;
        open_or_create(&base, &Path::new(self.below).join(part.name()), part.mode())
            .map(|(directory, _)| directory)
            .map_err(|error| failed()(error).into())
    }
}

/// Opens a directory without following links, and creates it if it is missing. Returns whether it is new.
pub(crate) fn open_or_create(
    base: &Root,
    path: &Path,
    mode: u32,
) -> Result<(Root, bool), carrel_fsroot::Error> {
    match base.open_root_strict(path) {
        Err(error) if error.is_not_found() => {}
        opened => return Ok((opened?, false)),
    }
    let is_new = match base.create_directory(path, mode) {
        // Another process was faster.
        Err(error) if error.problem() == Problem::Exists => false,
        created => created.map(|()| true)?,
    };
    Ok((base.open_root_strict(path)?, is_new))
}
