//! File work as it is done without Carrel.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file in one step so that it survives a power loss.
pub(crate) fn replace_synced(path: &Path, contents: &[u8]) -> io::Result<()> {
    replace_whole(path, contents)?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Replaces a file in one step so that a power loss leaves the old one or the new one.
pub(crate) fn replace_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(contents)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

/// Replaces a file in one step and leaves it to the system when it reaches the disk.
pub(crate) fn replace_buffered(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    std::fs::write(&temporary, contents)?;
    std::fs::rename(&temporary, path)
}

/// Makes the entries of a directory survive a power loss.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
