//! Where scratch files go, and that they go away.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use tempfile::TempDir;

use crate::Fault;

/// A directory for one run, removed when it is dropped.
pub(crate) struct Scratch {
    outer: TempDir,
    path: PathBuf,
}

impl Scratch {
    /// Makes a directory below another one; nothing is ever removed but what is in it.
    pub(crate) fn make(below: &Path) -> Result<Self, Fault> {
        std::fs::create_dir_all(below)?;
        let outer = tempfile::Builder::new().prefix("carrel-bench-").tempdir_in(below)?;
        let outer_path = std::fs::canonicalize(outer.path())?;
        spread_out(&outer_path);
        // The file system chooses the place by the name, so the name differs between runs.
        let path = outer_path.join(outer_path.file_name().unwrap_or_default());
        std::fs::create_dir(&path)?;
        Ok(Self { outer, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn remove(self) -> Result<(), Fault> {
        Ok(self.outer.close()?)
    }
}

/// Asks the file system to put what is made in a directory into a quiet part of the disk.
///
/// ext4 does not use an inode again for a minute or longer after it was deleted, and making a file
/// looks past all of those in its part of the disk. After an earlier run, or a build, that takes
/// longer than what is measured. Other file systems do not know the flag and need none.
fn spread_out(directory: &Path) {
    let flagged = File::open(directory).map_err(Fault::from).and_then(|file| {
        let flags = ioctl_getflags(&file)?;
        Ok(ioctl_setflags(&file, flags | IFlags::TOPDIR)?)
    });
    // Without it the run is only less steady.
    drop(flagged);
}
