//! Errors of file operations, with their stable codes.

use std::io;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Coded};
use rustix::io::Errno;
use serde_json::json;

use crate::FileKind;

/// A refused or failed operation, with the path as the caller gave it. The message shows at most 200
/// characters of the path, with control characters escaped.
#[derive(Debug, thiserror::Error)]
#[error("{problem}: {}", shown(path))]
pub struct Error {
    path: PathBuf,
    #[source]
    source: Option<io::Error>,
    problem: Problem,
}

/// The cause of a refused or failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The path would leave the directory it belongs to.
    #[error("path leaves the workspace, {0}")]
    Escapes(Escape),
    /// A component of the path is a sensitive name.
    #[error("path is not open to browsing")]
    Sensitive,
    /// The path contains a NUL byte.
    #[error("path contains a NUL byte")]
    Nul,
    /// The operation needs a name inside the directory, not the directory itself.
    #[error("path does not end in a name")]
    NoName,
    /// The path does not exist.
    #[error("no such file or directory")]
    NotFound,
    /// The path exists already.
    #[error("something exists already")]
    Exists,
    /// A component that must be a directory is not one.
    #[error("not a directory")]
    NotADirectory,
    /// A file was expected and a directory is there.
    #[error("is a directory")]
    IsADirectory,
    /// A regular file was expected and a file of another type is there.
    #[error("not a regular file but a {0}")]
    NotRegular(FileKind),
    /// A component is a symbolic link, in an operation that follows none.
    #[error("a symbolic link is not allowed here")]
    Link,
    /// The directory still has entries.
    #[error("directory is not empty")]
    NotEmpty,
    /// A name or the whole path is too long for the file system.
    #[error("name is too long")]
    NameTooLong,
    /// Links lead in a circle.
    #[error("too many symbolic links, or links in a circle")]
    LinkLoop,
    /// The file is larger than the caller allows.
    #[error("file has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The file's size.
        size: u64,
        /// The caller's limit.
        limit: u64,
    },
    /// Another file system is mounted there.
    #[error("another file system is mounted there")]
    CrossesMount,
    /// The operating system denied access.
    #[error("permission denied")]
    PermissionDenied,
    /// No space or no quota is left on the file system.
    #[error("no space left on the file system")]
    DiskFull,
    /// Renames by other processes disturbed every one of a bounded number of attempts.
    #[error("directories kept changing; try again")]
    Contended,
    /// The kernel has no `openat2`.
    #[error(
        "the kernel refuses openat2, which needs Linux 5.6 or later and a container that allows it"
    )]
    KernelTooOld,
    /// Any other error of the operating system.
    #[error("operation failed")]
    Io,
}

/// The way in which a path escapes from the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Escape {
    /// It starts with `/`.
    #[error("it is absolute; give it relative to the workspace")]
    Absolute,
    /// It climbs with `..`.
    #[error("it climbs above the top with `..`")]
    Climbs,
    /// A link on the way is absolute and does not begin with the path of the root.
    #[error("an absolute link on the way leads outside")]
    AbsoluteLink,
    /// A link on the way climbs out.
    #[error("a link on the way leads outside")]
    OutwardLink,
    /// A link on the way has no target, so it cannot be known that it stays inside.
    #[error("a link on the way points at nothing")]
    DanglingLink,
}

impl Escape {
    /// Returns the name used in error details.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absolute => "absolute",
            Self::Climbs => "climbs",
            Self::AbsoluteLink => "absolute_link",
            Self::OutwardLink => "outward_link",
            Self::DanglingLink => "dangling_link",
        }
    }
}

impl Error {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_owned(), source: None, problem }
    }

    /// Translates an error number whose cause is clear without inspecting the path.
    pub(crate) fn from_errno(path: &Path, errno: Errno) -> Self {
        let problem = match errno {
            Errno::NOENT => Problem::NotFound,
            Errno::EXIST => Problem::Exists,
            Errno::NOTDIR => Problem::NotADirectory,
            Errno::ISDIR => Problem::IsADirectory,
            Errno::NOTEMPTY => Problem::NotEmpty,
            Errno::NAMETOOLONG => Problem::NameTooLong,
            Errno::LOOP => Problem::LinkLoop,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Problem::PermissionDenied,
            Errno::NOSPC | Errno::DQUOT => Problem::DiskFull,
            Errno::AGAIN => Problem::Contended,
            Errno::NOSYS => Problem::KernelTooOld,
            _ => Problem::Io,
        };
        let source =
            matches!(problem, Problem::Io | Problem::PermissionDenied).then(|| errno.into());
        Self { path: path.to_owned(), source, problem }
    }

    /// Returns the error of an operation on an open file, with the path that it was opened by.
    pub fn of_io(path: &Path, error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => Self::from_errno(path, errno),
            None => Self { path: path.to_owned(), source: Some(error), problem: Problem::Io },
        }
    }

    /// Returns the cause.
    pub fn problem(&self) -> Problem {
        self.problem
    }

    /// Returns the path as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the same error with the path by which the caller knows the entry.
    #[must_use]
    pub fn at(self, path: &Path) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Returns the same error with a path that begins in another directory than that of the operation.
    #[must_use]
    pub fn below(self, directory: &Path) -> Self {
        let path = if self.path == Path::new(".") && !directory.as_os_str().is_empty() {
            directory.to_owned()
        } else {
            directory.join(&self.path)
        };
        Self { path, ..self }
    }

    /// Returns whether the path does not exist.
    pub fn is_not_found(&self) -> bool {
        self.problem == Problem::NotFound
    }
}

/// Attaches the path of an operation to the error of its system call.
pub(crate) trait OnPath<T> {
    fn on(self, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> OnPath<T> for Result<T, E> {
    fn on(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error::of_io(path, error.into()))
    }
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self.problem {
            Problem::Escapes(_) | Problem::Link => Code::SandboxViolation,
            Problem::Sensitive => Code::SensitivePath,
            Problem::Nul | Problem::NoName => Code::InvalidPath,
            Problem::NotFound => Code::NotFound,
            Problem::Exists => Code::AlreadyExists,
            Problem::NotADirectory => Code::NotADirectory,
            Problem::IsADirectory => Code::IsADirectory,
            Problem::NotRegular(_) => Code::NotARegularFile,
            Problem::NotEmpty => Code::DirectoryNotEmpty,
            Problem::NameTooLong => Code::NameTooLong,
            Problem::LinkLoop => Code::LinkLoop,
            Problem::TooLarge { .. } => Code::TooLarge,
            Problem::CrossesMount => Code::CrossesMount,
            Problem::PermissionDenied => Code::PermissionDenied,
            Problem::DiskFull => Code::DiskFull,
            Problem::Contended => Code::Contended,
            Problem::KernelTooOld => Code::KernelUnsupported,
            Problem::Io => Code::Io,
        }
    }

    fn detail(&self) -> serde_json::Value {
        let mut detail = json!({ "path": self.path.to_string_lossy() });
        if let Problem::Escapes(escape) = self.problem {
            detail["reason"] = escape.as_str().into();
        }
        detail
    }
}

/// Bounds how much of a hostile path is repeated in a message.
const MAX_SHOWN: usize = 200;

fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut shown: String = text.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    if shown.is_empty() { ".".to_owned() } else { shown }
}
