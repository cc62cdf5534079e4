//! Renaming, linking and removing single entries. Each operation is one system call on an opened parent
//! directory and so is atomic.

use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat_with, symlinkat, unlinkat};

use crate::error::{Error, OnPath};
use crate::resolve;
use crate::root::Root;
use crate::writer::ActingWriter;

/// The behaviour of a rename or write whose target exists. Both are atomic: with [`Collision::Refuse`] the
/// kernel itself checks (`RENAME_NOREPLACE`), so two writers cannot both succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collision {
    /// Replaces the target atomically.
    #[default]
    Replace,
    /// Fails and leaves the target alone.
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
    /// Renames an entry inside this root; a link is renamed itself.
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
        let source = resolve::open_parent(self, from)?;
        let target = resolve::open_parent(other, to)?;
        // Two roots with different writers are on different file systems.
        let _acting = ActingWriter::begin(self.writer().or(other.writer())).on(from)?;
        renameat_with(
            &source.parent,
            &*source.name,
            &target.parent,
            &*target.name,
            collision.flags(),
        )
        .map_err(|errno| match errno {
            rustix::io::Errno::EXIST => Error::from_errno(to, errno),
            errno => Error::from_errno(from, errno),
        })
    }

    /// Gives a file a second name inside another root on the same file system. A symbolic link gets the name itself.
    pub fn hard_link_into(&self, from: &Path, other: &Root, to: &Path) -> Result<(), Error> {
        let source = resolve::open_parent(self, from)?;
        let target = resolve::open_parent(other, to)?;
        linkat(&source.parent, &*source.name, &target.parent, &*target.name, AtFlags::empty())
            .on(to)
    }

    /// Creates a symbolic link. Its target is not checked here but whenever it is followed.
    pub fn create_link(&self, target: &Path, path: &Path) -> Result<(), Error> {
        let link = resolve::open_parent(self, path)?;
        let _acting = self.act_as_writer()?;
        symlinkat(target, &link.parent, &*link.name).on(path)
    }

    /// Removes a file, a link or another entry that is not a directory.
    pub fn remove_file(&self, path: &Path) -> Result<(), Error> {
        self.unlink(path, AtFlags::empty())
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, path: &Path) -> Result<(), Error> {
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, path: &Path, flags: AtFlags) -> Result<(), Error> {
        let target = resolve::open_parent(self, path)?;
        let _acting = self.act_as_writer()?;
        unlinkat(&target.parent, &*target.name, flags).on(path)
    }
}
