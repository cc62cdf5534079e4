//! Reading regular files.
//!
//! Every open is non-blocking and checked for its type afterwards, so that a FIFO or device that takes the
//! place of a file can neither block the server nor be read. Reads are bounded by the caller's limit and do
//! not trust the file's size, which is only a hint for the buffer.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, OnPath, Problem};
use crate::metadata::{FileKind, Metadata};
use crate::resolve;
use crate::root::{Root, stat};

/// The usual limit of one read.
pub const MAX_READ_BYTES: u64 = 2 * 1024 * 1024;

/// Flags for reading. Without `NONBLOCK`, opening a FIFO waits for its other end.
pub(crate) const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A part of a file with the file's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The bytes from the requested offset.
    pub bytes: Vec<u8>,
    /// The file's size when it was opened.
    pub size: u64,
}

/// A file that was read and is still open.
#[derive(Debug)]
pub struct OpenedFile {
    /// The contents.
    pub bytes: Vec<u8>,
    /// The metadata from before the contents were read.
    pub metadata: Metadata,
    /// The open file. While it is open, its inode number is not reused.
    pub file: File,
}

impl Root {
    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &Path) -> Result<(File, Metadata), Error> {
        let file = resolve::open(self, path, READ).map_err(|error| self.name_kind(path, error))?;
        regular(file, path)
    }

    /// Opens a regular file for reading and writing, and creates it with `mode` if it is missing. No
    /// component may be a link: this is for files of the server.
    pub fn open_or_create(&self, path: &Path, mode: u32) -> Result<File, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY;
        let _acting = self.act_as_writer()?;
        let file = resolve::open_strict(self.as_fd(), path, flags, Mode::from_raw_mode(mode))
            .map_err(|error| self.name_kind(path, error))?;
        regular(file, path).map(|(file, _)| file)
    }

    /// Overwrites the beginning of a file of the server in place, or creates it with `mode`. Equal contents
    /// are not written again, and a longer file keeps its end. This is not atomic: a concurrent reader, or a
    /// reader after a crash, may find a part of the new contents.
    pub fn overwrite(&self, path: &Path, contents: &[u8], mode: u32) -> Result<(), Error> {
        let file = self.open_or_create(path, mode)?;
        let mut present = vec![0; contents.len()];
        if file.read_exact_at(&mut present, 0).is_ok() && present == contents {
            return Ok(());
        }
        file.write_all_at(contents, 0).on(path)
    }

    /// Reads a whole regular file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
        self.read_opened(path, limit).map(|held| held.bytes)
    }

    /// Reads a whole regular file of at most `limit` bytes and keeps it open. While it is open, no other
    /// file can get its [`Identity`](crate::Identity), even after it was replaced.
    pub fn read_opened(&self, path: &Path, limit: u64) -> Result<OpenedFile, Error> {
        let (file, metadata) = self.open_file(path)?;
        let bytes = read_whole(&file, &metadata, limit, path)?;
        Ok(OpenedFile { bytes, metadata, file })
    }

    /// Reads a whole regular file of at most `limit` bytes. No component may be a link: this is for files of
    /// the server.
    pub fn read_strict(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
        let file = resolve::open_strict(self.as_fd(), path, READ, Mode::empty())
            .map_err(|error| self.name_kind(path, error))?;
        let (file, metadata) = regular(file, path)?;
        read_whole(&file, &metadata, limit, path)
    }

    /// Reads at most `length` bytes from `offset`; fewer if the file ends before.
    pub fn read_range(&self, path: &Path, offset: u64, length: u64) -> Result<FileRange, Error> {
        let (file, metadata) = self.open_file(path)?;
        read_part(file, &metadata, offset, length, path)
    }

    /// Replaces the `ENXIO` of a socket, or of a FIFO without a reader, by an error with the file's type.
    fn name_kind(&self, path: &Path, error: Error) -> Error {
        match std::error::Error::source(&error)
            .and_then(|source| source.downcast_ref::<std::io::Error>())
            .and_then(Errno::from_io_error)
        {
            Some(Errno::NXIO) => match self.metadata(path) {
                Ok(metadata) => Error::new(path, Problem::NotRegular(metadata.kind)),
                Err(_) => error,
            },
            _ => error,
        }
    }
}

pub(crate) fn regular(file: OwnedFd, path: &Path) -> Result<(File, Metadata), Error> {
    let metadata = stat(file.as_fd(), path)?;
    match metadata.kind {
        FileKind::File => Ok((File::from(file), metadata)),
        FileKind::Directory => Err(Error::new(path, Problem::IsADirectory)),
        kind => Err(Error::new(path, Problem::NotRegular(kind))),
    }
}

pub(crate) fn read_whole(
    file: &File,
    metadata: &Metadata,
    limit: u64,
    path: &Path,
) -> Result<Vec<u8>, Error> {
    let too_large = |size| Error::new(path, Problem::TooLarge { size, limit });
    if metadata.size > limit {
        return Err(too_large(metadata.size));
    }
    // One byte beyond the limit shows that the file grew while it was read.
    let bytes = read_up_to(file, metadata.size, limit.saturating_add(1), path)?;
    let read = bytes.len() as u64;
    if read > limit { Err(too_large(read)) } else { Ok(bytes) }
}

fn read_part(
    mut file: File,
    metadata: &Metadata,
    offset: u64,
    length: u64,
    path: &Path,
) -> Result<FileRange, Error> {
    let rest = metadata.size.saturating_sub(offset);
    if rest == 0 {
        return Ok(FileRange { bytes: Vec::new(), size: metadata.size });
    }
    file.seek(SeekFrom::Start(offset)).on(path)?;
    let bytes = read_up_to(&file, rest, length, path)?;
    Ok(FileRange { bytes, size: metadata.size })
}

/// Reads to the end of the file, at most `limit` bytes.
fn read_up_to(file: &File, expected: u64, limit: u64, path: &Path) -> Result<Vec<u8>, Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // The size is only a hint: a sparse file must not make the server reserve memory up front.
    let hint = usize::try_from(expected.min(MAX_READ_BYTES)).unwrap_or(0).min(limit);
    // One byte more, so that the read that finds the end does not grow the buffer.
    let mut bytes = Vec::with_capacity(hint + 1);
    while bytes.len() < limit {
        bytes.reserve(1);
        match rustix::io::read(file, spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::from_errno(path, errno)),
        }
    }
    bytes.truncate(limit);
    Ok(bytes)
}
