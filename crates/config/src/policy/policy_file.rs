//! Reading a policy file, with the checks that only the operator could have written it.
//!
//! The policy decides what commands may do, so a file that another user can change is no policy. The
//! owner must be root or the user that runs Carrel, and neither group nor others may write to the file or
//! to its directory, where they could replace it; a sticky directory is enough. If the name is a link,
//! both directories are checked. The check is made on the opened descriptor, which is also what is read,
//! so nothing can be swapped in between.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::policy_error::PolicyError;
use super::policy_location::PolicyLocation;
use crate::diagnostic::Diagnostic;

/// The largest policy file. It is below the kernel's limit for one environment variable (128 KiB), so that
/// no `[environment]` can keep commands from starting.
pub const MAX_POLICY_BYTES: usize = 64 << 10;

// The decoder is shared with workflow files, whose limit must not apply first.
const _: () = assert!(MAX_POLICY_BYTES < crate::workflow_file::MAX_FILE_BYTES);

/// Write permission of group and others.
const GROUP_OR_OTHERS_WRITE: u32 = 0o022;
/// In a directory with this bit only the owners of the directory and of a file can replace the file.
const STICKY: u32 = 0o1000;
const PERMISSIONS: u32 = 0o7777;

/// Reads a policy file, at most one byte more than [`MAX_POLICY_BYTES`], and returns its path without links too.
///
/// Directories above that of the file are not checked.
pub(crate) fn read(location: &PolicyLocation) -> Result<(PathBuf, Vec<u8>), PolicyError> {
    let unreadable = |source| location.unreadable(source);
    let real = resolve(&location.path).map_err(unreadable)?;
    for path in [&location.path, &real] {
        let directory = path.parent().unwrap_or(path);
        let metadata = metadata(directory).map_err(unreadable)?;
        check(directory, &metadata)?;
    }
    let file = open(&real).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(PolicyError::NotAFile { file: location.path.clone(), origin: location.origin });
    }
    check(&real, &metadata)?;
    let mut bytes = Vec::new();
    file.take(MAX_POLICY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok((real, bytes))
}

#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn resolve(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn metadata(directory: &Path) -> io::Result<Metadata> {
    std::fs::metadata(directory)
}

/// Opens a file without blocking on a FIFO and without following a link.
#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), PolicyError> {
    check_owner_and_mode(path, metadata.uid(), metadata.mode() & PERMISSIONS, metadata.is_dir())
}

fn check_owner_and_mode(
    path: &Path,
    owner: u32,
    mode: u32,
    directory: bool,
) -> Result<(), PolicyError> {
    let user = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != user {
        return Err(PolicyError::ForeignOwner { path: path.to_owned(), owner, user });
    }
    let sticky = directory && mode & STICKY != 0;
    if mode & GROUP_OR_OTHERS_WRITE != 0 && !sticky {
        return Err(PolicyError::WritableByOthers { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Decodes bytes that are text: within the limit, valid UTF-8, no NUL.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.len() > MAX_POLICY_BYTES {
        let message = format!("the file is larger than {MAX_POLICY_BYTES} bytes; shorten it");
        return Err(Diagnostic { position: None, key: None, message });
    }
    crate::workflow_file::decode(bytes).map(|text| text.content)
}
