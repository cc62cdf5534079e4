//! Path resolution beneath a directory, by the kernel.
//!
//! This module is the boundary of the crate: every path of a caller goes through [`open`], [`open_strict`]
//! or [`open_parent`], each of which is `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_MAGICLINKS`.
//! The kernel refuses `..` above the root, absolute paths and links that lead out, and checks this while it
//! walks the path, under its own locks. A check in user space (canonicalise, compare the prefix, open) would
//! leave a moment in which another process can put a link in place of a directory.
//!
//! There are two modes. [`open`] follows links that stay inside, as a user of a workspace expects.
//! [`open_strict`] follows none and crosses no mount point; it is for walks, removals and files of the
//! server, which must see exactly the tree that they listed.
//!
//! The kernel reports every escape as `EXDEV`, and gives up with `EAGAIN` if a rename disturbs the walk.
//! The latter is repeated [`MAX_TRIES`] times. The former includes absolute links that point inside, so [`open`]
//! resolves the path again one component at a time ([`crate::traversal`]), which follows them and says *how* any
//! other path escapes.
//!
//! ```text
//! root: /srv/w/ABC-1        link -> ../../etc      abs -> /srv/w/ABC-1/src      out -> /etc
//! src/../README.md   opens  /srv/w/ABC-1/README.md
//! abs/main.rs        opens  /srv/w/ABC-1/src/main.rs
//! ../ABC-2/x         fails  Escapes(Climbs)
//! link/passwd        fails  Escapes(OutwardLink)
//! out/passwd         fails  Escapes(AbsoluteLink)
//! ```

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2, readlinkat};
use rustix::io::Errno;

use crate::error::{Error, Escape, Problem};
use crate::root::Root;
use crate::traversal::{self, Stop};

/// The most attempts at a resolution that concurrent renames disturb.
const MAX_TRIES: usize = 256;

/// The number of links that the kernel follows in one path.
pub(crate) const MAX_LINKS: usize = 40;

/// The rule of every resolution.
pub(crate) const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// Resolves `path` beneath `root`, following links that stay inside.
pub(crate) fn open(root: &Root, path: &Path, flags: OFlags) -> Result<OwnedFd, Error> {
    let target = checked(path)?;
    match open_with(root.as_fd(), target, flags, Mode::empty(), INSIDE) {
        Err(Errno::XDEV) => {
            traversal::open(root, target, flags).map_err(|stop| explain_stop(path, &stop))
        }
        opened => opened.map_err(|errno| explain(root.as_fd(), path, errno)),
    }
}

/// Resolves `path` beneath `root`, without following links or crossing mount points.
pub(crate) fn open_strict(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Error> {
    let target = checked(path)?;
    let resolve = INSIDE | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    open_with(root, target, flags, mode, resolve).map_err(|errno| {
        match errno {
            Errno::LOOP => Error::new(path, Problem::Link),
            // Without `..` and links, a path can only leave through a mount.
            Errno::XDEV if !climbs(path) => Error::new(path, Problem::CrossesMount),
            // No link was followed, so none can be dangling.
            Errno::NOENT if !climbs(path) => Error::new(path, Problem::NotFound),
            errno => explain(root, path, errno),
        }
    })
}

/// Rejects absolute paths and NUL bytes; the empty path means the directory itself.
fn checked(path: &Path) -> Result<&Path, Error> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(Error::new(path, Problem::Nul));
    }
    if path.is_absolute() {
        return Err(Error::new(path, Problem::Escapes(Escape::Absolute)));
    }
    Ok(if path.as_os_str().is_empty() { Path::new(".") } else { path })
}

