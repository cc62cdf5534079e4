//! Resolution beneath a directory, done by the kernel, and what its refusals mean.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2, readlinkat};
use rustix::io::Errno;

use crate::error::{Error, Escape, Problem};

/// How often a resolution is repeated while renames elsewhere disturb it.
const MAX_TRIES: usize = 256;

/// The number of links the kernel itself follows in one path.
pub(crate) const MAX_LINKS: usize = 40;

/// Resolves `path` beneath `root`, following links that stay inside.
pub(crate) fn open(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Error> {
    let target = checked(path)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    open_with(root, target, flags, mode, resolve).map_err(|errno| explain(root, path, errno))
}

/// Resolves `path` beneath `root` with no link and no mount point on the way.
pub(crate) fn open_strict(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Error> {
    let target = checked(path)?;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_XDEV;
    open_with(root, target, flags, mode, resolve).map_err(|errno| {
        match errno {
            Errno::LOOP => Error::new(path, Problem::Link),
            // A name that does not climb can only leave through a mount.
            Errno::XDEV if !climbs(path) => Error::new(path, Problem::CrossesMount),
            // No link stands on the way, so none can be dangling.
            Errno::NOENT if !climbs(path) => Error::new(path, Problem::NotFound),
            errno => explain(root, path, errno),
        }
    })
}

/// Refuses what no kernel call should see; the empty path is the directory itself.
fn checked(path: &Path) -> Result<&Path, Error> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(Error::new(path, Problem::Nul));
    }
    if path.is_absolute() {
        return Err(Error::new(path, Problem::Escapes(Escape::Absolute)));
    }
    Ok(if path.as_os_str().is_empty() { Path::new(".") } else { path })
}

fn open_with(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    for _ in 0..MAX_TRIES {
        match openat2(root, path, flags | OFlags::CLOEXEC, mode, resolve) {
            // A rename or mount anywhere disturbed the walk; nothing is wrong with the path.
            Err(Errno::AGAIN) => std::thread::yield_now(),
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Turns an error number into what the caller needs to know.
///
/// The second look at the path is for the wording only: the refusal stands
/// whatever it finds.
fn explain(root: BorrowedFd<'_>, path: &Path, errno: Errno) -> Error {
    let problem = match errno {
        Errno::XDEV => Problem::Escapes(escape_of(root, path)),
        Errno::NOENT if climbs(path) => Problem::Escapes(Escape::Climbs),
        Errno::NOENT if first_missing_is_link(root, path) => Problem::Escapes(Escape::DanglingLink),
        errno => return Error::from_errno(path, errno),
    };
    Error::new(path, problem)
}

/// Tells whether a path leaves by its own `..`, whatever is on disk.
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

fn escape_of(root: BorrowedFd<'_>, path: &Path) -> Escape {
    if climbs(path) {
        return Escape::Climbs;
    }
    match first_unresolvable(root, path).and_then(|prefix| link_target(root, &prefix)) {
        Some(target) if target.is_absolute() => Escape::AbsoluteLink,
        _ => Escape::OutwardLink,
    }
}

fn first_missing_is_link(root: BorrowedFd<'_>, path: &Path) -> bool {
    first_unresolvable(root, path).is_some_and(|prefix| link_target(root, &prefix).is_some())
}

/// Finds the shortest leading part of a path that cannot be resolved.
fn first_unresolvable(root: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut prefix = PathBuf::new();
    path.components().find_map(|component| {
        prefix.push(component);
        let opened = open_with(root, &prefix, OFlags::PATH, Mode::empty(), resolve);
        opened.is_err().then(|| prefix.clone())
    })
}

fn link_target(root: BorrowedFd<'_>, path: &Path) -> Option<PathBuf> {
    let (parent, name) = split(path)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let parent = checked(parent).ok()?;
    let parent = open_with(root, parent, OFlags::PATH, Mode::empty(), resolve).ok()?;
    read_link_at(parent.as_fd(), name).ok()
}

/// Reads the target of the link `name` in an open directory.
pub(crate) fn read_link_at(parent: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf, Errno> {
    let target = readlinkat(parent, name, Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}

/// Splits a path into the directory it stands in and its last name.
pub(crate) fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    match path.components().next_back() {
        Some(Component::Normal(name)) => Some((path.parent()?, name)),
        _ => None,
    }
}

/// Tells whether a path is a plain name, so that it cannot lead anywhere else.
pub(crate) fn is_one_name(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes.contains(&0) && split(path).is_some_and(|(_, name)| name.as_bytes() == bytes)
}

/// An open directory and one name in it: what rename and unlink act on.
#[derive(Debug)]
pub(crate) struct ResolvedParent<'a> {
    pub(crate) parent: OwnedFd,
    pub(crate) name: &'a OsStr,
}

/// Opens the directory that holds the last name of `path`.
pub(crate) fn open_parent<'a>(
    root: BorrowedFd<'_>,
    path: &'a Path,
) -> Result<ResolvedParent<'a>, Error> {
    checked(path)?;
    let Some((parent, name)) = split(path) else {
        let problem = if climbs(path) { Problem::Escapes(Escape::Climbs) } else { Problem::NoName };
        return Err(Error::new(path, problem));
    };
    let parent = open(root, parent, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
        .map_err(|error| Error::new(path, error.problem()))?;
    Ok(ResolvedParent { parent, name })
}
