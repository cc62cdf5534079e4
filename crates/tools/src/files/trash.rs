//! The trash of a workspace, for the tools `Delete`, `Move` and `ApplyPatch`.
//!
//! It is a directory of the workspace itself, so a deletion is one rename on the same file system, its content
//! counts against the same quota, and an agent can restore a file with `Move`. Each deletion has a directory
//! `<milliseconds>-<number>-<bytes>`, whose name alone orders it and tells its size.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use carrel_domain::{Clock as _, Code, Coded as _, Failure, SystemClock};
use carrel_fsroot::{Collision, FileKind, Root, UsageLimit, WriteOptions};
use carrel_workspace::Amount;

use super::workspace_files::WorkspaceFiles;

pub(crate) const TRASH: &str = ".carrel-trash";

/// Bounds the number of deletions. The oldest are removed for good.
const MAX_KEPT: usize = 200;

const DIRECTORY_MODE: u32 = 0o700;

/// Bounds the size of the trash, together with a quarter of the quota. The oldest deletions are removed for
/// good, and a larger one is never kept.
const MAX_KEPT_BYTES: u64 = 1 << 30;

/// Free bytes of the file system below which deletions are final, so that they free space.
const LOW_SPACE: u64 = 1 << 20;

/// Deletes a file or directory: moves it into the trash and returns its new path, or removes it for good where the
/// trash would free no space. That is so for a deletion beyond the share of the trash, on a full file system, and
/// without room for a directory in the quota. Nothing is written then.
pub(super) fn delete(files: &WorkspaceFiles, path: &Path) -> Result<Option<PathBuf>, Failure> {
    let root = files.root();
    if weight(root, path) > share(files) || is_full(files) {
        return remove(files, path);
    }
    match discard(files, path) {
        Err(failure) if failure.code == Code::DiskFull => remove(files, path),
        discarded => discarded.map(Some),
    }
}

fn remove(files: &WorkspaceFiles, path: &Path) -> Result<Option<PathBuf>, Failure> {
    let root = files.root();
    let place = files.place(path)?;
    match root.link_metadata(path)?.kind {
        FileKind::Directory => root.remove_tree(path)?,
        _ => root.remove_file(path)?,
    }
    files.note_deleted(place);
    Ok(None)
}

/// Returns whether the file system or the quota has no room for a deletion that is kept.
fn is_full(files: &WorkspaceFiles) -> bool {
    let is_low = files.root().space().is_ok_and(|free| free.bytes < LOW_SPACE || free.inodes == 0);
    let directory = Amount { bytes: 1, files: 1 };
    is_low
        || files
            .workspace
            .handle()
            .check_room(directory)
            .is_err_and(|error| error.code() == Code::QuotaExceeded)
}

/// Returns the bytes that the trash may hold.
fn share(files: &WorkspaceFiles) -> u64 {
    let quarter = files.workspace.handle().quota().map(|quota| quota.bytes.as_u64() / 4);
    quarter.unwrap_or(u64::MAX).min(MAX_KEPT_BYTES)
}

/// Moves a file or directory into the trash and returns its new path, also one beyond the share. [`forget`] enforces the bounds later,
/// after the write lock is released.
pub(super) fn discard(files: &WorkspaceFiles, path: &Path) -> Result<PathBuf, Failure> {
    let root = files.root();
    let place = files.place(path)?;
    prepare(root)?;
    let directory = new_directory(root, weight(root, path))?;
    let name = path.file_name().map_or_else(|| "unnamed".into(), std::borrow::ToOwned::to_owned);
    let target = directory.join(name);
    if let Err(error) = root.rename(path, &target, Collision::Refuse) {
        // The directory is still empty.
        let _ = root.remove_directory(&directory);
        return Err(error.into());
    }
    files.note_moved(place, &target);
    Ok(target)
}

pub(super) fn is_inside(path: &Path) -> bool {
    let mut names = path.components().filter(|one| *one != std::path::Component::CurDir);
    names.next().is_some_and(|first| first.as_os_str() == TRASH)
}

/// Creates the trash with a `.gitignore` that hides it.
fn prepare(files: &Root) -> Result<(), Failure> {
    if files.link_metadata(Path::new(TRASH)).is_ok() {
        return Ok(());
    }
    files.create_directories(Path::new(TRASH), DIRECTORY_MODE)?;
    let ignore = Path::new(TRASH).join(".gitignore");
    Ok(files.write(&ignore, b"*\n", WriteOptions::default())?)
}

/// Returns the allocated bytes of a file or directory, at most [`MAX_KEPT_BYTES`].
fn weight(files: &Root, path: &Path) -> u64 {
    let limit = UsageLimit { bytes: MAX_KEPT_BYTES, inodes: u64::MAX };
    match files.link_metadata(path) {
        Ok(metadata) if metadata.kind == FileKind::Directory => {
            files.usage(path, limit).map_or(0, |usage| usage.bytes)
        }
        Ok(metadata) => metadata.allocated,
        Err(_) => 0,
    }
}

/// Creates a directory whose name sorts by time and holds the size of its content.
fn new_directory(files: &Root, bytes: u64) -> Result<PathBuf, Failure> {
    let now = SystemClock.now().as_millis();
    let mut number = 0;
    loop {
        let directory = Path::new(TRASH).join(format!("{now:013}-{number:03}-{bytes}"));
        match files.create_directory(&directory, DIRECTORY_MODE) {
            Err(error) if error.problem() == carrel_fsroot::Problem::Exists && number < 999 => {
                number += 1;
            }
            made => return made.map(|()| directory).map_err(Failure::from),
        }
    }
}

/// Removes the oldest deletions beyond the bounds. One that cannot be removed is tried again next time.
pub(super) fn forget(files: &WorkspaceFiles) {
    let root = files.root();
    let Ok(mut entries) = root.list(Path::new(TRASH)) else { return };
    entries.retain(|entry| entry.kind == FileKind::Directory);
    entries.sort_by(|one, other| other.name.cmp(&one.name));
    let limit = share(files);
    let mut bytes = 0_u64;
    for (index, entry) in entries.iter().enumerate() {
        bytes = bytes.saturating_add(recorded_weight(&entry.name));
        if index >= MAX_KEPT || (index > 0 && bytes > limit) {
            let _ = root.remove_tree(&Path::new(TRASH).join(&entry.name));
        }
    }
}

fn recorded_weight(name: &OsStr) -> u64 {
    let bytes = name.to_str().and_then(|name| name.split('-').nth(2)?.parse().ok());
    bytes.unwrap_or(0)
}
