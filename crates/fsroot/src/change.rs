//! Renaming and removing single entries.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags, renameat_with, symlinkat, unlinkat};

use crate::error::Error;
use crate::resolve;
use crate::root::Root;

/// What a rename or write does when the new name is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collision {
    /// Replaces what is there in one step.
    #[default]
    Replace,
    /// Leaves what is there and fails.
    Refuse,
}

impl Collision {
    pub(crate) fn flags(self) -> RenameFlags {
        match self {
            Self::Replace => RenameFlags::empty(),
            Self::Refuse => RenameFlags::NOREPLACE,
        }
    }
}

impl Root {
    /// Gives an entry another name inside this root; a link is renamed itself.
    pub fn rename(&self, from: &Path, to: &Path, collision: Collision) -> Result<(), Error> {
        self.rename_into(from, self, to, collision)
    }

    /// Moves an entry to a name inside another root on the same file system.
    pub fn rename_into(
        &self,
        from: &Path,
        other: &Root,
        to: &Path,
        collision: Collision,
    ) -> Result<(), Error> {
        let source = resolve::open_parent(self.as_fd(), from)?;
        let target = resolve::open_parent(other.as_fd(), to)?;
        renameat_with(&source.parent, source.name, &target.parent, target.name, collision.flags())
            .map_err(|errno| match errno {
                rustix::io::Errno::EXIST => Error::from_errno(to, errno),
                errno => Error::from_errno(from, errno),
            })
    }

    /// Makes a symbolic link. Where it points is judged when it is followed.
    pub fn create_link(&self, target: &Path, path: &Path) -> Result<(), Error> {
        let place = resolve::open_parent(self.as_fd(), path)?;
        symlinkat(target, &place.parent, place.name).map_err(|errno| Error::from_errno(path, errno))
    }

    /// Removes a file, a link or another entry that is no directory.
    pub fn remove_file(&self, path: &Path) -> Result<(), Error> {
        self.unlink(path, AtFlags::empty())
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, path: &Path) -> Result<(), Error> {
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, path: &Path, flags: AtFlags) -> Result<(), Error> {
        let place = resolve::open_parent(self.as_fd(), path)?;
        unlinkat(&place.parent, place.name, flags).map_err(|errno| Error::from_errno(path, errno))
    }
}
