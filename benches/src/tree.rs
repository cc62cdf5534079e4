//! Large trees of files.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Fault;

/// How many files stand in one directory.
const FILES_PER_DIRECTORY: usize = 100;

/// How many directories stand in one directory.
const DIRECTORIES_PER_DIRECTORY: usize = 50;

/// Makes a directory with so many empty files, two levels below it, and waits for the disk.
///
/// The files are empty because freeing their blocks is the disk's own work, which can take longer
/// than everything else and would hide what is compared.
pub(crate) fn build(top: &Path, files: usize) -> Result<(), Fault> {
    for first in (0..files).step_by(FILES_PER_DIRECTORY) {
        let index = first / FILES_PER_DIRECTORY;
        let group = top.join(format!("group-{}", index / DIRECTORIES_PER_DIRECTORY));
        let directory = group.join(format!("directory-{index}"));
        std::fs::create_dir_all(&directory)?;
        for file in first..files.min(first + FILES_PER_DIRECTORY) {
            std::fs::write(directory.join(format!("file-{file}.txt")), b"")?;
        }
    }
    // Otherwise the first row that syncs anything pays for the whole tree.
    rustix::fs::syncfs(std::fs::File::open(top)?)?;
    Ok(())
}

/// What a tree takes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
}

/// Counts everything below a directory, as a short program would.
pub(crate) fn count(directory: &Path) -> io::Result<Total> {
    let mut total = Total::default();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total.bytes += metadata.blocks() * 512;
        total.entries += 1;
        if metadata.is_dir() {
            let below = count(&entry.path())?;
            total.bytes += below.bytes;
            total.entries += below.entries;
        }
    }
    Ok(total)
}
