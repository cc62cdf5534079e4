//! Creation of directories, links, files and mount points beneath one directory.
//!
//! The process may be root, and the directory may be a workspace with links to anywhere in it. So every
//! path is resolved beneath the top with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`: no link is followed
//! and no path leads out.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, mknodat, openat, openat2,
    symlinkat,
};
use rustix::io::Errno;
use rustix::process::umask;

use super::{SetupError, SetupStep, StepContext};

const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);

/// A directory in which entries are created by their absolute paths inside the future root.
#[derive(Debug)]
pub(super) struct DirectoryBuilder {
    top: OwnedFd,
    /// The path that `top` will have in the root directory; `/` unless it is a part of a larger tree.
    path: PathBuf,
    opened: HashMap<PathBuf, OwnedFd>,
}

impl DirectoryBuilder {
    pub(super) fn new(top: OwnedFd) -> Self {
        Self::below(Path::new("/"), top)
    }

    /// Builds the directory that will be at `path`; all entries must be below it.
    pub(super) fn below(path: &Path, top: OwnedFd) -> Self {
        Self { top, path: path.to_owned(), opened: HashMap::new() }
    }

    /// Builds in the root directory of the calling process, including the mounts in it.
    pub(super) fn of_root() -> Result<Self, SetupError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, "/", flags, Mode::empty()).during(SetupStep::Root)?;
        Ok(Self::new(top))
    }

    /// Creates a directory and its missing parents.
    pub(super) fn directory(&mut self, path: &Path) -> Result<(), SetupError> {
        self.make(path, |above, name| mkdirat(above, name, DIRECTORY_MODE))
    }

    /// Creates an empty file as a mount point, unless the path exists.
    pub(super) fn empty_file(&mut self, path: &Path) -> Result<(), SetupError> {
        self.make(path, |above, name| mknodat(above, name, FileType::RegularFile, FILE_MODE, 0))
    }

    /// Creates a character device with this mode and number, which only root may.
    pub(super) fn device(&mut self, path: &Path, mode: u32, number: u64) -> io::Result<()> {
        let failed = |failure: SetupError| io::Error::from_raw_os_error(failure.errno);
        let (above, name) = self.above(path).map_err(failed)?;
        let mode = Mode::from_raw_mode(mode & 0o666);
        mknodat(above, name, FileType::CharacterDevice, mode, number)?;
        Ok(rustix::fs::chmodat(above, name, mode, AtFlags::empty())?)
    }

    /// Opens an entry as an `O_PATH` descriptor.
    pub(super) fn open_entry(&self, path: &Path) -> Result<OwnedFd, SetupError> {
        self.open(path, OFlags::NOFOLLOW).during_with(SetupStep::Root, path)
    }

    /// Creates a file with these contents.
    pub(super) fn file(&mut self, path: &Path, bytes: &[u8]) -> Result<(), SetupError> {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (above, name) = self.above(path)?;
        let file = openat(above, name, flags, FILE_MODE).during_with(SetupStep::Root, path)?;
        match rustix::io::write(file, bytes).during_with(SetupStep::Root, path)? {
            written if written < bytes.len() => {
                Err(Errno::NOSPC).during_with(SetupStep::Root, path)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn link(&mut self, path: &Path, target: &Path) -> Result<(), SetupError> {
        let (above, name) = self.above(path)?;
        symlinkat(target, above, name).during_with(SetupStep::Root, path)
    }

    fn make(
        &mut self,
        path: &Path,
        make: impl Fn(BorrowedFd<'_>, &OsStr) -> Result<(), Errno>,
    ) -> Result<(), SetupError> {
        if path == self.path {
            return Ok(());
        }
        let (above, name) = self.above(path)?;
        match make(above, name) {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS) => Ok(()),
            Err(errno) => Err(errno).during_with(SetupStep::Root, path),
        }
    }

    /// Opens the parent directory of a path, creating it if it is missing, and returns the last name.
    fn above<'a>(&mut self, path: &'a Path) -> Result<(BorrowedFd<'_>, &'a OsStr), SetupError> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL).during_with(SetupStep::Root, path);
        };
        if above == self.path {
            return Ok((self.top.as_fd(), name));
        }
        if !self.opened.contains_key(above) {
            let opened = match self.open(above, OFlags::DIRECTORY) {
                Err(Errno::NOENT) => {
                    self.directory(above)?;
                    self.open(above, OFlags::DIRECTORY)
                }
                opened => opened,
            };
            self.opened.insert(above.to_owned(), opened.during_with(SetupStep::Root, above)?);
        }
        Ok((self.opened[above].as_fd(), name))
    }

    fn open(&self, path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | more;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let relative = path.strip_prefix(&self.path).unwrap_or(path);
        openat2(&self.top, relative, flags, Mode::empty(), resolve)
    }
}

/// Runs `work` with umask 022. The operator's umask is for files that commands create; the entries of a
/// root directory must be readable by the commands' user.
pub(super) fn with_public_umask<T>(work: impl FnOnce() -> T) -> T {
    let before = umask(Mode::from_raw_mode(0o022));
    let result = work();
    umask(before);
    result
}
