//! Events about the entries of open directories, by inotify.
//!
//! The kernel queues an event before the call that caused it returns, so that a reader of the queue after a write
//! has its event. These changes have none:
//!
//! - a write through a memory mapping, or by asynchronous I/O of the old kind (`io_submit`): the event comes when the
//!   file is closed for the last time, which for a mapping is its end;
//! - a write through another hard link of a file, unless that name's directory is watched too;
//! - anything that another host does on a file system of the network, or a file system in user space does by itself.
//!   [`has_events`] knows the file systems of which that cannot be.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::{Errno, ioctl_fionread};

use crate::error::{Error, OnPath};
use crate::open_directory::Directory;
use crate::root::{Root, proc_path};

/// Local file systems that all writers reach through this kernel. Not among them is overlayfs, whose lower and upper
/// directories can be written to beside it.
const LOCAL: [u32; 5] = [EXT, XFS, BTRFS, F2FS, TMPFS];
const EXT: u32 = 0xEF53;
const XFS: u32 = 0x5846_5342;
const BTRFS: u32 = 0x9123_683E;
const F2FS: u32 = 0xF2F5_2010;
const TMPFS: u32 = 0x0102_1994;

/// Bytes of events that are read at a time.
const BUFFER: usize = 8 << 10;

/// The largest event: its head, and the longest name.
const MAX_EVENT: usize = 16 + 256;

/// A queue of events about directories.
#[derive(Debug)]
pub struct Watcher {
    queue: OwnedFd,
}

/// A directory of a [`Watcher`]. The same directory has the same number under every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(i32);

/// A change of a directory or of one of its entries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WatchEvent {
    /// An entry of a directory.
    Entry {
        /// The directory.
        directory: WatchId,
        /// The name of the entry.
        name: OsString,
        /// It is a directory.
        is_directory: bool,
        /// It has come, gone, or now is something else. Otherwise its content or metadata changed.
        is_other: bool,
    },
    /// The metadata of a directory itself, or its place.
    Directory(WatchId),
    /// No more events come from a directory, because it is gone or was removed from the queue.
    Ended(WatchId),
    /// The queue was full, and events are lost.
    Lost,
}

/// Returns whether every write to the file system of a directory has an event, the exceptions above aside.
pub fn has_events(root: &Root) -> bool {
    let kind = rustix::fs::fstatfs(root).ok().and_then(|stat| u32::try_from(stat.f_type).ok());
    kind.is_some_and(|kind| LOCAL.contains(&kind))
}

impl Watcher {
    /// Creates an empty queue. The system limits their number.
    pub fn new() -> Result<Self, Error> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
        Ok(Self { queue: queue.on(Path::new(""))? })
    }

    /// Watches a directory; events of its entries are queued from now on. The system limits the number of directories.
    pub fn add(&self, directory: &Directory) -> Result<WatchId, Error> {
        let wanted = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        // By way of procfs, because the call takes no descriptor.
        let path = proc_path(directory.as_fd());
        inotify::add_watch(&self.queue, path, wanted).map(WatchId).on(Path::new(""))
    }

    /// Watches a directory no longer.
    pub fn remove(&self, id: WatchId) {
        // It may have ended by itself.
        let _ = inotify::remove_watch(&self.queue, id.0);
    }

    /// Returns whether no event is queued.
    pub fn is_empty(&self) -> bool {
        ioctl_fionread(&self.queue).is_ok_and(|queued| queued == 0)
    }

    /// Takes the events that are queued, each once, in the order of their first occurrence. Does not wait.
    pub fn take(&self) -> Result<Vec<WatchEvent>, Error> {
        let queued = ioctl_fionread(&self.queue).on(Path::new(""))?;
        if queued == 0 {
            return Ok(Vec::new());
        }
        let mut buffer = [const { MaybeUninit::uninit() }; BUFFER];
        let mut reader = inotify::Reader::new(self.queue.as_fd(), &mut buffer);
        // What is queued meanwhile can wait, so that a busy writer does not keep the reader.
        let mut reads =
            usize::try_from(queued).unwrap_or(usize::MAX) / (BUFFER - 2 * MAX_EVENT) + 1;
        let (mut events, mut seen) = (Vec::new(), HashSet::new());
        loop {
            if reader.is_buffer_empty() {
                if reads == 0 {
                    return Ok(events);
                }
                reads -= 1;
            }
            match reader.next() {
                Ok(event) => {
                    let event = WatchEvent::of(&event);
                    if seen.insert(event.clone()) {
                        events.push(event);
                    }
                }
                Err(Errno::AGAIN) => return Ok(events),
                Err(Errno::INTR) => reads += 1,
                Err(error) => return Err(error).on(Path::new("")),
            }
        }
    }
}

impl WatchEvent {
    fn of(event: &inotify::Event<'_>) -> Self {
        let flags = event.events();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Self::Lost;
        }
        let directory = WatchId(event.wd());
        if flags.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            return Self::Ended(directory);
        }
        let Some(name) = event.file_name().filter(|name| !name.is_empty()) else {
            return Self::Directory(directory);
        };
        let other =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        Self::Entry {
            directory,
            name: OsStr::from_bytes(name.to_bytes()).to_owned(),
            is_directory: flags.contains(ReadFlags::ISDIR),
            is_other: flags.intersects(other),
        }
    }
}
