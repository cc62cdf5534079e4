//! Removal of sockets that a killed conductor left.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use carrel_domain::{Clock as _, SystemClock};
use rustix::fs::{FileType, lstat, rmdir, unlink};
use rustix::process::geteuid;
use tracing::debug;

use super::{BIND_TIMEOUT, PREFIX};

/// Removes socket directories of killed conductors from a temporary directory. Directories of other
/// users stay, and so do sockets that accept connections.
#[expect(clippy::disallowed_methods, reason = "a directory for temporary files, in no workspace")]
pub fn remove_stale_sockets(temporary: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Err(error) = remove_if_left(&path)
        {
            debug!(%error, path = %path.display(), "could not remove a stale tool socket");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a directory for temporary files, in no workspace")]
fn remove_if_left(directory: &Path) -> io::Result<()> {
    let status = lstat(directory)?;
    // Only a directory that no other user can write to is safe to remove from.
    let is_own = status.st_uid == geteuid().as_raw()
        && FileType::from_raw_mode(status.st_mode) == FileType::Directory
        && status.st_mode & 0o022 == 0;
    if !is_own {
        return Ok(());
    }
    let sockets: Vec<_> = std::fs::read_dir(directory)?.filter_map(Result::ok).collect();
    let age = SystemClock.now().as_millis() / 1000 - status.st_mtime;
    // A directory that was just created has no socket yet.
    if sockets.is_empty() && age < BIND_TIMEOUT.as_secs().cast_signed() {
        return Ok(());
    }
    for socket in sockets {
        match UnixStream::connect(socket.path()) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                unlink(socket.path())?;
            }
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    Ok(rmdir(directory)?)
}
