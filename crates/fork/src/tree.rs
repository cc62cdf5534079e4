//! Entries of a tree, opened by one name at a time in open directories.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Error, FileKind, Metadata, Problem, Root};

use crate::change::Node;

/// The most bytes of a path that are opened in one step, half of `PATH_MAX`.
const MAX_STEP_BYTES: usize = 2048;

/// Opens a directory below a root in steps of bounded length, without following links or crossing mount points.
pub(crate) fn open(root: &Root, path: &Path) -> Result<Root, Error> {
    open_in_steps(root, path).map_err(|error| error.at(path))
}

fn open_in_steps(root: &Root, path: &Path) -> Result<Root, Error> {
    let mut reached = root.try_clone()?;
    let mut step = PathBuf::new();
    for name in path {
        step.push(name);
        if step.as_os_str().len() > MAX_STEP_BYTES {
            reached = reached.enter(&step)?;
            step.clear();
        }
    }
    if step.as_os_str().is_empty() { Ok(reached) } else { reached.enter(&step) }
}

/// Returns the metadata of an entry by its name; `None` if there is none.
pub(crate) fn metadata(directory: &Root, name: &Path) -> Result<Option<Metadata>, Error> {
    match directory.link_metadata(name) {
        Err(error) if error.is_not_found() => Ok(None),
        found => found.map(Some),
    }
}

pub(crate) fn node(directory: &Root, name: &Path, metadata: &Metadata) -> Result<Node, Error> {
    Ok(match metadata.kind {
        FileKind::File => Node::File { mode: metadata.mode, size: metadata.size },
        FileKind::Directory => Node::Directory { mode: metadata.mode },
        FileKind::Link => Node::Link { target: directory.read_link(name)? },
        kind @ (FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Unknown) => {
            Node::Special(kind)
        }
    })
}

/// Returns whether entries can be renamed from one directory to another.
pub(crate) fn are_together(one: &Root, other: &Root) -> Result<bool, Error> {
    Ok(one.identity()?.device == other.identity()?.device && one.mount() == other.mount())
}

/// Returns whether a path cannot be opened since an entry on the way is missing or no directory.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error.problem(), Problem::NotFound | Problem::NotADirectory | Problem::Link)
}

/// The directory that was opened last; entries of one directory come one after the other.
#[derive(Debug)]
pub(crate) struct LastDirectory<'a> {
    root: &'a Root,
    open: Option<(PathBuf, Root)>,
}

impl<'a> LastDirectory<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root, open: None }
    }

    /// Opens a directory; `None` if it is gone.
    pub(crate) fn open(&mut self, path: &Path) -> Result<Option<&Root>, Error> {
        if self.open.as_ref().is_none_or(|(open, _)| open != path) {
            self.open = match open(self.root, path) {
                Err(error) if is_gone(&error) => None,
                opened => Some((path.to_owned(), opened?)),
            };
        }
        Ok(self.open.as_ref().map(|(_, directory)| directory))
    }

    /// Opens the directory of an entry; `None` if it is gone.
    pub(crate) fn parent(&mut self, path: &Path) -> Result<Option<&Root>, Error> {
        self.open(parent(path))
    }

    /// Closes the directory, which may be about to be moved.
    pub(crate) fn forget(&mut self) {
        self.open = None;
    }
}

pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

pub(crate) fn name(path: &Path) -> &Path {
    Path::new(path.file_name().unwrap_or(OsStr::new("")))
}
