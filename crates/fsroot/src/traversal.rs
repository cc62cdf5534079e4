//! Resolution of paths with absolute links that stay inside, one component at a time.
//!
//! The kernel resolves an absolute link from `/`, so `RESOLVE_BENEATH` refuses it even if its target lies
//! beneath the root. Commands follow such links, and so do the file operations of this crate: when the
//! kernel has refused a path, a [`Traversal`] resolves it again from the root's descriptor. It opens each
//! name in the directory that the name before it opened, without following links, reads a link at its own
//! open descriptor, and continues in the middle of the path with the text that it read. An absolute target
//! that begins with the path of the root continues at the root's descriptor; any other is an escape.
//!
//! The traversal cannot leave the root, however the tree changes meanwhile: every descriptor was opened by one
//! name in a descriptor before it, `..` returns to the descriptor through which the path came, and the
//! kernel follows no link in any of these calls. No text is used a second time: a name that has become a link
//! since it was opened is opened again.
//!
//! ```text
//! root: /srv/w/ABC-1        abs -> /srv/w/ABC-1/src        up -> /srv/w/ABC-1/../ABC-2
//! abs/main.rs   opens  /srv/w/ABC-1/src/main.rs
//! up/x          fails  Escapes(AbsoluteLink)
//! ```

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat};
use rustix::io::Errno;

use crate::error::Escape;
use crate::resolve::{self, INSIDE, MAX_LINKS};
use crate::root::Root;

/// The rule of every step: one name, no link.
const STEP: ResolveFlags = INSIDE.union(ResolveFlags::NO_SYMLINKS);

/// Bounds the descriptors that a path of many directories holds; a longer path is too long.
const MAX_DEPTH: usize = 256;

/// The reason why a path was not resolved.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It leads outside, to this path.
    Escapes(Escape, PathBuf),
    /// A system call failed.
    Failed(Errno),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

/// The treatment of a link that is the last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLink {
    Follow,
    Keep,
}

/// The text that a pending name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Path,
    RelativeLink,
    AbsoluteLink,
}

#[derive(Clone, Debug)]
struct Pending {
    name: OsString,
    origin: Origin,
}

/// Opens the file at a path.
pub(crate) fn open(root: &Root, path: &Path, flags: OFlags) -> Result<OwnedFd, Stop> {
    let mut traversal = Traversal::new(root, path);
    let keeps = flags.contains(OFlags::NOFOLLOW);
    let last = if keeps { LastLink::Keep } else { LastLink::Follow };
    loop {
        let reached = traversal.advance(last)?;
        let name = reached.as_ref().map_or(OsStr::new("."), |last| &last.name);
        let name = Path::new(name);
        match resolve::open_with(traversal.current(), name, flags, Mode::empty(), STEP) {
            // It has become a link since it was looked at.
            Err(Errno::LOOP) if reached.is_some() => traversal.repeat(reached)?,
            opened => return Ok(opened?),
        }
    }
}

/// Opens the directory of the file that a path leads to through links at its end, and returns the name of the
/// file in it; no name if the path leads to a directory.
pub(crate) fn open_parent(root: &Root, path: &Path) -> Result<(OwnedFd, Option<OsString>), Stop> {
    let mut traversal = Traversal::new(root, path);
    let last = traversal.advance(LastLink::Follow)?;
    let parent = traversal
        .current()
        .try_clone_to_owned()
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok((parent, last.map(|last| last.name)))
}

/// Returns the path outside that a path leads to; `None` if it stays inside.
pub(crate) fn outside(root: &Root, path: &Path) -> Result<Option<PathBuf>, Errno> {
    match Traversal::new(root, path).advance(LastLink::Follow) {
        Err(Stop::Escapes(Escape::DanglingLink, _)) | Ok(_) => Ok(None),
        Err(Stop::Escapes(_, outside)) => Ok(Some(outside)),
        Err(Stop::Failed(errno)) => Err(errno),
    }
}

/// A path that is being resolved.
#[derive(Debug)]
struct Traversal<'a> {
    root: &'a Root,
    /// The directories on the way, from the root down and without it.
    directories: Vec<OwnedFd>,
    /// The names to resolve, the next one last.
    pending: Vec<Pending>,
    links: usize,
}

