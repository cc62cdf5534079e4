//! The quarantine: what a command wrote and no tool may run is moved to `.carrel-aside`.
//!
//! Reports name the new path in the field `put_aside`.
//!
//! What is moved can be moved back, so a false alarm costs no work. Two things are lost: the oldest
//! entries when there are more than 64, and an entry that cannot be moved, for example on a full disk,
//! which is deleted because it must not run. A new name beside the old one would not do: a directory of
//! skills or start-up scripts runs every file in it. So everything goes to one directory at the top of
//! the workspace, under a sequence number and its old name; its own `.gitignore` hides it from git. The
//! directory is inside the workspace and its quota, and commands can write to it: nothing in it is
//! trusted, and no tool reads it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Collision, Durability, Error, Root, WriteOptions};

/// The name of the directory in the workspace.
pub(super) const DIRECTORY: &str = ".carrel-aside";

/// The most entries that are kept; the oldest are deleted.
const MAX_KEPT: usize = 64;

/// The most entries that are listed. More than this a command has put there, and nothing more is kept.
const MAX_LISTED: usize = 1024;

/// The most bytes of the old name in the new one, below the 255 that file systems allow.
const MAX_NAME: usize = 200;

/// Moves an entry of an open directory into the quarantine and returns its new path. If that fails, for
/// example on a full disk, the entry is deleted and `None` returned: it must not run.
pub(super) fn store(root: &Root, parent: &Root, name: &Path) -> Result<Option<PathBuf>, Error> {
    parent.grant_owner_access()?;
    if let Ok(directory) = parent.open_root_strict(name) {
        // Moving a directory writes into it; a failure shows when it is moved.
        let _ = directory.grant_owner_access();
    }
    match move_into(root, parent, name) {
        Some(slot) => Ok(Some(Path::new(DIRECTORY).join(slot))),
        None => parent.remove_tree(name).map(|()| None),
    }
}

fn move_into(root: &Root, parent: &Root, name: &Path) -> Option<OsString> {
    let directory = open(root).ok()?;
    directory.grant_owner_access().ok()?;
    let slot = next_slot(&directory, name.as_os_str())?;
    parent.rename_into(name, &directory, Path::new(&slot), Collision::Refuse).ok()?;
    Some(slot)
}

/// Opens the directory, and creates it in place of anything else of that name.
pub(super) fn open(root: &Root) -> Result<Root, Error> {
    let path = Path::new(DIRECTORY);
    match root.open_root_strict(path) {
        Ok(directory) => return Ok(directory),
        Err(error) if error.is_not_found() => {}
        Err(_) => root.remove_file(path)?,
    }
    root.create_directory(path, 0o700)?;
    let directory = root.open_root_strict(path)?;
    let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    directory.write(Path::new(".gitignore"), b"*\n", options)?;
    Ok(directory)
}

fn next_slot(directory: &Root, name: &OsStr) -> Option<OsString> {
    let entries = directory.list_at_most(Path::new("."), MAX_LISTED).ok()??;
    let mut kept: Vec<(u64, &OsStr)> = entries
        .iter()
        .filter_map(|entry| number(&entry.name).map(|number| (number, entry.name.as_os_str())))
        .collect();
    kept.sort_unstable();
    if kept.len() >= MAX_KEPT {
        for (_, oldest) in &kept[..=kept.len() - MAX_KEPT] {
            directory.remove_tree(Path::new(oldest)).ok()?;
        }
    }
    let number = kept.last().map_or(1, |(number, _)| number.saturating_add(1));
    let mut slot = OsString::from(format!("{number:06}-"));
    slot.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(MAX_NAME)]));
    Some(slot)
}

fn number(name: &OsStr) -> Option<u64> {
    name.to_str()?.split('-').next()?.parse().ok()
}
