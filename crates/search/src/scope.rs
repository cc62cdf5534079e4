//! Where to search, and what is left out there.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Directory, Metadata, Problem, Root, is_sensitive, unfinished_write_pid};

use crate::error::Error;

/// The directory of a repository's own files, entered only when the path leads into it.
const GIT_DIRECTORY: &str = ".git";

/// The directory that counts as ignored whatever the ignore files say.
const ALWAYS_IGNORED: &str = "node_modules";

/// Whether names that hold credentials are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sensitive {
    /// They are searched like all others: for an agent in its own workspace.
    #[default]
    Shown,
    /// They are refused, never listed and never searched: for browsing doors.
    Hidden,
}

/// Where to search, and what is left out there.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// The workspace.
    pub root: &'a Root,
    /// The directory or file to search, relative to the workspace's root; empty for all of it.
    pub path: PathBuf,
    /// Searches names that begin with a dot.
    pub hidden: bool,
    /// Searches what ignore files leave out, and `node_modules`.
    pub ignored: bool,
    /// Whether names that hold credentials are searched.
    pub sensitive: Sensitive,
}

impl<'a> Scope<'a> {
    /// Returns the scope that covers a whole workspace, without hidden and ignored files.
    pub fn whole(root: &'a Root) -> Self {
        Self::at(root, PathBuf::new())
    }

    /// Returns the scope of one directory or file.
    pub fn at(root: &'a Root, path: impl Into<PathBuf>) -> Self {
        Self {
            root,
            path: path.into(),
            hidden: false,
            ignored: false,
            sensitive: Sensitive::default(),
        }
    }

    /// Returns the same scope with names that begin with a dot.
    #[must_use]
    pub fn with_hidden(self) -> Self {
        Self { hidden: true, ..self }
    }

    /// Returns the same scope with what ignore files leave out.
    #[must_use]
    pub fn with_ignored(self) -> Self {
        Self { ignored: true, ..self }
    }

    /// Opens the path, whatever it is.
    pub(crate) fn open(&self) -> Result<Opened, Error> {
        match self.open_directory() {
            Ok(directory) => Ok(Opened::Directory(directory)),
            Err(error) if error.problem() == Problem::NotADirectory => {
                let (file, metadata) = self.open_file()?;
                Ok(Opened::File(file, metadata))
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn open_directory(&self) -> Result<Directory, carrel_fsroot::Error> {
        match self.sensitive {
            Sensitive::Shown => self.root.directory(&self.path),
            Sensitive::Hidden => self.root.browse().directory(&self.path),
        }
    }

    fn open_file(&self) -> Result<(File, Metadata), carrel_fsroot::Error> {
        match self.sensitive {
            Sensitive::Shown => self.root.open_file(&self.path),
            Sensitive::Hidden => self.root.browse().open_file(&self.path),
        }
    }

    /// Returns the path without links, `.` and `..`: ignore rules and reports go by it.
    pub(crate) fn place(&self) -> PathBuf {
        // A directory may lie deeper than the kernel can name it; then what was given has to do.
        self.root.locate(&self.path).unwrap_or_else(|_| self.path.iter().collect())
    }

    /// Tells whether no rule of the workspace can make this name visible.
    pub(crate) fn leaves_out(&self, name: &OsStr) -> bool {
        name == GIT_DIRECTORY
            || unfinished_write_pid(name).is_some()
            || (!self.ignored && name == ALWAYS_IGNORED)
            || (self.sensitive == Sensitive::Hidden && is_sensitive(name))
    }

    /// Tells whether the name is left out unless a rule of the workspace brings it back.
    pub(crate) fn hides(&self, name: &OsStr) -> bool {
        !self.hidden && name.as_bytes().first() == Some(&b'.')
    }
}

/// What a scope's path leads to.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A directory to walk.
    Directory(Directory),
    /// A single file.
    File(File, Metadata),
}

/// Returns the last name of a path; a path made by a walk always has one.
pub(crate) fn last_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}
