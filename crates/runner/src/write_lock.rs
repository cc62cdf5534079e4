//! One writer of files at a time in a directory, whichever process it is in.
//!
//! The threads of a process take turns by a mutex, processes by a lock of the kernel on a small file
//! of Carrel's own, outside the directory. The kernel gives that lock back when its holder is gone,
//! however that happens. Where there can be no such file, the threads of this process still take
//! turns, and [`WriteLock::trouble`] says that others do not.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use carrel_domain::{message_of, sync};
use carrel_fsroot::{Identity, Root};
use tracing::warn;

use crate::scratch_directory::ScratchHome;
use carrel_workspace::Error;
use carrel_workspace::LOCK_TIMEOUT;

/// The files that stand for all directories there are, so that their number never grows. Two
/// directories that share one wait for each other, which takes moments.
const FILES: u64 = 256;

/// Nobody else may take the lock, and keep it.
const FILE_MODE: u32 = 0o600;

/// The pauses between two tries: a writer holds the lock for about as long as a disk takes to sync.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const MAX_PAUSE: Duration = Duration::from_millis(2);

/// Lets one writer at a time into a directory.
#[derive(Debug)]
pub struct WriteLock {
    home: ScratchHome,
    within: Mutex<()>,
    /// The file that processes lock, or why there is none.
    between: OnceLock<Result<File, String>>,
}

/// The right to write files, until it is dropped. It is held on threads that may wait, never across
/// an await.
#[derive(Debug)]
pub struct WriteGuard<'a> {
    between: Option<&'a File>,
    /// Given back last.
    _within: MutexGuard<'a, ()>,
}

impl WriteLock {
    pub(crate) fn new(home: ScratchHome) -> Self {
        Self { home, within: Mutex::default(), between: OnceLock::new() }
    }

    /// Waits until nobody else writes, for a bounded time.
    pub(crate) fn take(&self, directory: &Root) -> Result<WriteGuard<'_>, Error> {
        let within = sync::lock(&self.within);
        let between = self.between.get_or_init(|| {
            open(&self.home, directory).inspect_err(|reason| {
                warn!(%reason, "other processes that write the same files are not waited for");
            })
        });
        let between = between.as_ref().ok();
        if let Some(file) = between {
            lock(file, directory)?;
        }
        Ok(WriteGuard { between, _within: within })
    }

    /// Returns why other processes are not waited for. It is known when the first writer has begun.
    pub fn trouble(&self) -> Option<&str> {
        self.between.get()?.as_ref().err().map(String::as_str)
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.between {
            // It cannot fail for a file that is open; if it did, the lock would end with the process.
            let _ = file.unlock();
        }
    }
}

fn open(home: &ScratchHome, directory: &Root) -> Result<File, String> {
    let name = name_of(directory.identity().map_err(|error| message_of(&error))?);
    let locks = home.open().map_err(|error| message_of(&error))?;
    let opened = locks.open_or_create(Path::new(&name), FILE_MODE);
    let file = opened.map_err(|error| message_of(&error))?;
    let metadata = file.metadata().map_err(|error| message_of(&error))?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    if !own || metadata.mode() & 0o077 != 0 {
        let path = locks.path().join(name);
        return Err(format!("{} is open to other users", path.display()));
    }
    Ok(file)
}

fn name_of(Identity { device, inode }: Identity) -> String {
    format!("{:02x}.lock", device.wrapping_mul(31).wrapping_add(inode) % FILES)
}

/// The kernel's lock has no deadline of its own.
fn lock(file: &File, directory: &Root) -> Result<(), Error> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let mut pause = FIRST_PAUSE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Error::Interrupted(error.to_string())),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                let key = directory.path().display().to_string();
                let holder = Some("another process that writes files there".to_owned());
                return Err(Error::Busy { key, holder });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
