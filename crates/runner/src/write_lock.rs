//! The write lock: one writer of files at a time in a workspace, across threads and processes.
//!
//! Tools read a file, edit it and write it back; two of them must not interleave. Threads of one
//! process take turns by a mutex, processes by an advisory lock (`flock`) on a small file of Carrel's
//! own, outside the workspace. The kernel releases that lock when its holder ends, however that
//! happens. Where no such file can be made, threads still take turns, and [`WriteLock::degraded`] says
//! why other processes do not. Commands are not bound by the lock, except formatters, for which the tools
//! hold it.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use carrel_domain::{message_of, sync};
use carrel_fsroot::{Identity, Root};
use tracing::warn;

use crate::server_directory::{ServerDirectory, ServerPart};
use carrel_workspace::{Error, poll};

/// The number of lock files for all directories, by a hash of device and inode, so that their number
/// never grows. Two directories that share one wait for each other for the time of one write.
const FILES: u64 = 256;

/// Other users must not be able to take the lock and keep it.
const FILE_MODE: u32 = 0o600;

/// The pauses between two attempts. A writer holds the lock for about one atomic write, 0.4 ms in
/// `docs/benchmarks.md`.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const MAX_PAUSE: Duration = Duration::from_millis(2);

/// The write lock of a directory.
#[derive(Debug)]
pub struct WriteLock {
    parent: ServerDirectory,
    threads: Mutex<()>,
    /// The file that processes lock, or the reason why there is none.
    processes: OnceLock<Result<File, String>>,
}

/// Holds the write lock until it is dropped. Belongs on threads that may block, never across an await.
#[derive(Debug)]
pub struct WriteGuard<'a> {
    file: Option<&'a File>,
    /// Released last.
    _threads: MutexGuard<'a, ()>,
}

impl WriteLock {
    pub(crate) fn new(parent: ServerDirectory) -> Self {
        Self { parent, threads: Mutex::default(), processes: OnceLock::new() }
    }

    /// Waits for the lock, at most [`carrel_workspace::LOCK_TIMEOUT`] for other processes.
    pub(crate) fn take(&self, directory: &Root) -> Result<WriteGuard<'_>, Error> {
        let threads = sync::lock(&self.threads);
        let file = self.processes.get_or_init(|| {
            open(&self.parent, directory).map_err(|error| {
                let reason = message_of(&*error);
                warn!(%reason, "other processes that write the same files are not waited for");
                reason
            })
        });
        let file = file.as_ref().ok();
        if let Some(file) = file {
            lock(file, directory)?;
        }
        Ok(WriteGuard { file, _threads: threads })
    }

    /// Returns why other processes are not waited for. Known after the first writer has begun.
    pub fn degraded(&self) -> Option<&str> {
        self.processes.get()?.as_ref().err().map(String::as_str)
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            // Cannot fail for an open file; the lock would end with the process otherwise.
            let _ = file.unlock();
        }
    }
}

fn open(parent: &ServerDirectory, directory: &Root) -> Result<File, Box<dyn std::error::Error>> {
    let Identity { device, inode } = directory.identity()?;
    let name = format!("{:02x}.lock", device.wrapping_mul(31).wrapping_add(inode) % FILES);
    let locks = parent.open(ServerPart::WriteLocks)?;
    let file = locks.open_or_create(Path::new(&name), FILE_MODE)?;
    let metadata = file.metadata()?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    if !own || metadata.mode() & 0o077 != 0 {
        let path = locks.path().join(name);
        return Err(format!("{} is open to other users", path.display()).into());
    }
    Ok(file)
}

fn lock(file: &File, directory: &Root) -> Result<(), Error> {
    let locked = poll(FIRST_PAUSE, MAX_PAUSE, || match file.try_lock() {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Error::Interrupted(error.to_string())),
    })?;
    locked.ok_or_else(|| Error::Busy {
        key: directory.path().display().to_string(),
        holder: Some("another process that writes files there".to_owned()),
    })
}
