//! The scope of a search: its path and the names it skips.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Directory, Metadata, Problem, Root, is_sensitive, unfinished_write_pid};

use crate::error::Error;

const GIT_DIRECTORY: &str = ".git";

/// The name that is skipped even if an ignore file includes it: it is large and never the user's own code.
pub const ALWAYS_IGNORED: &str = "node_modules";

/// Access to files that commonly contain credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sensitive {
    /// Searched like other files, for an agent in its own workspace.
    #[default]
    Shown,
    /// Refused, never listed and never searched, for interfaces that browse workspaces.
    Hidden,
}

/// The part of a workspace to search.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// The workspace.
    pub root: &'a Root,
    /// Directory or file, relative to the workspace's root; empty for the root.
    pub path: PathBuf,
    /// Includes names that begin with a dot.
    pub hidden: bool,
    /// Includes files that ignore rules exclude, and `node_modules`.
    pub ignored: bool,
    /// Access to files that commonly contain credentials.
    pub sensitive: Sensitive,
}

impl<'a> Scope<'a> {
    /// Creates the scope of a whole workspace, without hidden and ignored files.
    pub fn whole(root: &'a Root) -> Self {
        Self::at(root, PathBuf::new())
    }

    /// Creates the scope of one directory or file.
    pub fn at(root: &'a Root, path: impl Into<PathBuf>) -> Self {
        Self {
            root,
            path: path.into(),
            hidden: false,
            ignored: false,
            sensitive: Sensitive::default(),
        }
    }

    pub(crate) fn open(&self) -> Result<ScopeTarget, Error> {
        match self.open_directory() {
            Ok(directory) => Ok(ScopeTarget::Directory(directory)),
            Err(error) if error.problem() == Problem::NotADirectory => {
                let (file, metadata) = self.open_file()?;
                Ok(ScopeTarget::File(file, metadata))
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

    /// Returns the path without links, `.` and `..`, as ignore rules and reports need it.
    pub(crate) fn resolved_path(&self) -> PathBuf {
        // The kernel cannot name paths longer than PATH_MAX; the given path is used instead.
        self.root.locate(&self.path).unwrap_or_else(|_| self.path.iter().collect())
    }

    /// Returns true for names that no ignore rule can include.
    pub(crate) fn always_skips(&self, name: &OsStr) -> bool {
        name == GIT_DIRECTORY
            || unfinished_write_pid(name).is_some()
            || (!self.ignored && name == ALWAYS_IGNORED)
            || (self.sensitive == Sensitive::Hidden && is_sensitive(name))
    }

    /// Returns true for names that are skipped unless a `!` rule includes them.
    pub(crate) fn hides_by_default(&self, name: &OsStr) -> bool {
        !self.hidden && name.as_bytes().first() == Some(&b'.')
    }
}

#[derive(Debug)]
pub(crate) enum ScopeTarget {
    Directory(Directory),
    File(File, Metadata),
}

/// Returns the last component, which every path of a walk has.
pub(crate) fn last_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}
