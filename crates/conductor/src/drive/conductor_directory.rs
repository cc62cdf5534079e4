//! The directory of a conductor: its lock, its webhook secret and its transcripts.
//!
//! It is `<data>/conductor/<name>-<hash>/`, one per tracker scope. The lock file excludes a second
//! conductor with the same data directory; the kernel releases it with the process, so a crash leaves
//! nothing to clean up.

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::hex;
use carrel_fsroot::Root;
use sha2::{Digest as _, Sha256};

use super::start_error::StartError;

const DIRECTORY: &str = "conductor";

/// Bounds the note of another conductor that is read from its lock file.
const MAX_HOLDER_BYTES: usize = 100;

/// Bytes of the scope's hash in the directory name.
const HASH_BYTES: usize = 6;

#[derive(Clone, Debug)]
pub(super) struct ConductorDirectory {
    pub(super) files: Arc<Root>,
    pub(super) path: PathBuf,
    _lock: Arc<File>,
}

impl ConductorDirectory {
    /// Creates the directory of a scope and locks it. Fails if another process has the lock.
    pub(super) fn take(data: &Path, scope: &str) -> Result<Self, StartError> {
        let below = Path::new(DIRECTORY).join(directory_of(scope));
        let root = Root::open(data)?;
        root.create_directories(&below, 0o700)?;
        let files = root.open_root_strict(&below)?;
        let lock = files.open_or_create(Path::new("lock"), 0o600)?;
        let holder = read_holder(&lock);
        if let Err(error) = lock.try_lock() {
            let holder = match error {
                TryLockError::WouldBlock => holder,
                TryLockError::Error(error) => Some(error.to_string()),
            };
            let path = data.display().to_string();
            return Err(StartError::InUse { scope: scope.to_owned(), path, holder });
        }
        let note = format!("process {}", std::process::id());
        // A hint for the error of a second conductor; a failure does not matter.
        let _ = lock.set_len(0).and_then(|()| lock.write_all_at(note.as_bytes(), 0));
        Ok(Self { files: Arc::new(files), path: data.join(below), _lock: Arc::new(lock) })
    }
}

/// Describes this process for the error of a second conductor, maybe on another machine.
pub(super) fn describe_holder(data: &Path) -> String {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    format!(
        "process {} on {machine} with the data directory {}",
        std::process::id(),
        data.display()
    )
}

fn read_holder(lock: &File) -> Option<String> {
    let mut bytes = [0; MAX_HOLDER_BYTES];
    let count = lock.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(&bytes[..count]).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns a readable directory name that is unique to a scope.
fn directory_of(scope: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = scope.chars().map(safe).take(40).collect();
    let hash = Sha256::digest(scope.as_bytes());
    format!("{name}-{}", hex::encode(&hash[..HASH_BYTES]))
}
