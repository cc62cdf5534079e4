//! Anonymous memory files, to pass bytes to another process.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};

/// Returns a memory file with these bytes, positioned at their start.
pub(crate) fn holding(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("carrel", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}
