//! The bytes of a policy file, and whether anyone but the operator could have written them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::PolicyError;
use super::place::Place;
use crate::diagnostic::Diagnostic;

/// Bounds the memory and time that reading a policy file takes. It is less than the kernel
/// takes for one variable, so that no `[environment]` can keep commands from starting.
pub const MAX_POLICY_BYTES: usize = 64 << 10;

// The text is decoded as that of a workflow file is, whose limit must not come first.
const _: () = assert!(MAX_POLICY_BYTES < crate::file::MAX_FILE_BYTES);

/// Permissions that let the group or everyone write.
const OTHERS_WRITE: u32 = 0o022;
/// In a directory with this bit, only its owner and a file's owner replace the file.
const STICKY: u32 = 0o1000;
/// The bits that `chmod` sets.
const PERMISSIONS: u32 = 0o7777;

/// What was read, and from where.
#[derive(Debug)]
pub(crate) struct Content {
    /// The file, without links.
    pub(crate) real: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a policy file, at most one byte more than [`MAX_POLICY_BYTES`].
///
/// The file that is checked is the one that is read. Its directory is checked too, and that
/// of the name if the name is a link; what lies above them is the operator's concern.
pub(crate) fn read(place: &Place) -> Result<Content, PolicyError> {
    let unreadable =
        |source| PolicyError::Unreadable { file: place.path.clone(), origin: place.origin, source };
    let real = resolve(&place.path).map_err(unreadable)?;
    for path in [&place.path, &real] {
        let directory = path.parent().unwrap_or(path);
        let metadata = look(directory).map_err(unreadable)?;
        check(directory, &metadata)?;
    }
    let file = open(&real).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(PolicyError::NotAFile { file: place.path.clone(), origin: place.origin });
    }
    check(&real, &metadata)?;
    let mut bytes = Vec::new();
    file.take(MAX_POLICY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Content { real, bytes })
}

#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn resolve(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn look(directory: &Path) -> io::Result<Metadata> {
    std::fs::metadata(directory)
}

/// Opens a file without waiting for the other end of a FIFO, and without following a link.
#[expect(clippy::disallowed_methods, reason = "the policy file lies outside every workspace")]
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), PolicyError> {
    judge(path, metadata.uid(), metadata.mode() & PERMISSIONS, metadata.is_dir())
}

fn judge(path: &Path, owner: u32, mode: u32, directory: bool) -> Result<(), PolicyError> {
    let user = rustix::process::geteuid().as_raw();
    if owner != 0 && owner != user {
        return Err(PolicyError::ForeignOwner { path: path.to_owned(), owner, user });
    }
    let held = directory && mode & STICKY != 0;
    if mode & OTHERS_WRITE != 0 && !held {
        return Err(PolicyError::WritableByOthers { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Checks that bytes are text: not too many, valid UTF-8, no NUL.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.len() > MAX_POLICY_BYTES {
        let message = format!("the file is larger than {MAX_POLICY_BYTES} bytes; shorten it");
        return Err(Diagnostic { position: None, key: None, message });
    }
    crate::file::decode(bytes).map(|text| text.content)
}
