//! Where things go that a command wrote and nobody may run: nothing is lost, and
//! no tool looks there.
//!
//! A new name beside the old one would not do: a directory of skills or start-up
//! scripts runs whatever is in it. So everything goes to one directory at the top of the
//! workspace, which hides itself from git.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Collision, Durability, Error, Root, WriteOptions};

/// The directory, in the workspace.
pub(super) const DIRECTORY: &str = ".carrel-aside";

/// How many things are kept there; the oldest makes room.
const MAX_KEPT: usize = 64;

/// How many entries the directory may have before it counts as tampered with.
const MAX_LISTED: usize = 1024;

/// How much of the old name is kept in the new one.
const MAX_NAME: usize = 200;

/// Moves an entry of an open directory away and returns where it is. Where that is
/// not possible it is removed: what must not run matters more than what is kept.
pub(super) fn put_aside(root: &Root, parent: &Root, name: &Path) -> Result<Option<PathBuf>, Error> {
    parent.open_up()?;
    if let Ok(directory) = parent.open_root_strict(name) {
        // Moving a directory writes into it; a failure shows when it is moved.
        let _ = directory.open_up();
    }
    match moved(root, parent, name) {
        Some(slot) => Ok(Some(Path::new(DIRECTORY).join(slot))),
        None => parent.remove_tree(name).map(|()| None),
    }
}

fn moved(root: &Root, parent: &Root, name: &Path) -> Option<OsString> {
    let directory = open(root).ok()?;
    directory.open_up().ok()?;
    let slot = next_slot(&directory, name.as_os_str())?;
    parent.rename_into(name, &directory, Path::new(&slot), Collision::Refuse).ok()?;
    Some(slot)
}

/// Opens the directory, and makes it in the place of anything else of that name.
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
    // With more in it than belongs there, a command filled it, and nothing more is kept.
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