pub(crate) fn open_with(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    for _ in 0..MAX_TRIES {
        match openat2(root, path, flags | OFlags::CLOEXEC, mode, resolve) {
            // A concurrent rename or mount disturbed the walk; the path itself may be fine.
            Err(Errno::AGAIN) => std::thread::yield_now(),
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Turns an error number into an [`Error`]; for a path that does not exist, with the way in which it escapes.
///
/// The second inspection of the path only chooses the words; the operation has failed already.
fn explain(root: BorrowedFd<'_>, path: &Path, errno: Errno) -> Error {
    let problem = match errno {
        Errno::XDEV | Errno::NOENT if climbs(path) => Problem::Escapes(Escape::Climbs),
        Errno::NOENT if first_missing_is_link(root, path) => Problem::Escapes(Escape::DanglingLink),
        errno => return Error::from_errno(path, errno),
    };
    Error::new(path, problem)
}

fn explain_stop(path: &Path, stop: &Stop) -> Error {
    match stop {
        Stop::Escapes(..) | Stop::Failed(Errno::NOENT) if climbs(path) => {
            Error::new(path, Problem::Escapes(Escape::Climbs))
        }
        Stop::Escapes(escape, _) => Error::new(path, Problem::Escapes(*escape)),
        Stop::Failed(errno) => Error::from_errno(path, *errno),
    }
}

/// Returns whether a path climbs above its start by `..`, lexically.
fn climbs(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::ParentDir => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return true,
            },
            Component::Normal(_) => depth += 1,
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    false
}

fn first_missing_is_link(root: BorrowedFd<'_>, path: &Path) -> bool {
    first_unresolvable(root, path).is_some_and(|prefix| link_target(root, &prefix).is_some())
}

/// Returns the shortest prefix of a path that cannot be resolved.
fn first_unresolvable(root: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let mut prefix = PathBuf::new();
    path.components().find_map(|component| {
        prefix.push(component);
        let opened = open_with(root, &prefix, OFlags::PATH, Mode::empty(), INSIDE);
        opened.is_err().then(|| prefix.clone())
    })
}

fn link_target(root: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let (parent, name) = split(path)?;
    let parent = checked(parent).ok()?;
    let parent = open_with(root, parent, OFlags::PATH, Mode::empty(), INSIDE).ok()?;
    read_link_at(parent.as_fd(), name).ok()
}

/// Returns the target of the link `name` in an open directory.
pub(crate) fn read_link_at(parent: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf, Errno> {
    let target = readlinkat(parent, name, Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}

/// Splits a path into its parent and its last name; `None` if it ends in `.`, `..` or nothing.
pub(crate) fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    match path.components().next_back() {
        Some(Component::Normal(name)) => Some((path.parent()?, name)),
        _ => None,
    }
}

/// Returns whether a path is a single name, for calls that do not resolve beneath.
pub(crate) fn is_one_name(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    // Asked for every file of a walk, so without the parser of paths.
    !matches!(bytes, b"" | b"." | b"..") && !bytes.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// An opened parent directory and the last name of a path, as `renameat` and `unlinkat` take them.
#[derive(Debug)]
pub(crate) struct ResolvedParent<'a> {
    pub(crate) parent: OwnedFd,
    pub(crate) name: Cow<'a, OsStr>,
}

/// Opens the parent directory of `path`. The last name is not resolved.
pub(crate) fn open_parent<'a>(root: &Root, path: &'a Path) -> Result<ResolvedParent<'a>, Error> {
    checked(path)?;
    let Some((parent, name)) = split(path) else {
        let problem = if climbs(path) { Problem::Escapes(Escape::Climbs) } else { Problem::NoName };
        return Err(Error::new(path, problem));
    };
    let parent = open(root, parent, OFlags::PATH | OFlags::DIRECTORY)
        .map_err(|error| Error::new(path, error.problem()))?;
    Ok(ResolvedParent { parent, name: Cow::Borrowed(name) })
}

/// Opens the parent directory of the file that `path` leads to, following links at its end.
pub(crate) fn open_target<'a>(root: &Root, path: &'a Path) -> Result<ResolvedParent<'a>, Error> {
    let target = open_parent(root, path)?;
    if read_link_at(target.parent.as_fd(), &target.name).is_err() {
        // Not a link, or missing.
        return Ok(target);
    }
    // Links that lead out or to nothing, or in a circle, fail here with the error that reading has.
    open(root, path, OFlags::PATH)?;
    let (parent, name) =
        traversal::open_parent(root, path).map_err(|stop| explain_stop(path, &stop))?;
    let name = name.ok_or_else(|| Error::new(path, Problem::IsADirectory))?;
    Ok(ResolvedParent { parent, name: Cow::Owned(name) })
}
