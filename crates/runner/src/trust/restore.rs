//! Applies the remedies of differences, each on its own, through directories opened without links.
//!
//! Contents come from the baseline's memory. A renamed repository cannot be written again, since its
//! objects are not in the baseline; it is looked for among the neighbours of its old path, or behind
//! the link that replaced it, and renamed back.

use std::io::Write;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Collision, Durability, Entry, Error, FileKind, Problem, Root, WriteOptions};

use super::diff::{Difference, Remedy};
use super::directory_link::resolve;
use super::git_config_diff::Config;
use super::quarantine;
use super::references::depth_of;
use super::snapshot::{EntryState, LinkDestination, Snapshot, WatchedEntry};

/// The most neighbours that are searched for a renamed directory.
const MAX_SEARCHED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct UndoResult {
    /// The path in the quarantine of what the command wrote.
    pub(super) quarantined: Option<PathBuf>,
    /// The reason for a difference that was not undone.
    pub(super) failure: Option<String>,
}

pub(super) fn undo(
    root: &Root,
    old: &Snapshot,
    new: &Snapshot,
    difference: &Difference,
) -> UndoResult {
    let mut undone = UndoResult::default();
    let path = &difference.path;
    let result = match difference.remedy {
        Remedy::Quarantine => vacate(root, path, &mut undone),
        Remedy::Restore => put_back(root, old, path, &mut undone),
        Remedy::RewriteConfig => rewrite(root, old.get(path), new.get(path), path),
        Remedy::Accept(reason) => Err(reason.into()),
    };
    undone.failure = result.err().map(|error| error.to_string());
    undone
}

/// A file error, or the reason in words.
type UndoError = Box<dyn std::error::Error>;

/// Moves the entry at a path, if there is one, into the quarantine, so that the path is vacant.
fn vacate(root: &Root, path: &Path, undone: &mut UndoResult) -> Result<(), UndoError> {
    if path == Path::new(quarantine::DIRECTORY) {
        // A link or file stood where the quarantine belongs. Opening it deletes that, unless a remedy
        // before this one did; then it is a directory with what was moved there, and stays.
        return Ok(quarantine::open(root).map(drop)?);
    }
    let (parent, name) = match parent_of(root, path) {
        Err(error) if error.downcast_ref().is_some_and(Error::is_not_found) => return Ok(()),
        other => other?,
    };
    match parent.link_metadata(name) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    undone.quarantined = quarantine::store(root, &parent, name)?;
    Ok(())
}

fn put_back(
    root: &Root,
    old: &Snapshot,
    path: &Path,
    undone: &mut UndoResult,
) -> Result<(), UndoError> {
    let Some(entry) = old.get(path) else { return Ok(()) };
    if let Some(parent) = path.parent() {
        make_directories(root, parent)?;
    }
    let behind = behind_link(root, path);
    vacate(root, path, undone)?;
    let (parent, name) = parent_of(root, path)?;
    parent.grant_owner_access()?;
    if entry.is_tracked_across_renames() {
        if let Some(behind) = behind
            && let Ok((above, last)) = parent_of(root, &behind)
            && is_at(&above, last, entry)
        {
            return Ok(above.rename_into(last, &parent, name, Collision::Refuse)?);
        }
        return bring_back(&parent, name, entry);
    }
    write(&parent, old, path, name)
}

/// Returns the destination of a link inside the workspace.
fn behind_link(root: &Root, path: &Path) -> Option<PathBuf> {
    let target = root.read_link(path).ok()?;
    match resolve(root, path, &target) {
        LinkDestination::Inside(behind) => Some(behind),
        LinkDestination::System | LinkDestination::Dangling | LinkDestination::Outside(_) => None,
    }
}

/// Returns whether the directory at a name is the trusted one. The birth time tells it from a later one
/// with the same inode number; on a file system without birth times the number alone decides, which is
/// less strict than [`is_same`](super::renames::is_same).
fn is_at(parent: &Root, name: &Path, entry: &WatchedEntry) -> bool {
    let metadata = parent.link_metadata(name);
    metadata.is_ok_and(|metadata| metadata.identity == entry.stamp.identity)
        && parent
            .open_root_strict(name)
            .is_ok_and(|directory| directory.birth_time() == entry.created_at)
}

