//! Copies of file contents: shared blocks where the file system can, the kernel's copy otherwise, and reading and
//! writing as the last means. Holes stay holes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{SeekFrom, copy_file_range, ioctl_ficlone, seek};
use rustix::io::Errno;

/// The bytes that are copied between two looks at the cancellation flag.
const PIECE: u64 = 8 << 20;

/// The buffer of the last means.
const BUFFER: usize = 128 * 1024;

/// The means by which contents are copied, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyMethod {
    /// The copy shares the blocks of the original until one of them is written.
    #[default]
    Clone,
    /// The kernel copies.
    Kernel,
    /// Contents are read and written.
    ReadWrite,
}

impl CopyMethod {
    /// Returns the name used in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::Kernel => "kernel",
            Self::ReadWrite => "read_write",
        }
    }

    /// Copies the contents of a file into an empty one. A means that the file systems do not have is not tried
    /// again: `self` becomes the next one. Returns false if `cancelled` was set before the copy was complete.
    pub fn copy(&mut self, from: &File, to: &File, cancelled: &AtomicBool) -> io::Result<bool> {
        if *self == Self::Clone {
            match ioctl_ficlone(to, from) {
                Ok(()) => return Ok(true),
                Err(errno) if is_missing(errno) => *self = Self::Kernel,
                Err(errno) => return Err(errno.into()),
            }
        }
        let length = from.metadata()?.len();
        let mut offset = 0;
        while let Some((start, end)) = next_data(from, offset, length)? {
            offset = start;
            while offset < end {
                if cancelled.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                match self.piece(from, to, offset, (end - offset).min(PIECE))? {
                    // The file was cut meanwhile.
                    0 => break,
                    copied => offset += copied,
                }
            }
            offset = end;
        }
        to.set_len(length)?;
        Ok(true)
    }

    fn piece(&mut self, from: &File, to: &File, offset: u64, length: u64) -> io::Result<u64> {
        if *self == Self::Kernel {
            let (mut source, mut target) = (offset, offset);
            let wanted = usize::try_from(length).unwrap_or(usize::MAX);
            match copy_file_range(from, Some(&mut source), to, Some(&mut target), wanted) {
                Ok(copied) => return Ok(copied as u64),
                Err(errno) if is_missing(errno) => *self = Self::ReadWrite,
                Err(errno) => return Err(errno.into()),
            }
        }
        let mut buffer = vec![0; BUFFER.min(usize::try_from(length).unwrap_or(BUFFER))];
        let read = from.read_at(&mut buffer, offset)?;
        to.write_all_at(&buffer[..read], offset)?;
        Ok(read as u64)
    }
}

/// Returns whether the kernel or the file system lacks the operation.
fn is_missing(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::PERM
    )
}

/// Returns the next part of a file that is not a hole.
fn next_data(file: &File, offset: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    if offset >= length {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(offset)) {
        Ok(start) => start,
        // Only a hole is left.
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not tell holes.
        Err(Errno::INVAL) => return Ok(Some((offset, length))),
        Err(errno) => return Err(errno.into()),
    };
    let end = seek(file, SeekFrom::Hole(start))?;
    Ok(Some((start, end.min(length))).filter(|(start, end)| start < end))
}
