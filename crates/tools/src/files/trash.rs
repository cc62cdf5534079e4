//! Where deleted files go.
//!
//! It is a directory of the workspace itself: a rename into it always works and takes no time, what
//! is in it counts against the same quota, and whoever deleted something can put it back.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use carrel_domain::{Clock as _, SystemClock};
use carrel_fsroot::{Collision, FileKind, Root, UsageLimit, WriteOptions};

use super::common::WorkspaceFiles;
use crate::failure::Failure;

/// The name of the directory.
pub(crate) const TRASH: &str = ".carrel-trash";

/// How many deletions are kept. The oldest are removed for good.
const MAX_KEPT: usize = 200;

const DIRECTORY_MODE: u32 = 0o700;

/// How much is kept, at most a quarter of the quota. The oldest deletions are removed for good, but
/// never the last one.
const MAX_KEPT_BYTES: u64 = 1 << 30;

/// Moves something into the trash, and returns where it is now. [`forget`] makes room for it when
/// others need not wait any more.
pub(super) fn discard(files: &WorkspaceFiles, path: &Path) -> Result<PathBuf, Failure> {
    let root = files.root();
    prepare(root)?;
    let directory = new_place(root, weight(root, path))?;
    let name = path.file_name().map_or_else(|| "unnamed".into(), std::borrow::ToOwned::to_owned);
    let target = directory.join(name);
    if let Err(error) = root.rename(path, &target, Collision::Refuse) {
        // Nobody else knows the directory yet.
        let _ = root.remove_directory(&directory);
        return Err(error.into());
    }
    Ok(target)
}

/// Tells whether a path is the trash or lies in it.
pub(super) fn is_inside(path: &Path) -> bool {
    let mut names = path.components().filter(|one| *one != std::path::Component::CurDir);
    names.next().is_some_and(|first| first.as_os_str() == TRASH)
}

/// Makes the trash, which no repository shows.
fn prepare(files: &Root) -> Result<(), Failure> {
    if files.link_metadata(Path::new(TRASH)).is_ok() {
        return Ok(());
    }
    files.create_directories(Path::new(TRASH), DIRECTORY_MODE)?;
    let ignore = Path::new(TRASH).join(".gitignore");
    Ok(files.write(&ignore, b"*\n", WriteOptions::default())?)
}

/// Counts what something takes up, as far as that matters.
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

/// Makes a directory whose name sorts by time, and says how much is in it.
fn new_place(files: &Root, bytes: u64) -> Result<PathBuf, Failure> {
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

/// Removes what was deleted longest ago. What cannot be removed now is tried again next time.
pub(super) fn forget(files: &WorkspaceFiles) {
    let root = files.root();
    let Ok(mut entries) = root.list(Path::new(TRASH)) else { return };
    entries.retain(|entry| entry.kind == FileKind::Directory);
    entries.sort_by(|one, other| other.name.cmp(&one.name));
    let quarter = files.workspace.handle().quota().map(|quota| quota.bytes.as_u64() / 4);
    let limit = quarter.unwrap_or(u64::MAX).min(MAX_KEPT_BYTES);
    let mut bytes = 0_u64;
    for (index, entry) in entries.iter().enumerate() {
        bytes = bytes.saturating_add(recorded_weight(&entry.name));
        if index >= MAX_KEPT || (index > 0 && bytes > limit) {
            let _ = root.remove_tree(&Path::new(TRASH).join(&entry.name));
        }
    }
}

/// Returns what the name of a deletion says about its weight.
fn recorded_weight(name: &OsStr) -> u64 {
    let bytes = name.to_str().and_then(|name| name.split('-').nth(2)?.parse().ok());
    bytes.unwrap_or(0)
}