/// Renames a directory back that is still beside its old path under another name.
fn bring_back(parent: &Root, name: &Path, entry: &WatchedEntry) -> Result<(), UndoError> {
    let entries = parent.list_at_most(Path::new("."), MAX_SEARCHED)?.unwrap_or_default();
    let is_directory = |candidate: &&Entry| candidate.kind == FileKind::Directory;
    let found = entries
        .iter()
        .filter(is_directory)
        .find(|candidate| is_at(parent, Path::new(&candidate.name), entry));
    let Some(found) = found else {
        return Err("the directory that stood there is gone".into());
    };
    Ok(parent.rename(Path::new(&found.name), name, Collision::Refuse)?)
}

/// Writes a trusted entry, with all below it.
fn write(parent: &Root, old: &Snapshot, path: &Path, name: &Path) -> Result<(), UndoError> {
    let Some(entry) = old.get(path) else { return Ok(()) };
    match &entry.state {
        EntryState::File { mode, bytes } => {
            let options = WriteOptions {
                collision: Collision::Refuse,
                durability: Durability::Buffered,
                new_mode: Some(0o600),
            };
            let mut file = parent.begin_write(name, options)?;
            file.write_all(bytes).map_err(|_| "it could not be written")?;
            file.set_mode(*mode)?;
            Ok(file.commit()?)
        }
        EntryState::Link(target) | EntryState::DirectoryLink { target, .. } => {
            Ok(parent.create_link(target, name)?)
        }
        EntryState::Directory { children, .. } => {
            parent.create_directory(name, 0o777)?;
            let directory = parent.open_root_strict(name)?;
            // The rest is written before the first failure is returned.
            let results: Vec<_> = children
                .iter()
                .map(|child| write(&directory, old, &path.join(child), Path::new(child)))
                .collect();
            results.into_iter().collect()
        }
        EntryState::TooLarge | EntryState::TooManyEntries => {
            Err("what stood there was too large to be kept".into())
        }
        EntryState::SpecialFile | EntryState::Unreadable => {
            Err("what stood there could not be kept".into())
        }
    }
}

/// Writes the trusted entries into a configuration, which keeps its other entries, owner and mode.
fn rewrite(
    root: &Root,
    old: Option<&WatchedEntry>,
    new: Option<&WatchedEntry>,
    path: &Path,
) -> Result<(), UndoError> {
    let trusted = old.and_then(WatchedEntry::bytes).unwrap_or_default();
    let Some(bytes) = new.and_then(WatchedEntry::bytes) else { return Ok(()) };
    let depth = depth_of(path);
    let (Ok(trusted), Ok(config)) = (Config::read(trusted, depth), Config::read(bytes, depth))
    else {
        return Err("git could not read it".into());
    };
    let text = config.with_entries_of(&trusted);
    let (parent, name) = parent_of(root, path)?;
    parent.grant_owner_access()?;
    let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    Ok(parent.write(name, &text, options)?)
}

fn parent_of<'a>(root: &Root, path: &'a Path) -> Result<(Root, &'a Path), UndoError> {
    let name = path.file_name().map(Path::new).ok_or("it has no name")?;
    match path.parent() {
        Some(parent) if parent != Path::new("") => Ok((root.open_root_strict(parent)?, name)),
        _ => Ok((root.try_clone()?, name)),
    }
}

/// Creates the missing directories above an entry. A link on the way is an error.
fn make_directories(root: &Root, path: &Path) -> Result<(), UndoError> {
    let mut directory = root.try_clone()?;
    for name in path.iter().map(Path::new) {
        directory = match directory.open_root_strict(name) {
            Err(error) if error.problem() == Problem::NotFound => {
                directory.grant_owner_access()?;
                directory.create_directory(name, 0o777)?;
                directory.open_root_strict(name)?
            }
            other => other?,
        };
    }
    Ok(())
}
