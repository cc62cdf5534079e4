//! Clearing up after a Carrel that was killed.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use carrel_domain::{Clock as _, SystemClock};
use rustix::fs::{FileType, lstat, rmdir, unlink};
use rustix::process::geteuid;
use tracing::debug;

use super::{BINDING, PREFIX};

/// Removes the sockets that a Carrel offered tools on before it was killed, in a directory for temporary
/// files. What belongs to others stays, and so does what somebody listens on.
#[expect(clippy::disallowed_methods, reason = "a directory for temporary files, in no workspace")]
pub fn remove_stale_sockets(temporary: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Err(error) = remove_if_left(&path)
        {
            debug!(%error, path = %path.display(), "could not remove what was left of tools");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a directory for temporary files, in no workspace")]
fn remove_if_left(directory: &Path) -> io::Result<()> {
    let status = lstat(directory)?;
    // Nobody else can change such a directory, or put another one in its place.
    let is_own = status.st_uid == geteuid().as_raw()
        && FileType::from_raw_mode(status.st_mode) == FileType::Directory
        && status.st_mode & 0o022 == 0;
    if !is_own {
        return Ok(());
    }
    let sockets: Vec<_> = std::fs::read_dir(directory)?.filter_map(Result::ok).collect();
    let age = SystemClock.now().as_millis() / 1000 - status.st_mtime;
    // One that is just being made has no socket yet.
    if sockets.is_empty() && age < BINDING.as_secs().cast_signed() {
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