impl<'a> Traversal<'a> {
    fn new(root: &'a Root, path: &Path) -> Self {
        let mut traversal = Self { root, directories: Vec::new(), pending: Vec::new(), links: 0 };
        traversal.continue_with(path, Origin::Path);
        traversal
    }

    fn current(&self) -> BorrowedFd<'_> {
        self.directories.last().map_or(self.root.as_fd(), AsFd::as_fd)
    }

    /// Resolves all but the last name, which exists and is no link that has to be followed; `None` if the path
    /// ends in the current directory.
    fn advance(&mut self, last_link: LastLink) -> Result<Option<Pending>, Stop> {
        while let Some(next) = self.pending.pop() {
            match next.name.as_bytes() {
                b"." => continue,
                b".." if self.directories.pop().is_some() => continue,
                b".." => return Err(self.climb(next.origin)),
                _ => {}
            }
            let entry = self.look_at(&next)?;
            let kind = FileType::from_raw_mode(fstat(&entry)?.st_mode);
            let is_last = self.pending.is_empty();
            match kind {
                FileType::Symlink if !is_last || last_link == LastLink::Follow => {
                    self.follow(&entry)?;
                }
                _ if is_last => return Ok(Some(next)),
                FileType::Directory if self.directories.len() < MAX_DEPTH => {
                    self.directories.push(entry);
                }
                FileType::Directory => return Err(Errno::NAMETOOLONG.into()),
                _ => return Err(Errno::NOTDIR.into()),
            }
        }
        Ok(None)
    }

    /// Opens a name in the current directory, without following it.
    fn look_at(&self, next: &Pending) -> Result<OwnedFd, Stop> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let name = Path::new(&next.name);
        let opened = resolve::open_with(self.current(), name, flags, Mode::empty(), INSIDE);
        opened.map_err(|errno| match (errno, next.origin) {
            (Errno::NOENT, Origin::RelativeLink | Origin::AbsoluteLink) => {
                Stop::Escapes(Escape::DanglingLink, PathBuf::new())
            }
            (errno, _) => errno.into(),
        })
    }

    /// Continues with the target of an open link.
    fn follow(&mut self, link: &OwnedFd) -> Result<(), Stop> {
        self.count_link()?;
        let target = resolve::read_link_at(link.as_fd(), OsStr::new(""))?;
        if !target.is_absolute() {
            self.continue_with(&target, Origin::RelativeLink);
            return Ok(());
        }
        let top = self.root.path();
        // A root without a path has no absolute names.
        let inside = target.strip_prefix(top).ok().filter(|_| top.is_absolute());
        let Some(inside) = inside else {
            return Err(Stop::Escapes(Escape::AbsoluteLink, self.rest_below(target)));
        };
        if ends_in_slash(&target) {
            self.pending.push(Pending { name: ".".into(), origin: Origin::AbsoluteLink });
        }
        self.directories.clear();
        self.continue_with(inside, Origin::AbsoluteLink);
        Ok(())
    }

    fn count_link(&mut self) -> Result<(), Stop> {
        self.links += 1;
        if self.links > MAX_LINKS { Err(Errno::LOOP.into()) } else { Ok(()) }
    }

    /// Looks at the last name again, as often as links may be followed.
    fn repeat(&mut self, last: Option<Pending>) -> Result<(), Stop> {
        self.count_link()?;
        self.pending.extend(last);
        Ok(())
    }

    fn continue_with(&mut self, path: &Path, origin: Origin) {
        if ends_in_slash(path) {
            self.pending.push(Pending { name: ".".into(), origin });
        }
        let names = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some(OsStr::new("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.pending.extend(names.map(|name| Pending { name: name.to_owned(), origin }));
    }

    /// Returns the error of a `..` above the root.
    fn climb(&self, origin: Origin) -> Stop {
        let escape = match origin {
            Origin::Path => Escape::Climbs,
            Origin::RelativeLink => Escape::OutwardLink,
            Origin::AbsoluteLink => Escape::AbsoluteLink,
        };
        let above = self.root.path().parent().unwrap_or(Path::new("/"));
        Stop::Escapes(escape, self.rest_below(above.to_owned()))
    }

    /// Returns a path outside with the names that are left.
    fn rest_below(&self, mut outside: PathBuf) -> PathBuf {
        outside.extend(self.pending.iter().rev().map(|next| &next.name));
        outside
    }
}

/// Returns whether a path can only name a directory; [`Path::components`] does not show it.
fn ends_in_slash(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}
