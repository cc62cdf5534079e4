//! Undoing differences, each for itself, through directories opened without links.

use std::io::Write;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Collision, Durability, Entry, Error, FileKind, Problem, Root, WriteOptions};

use super::diff::{Act, Difference};
use super::directory_link::leads;
use super::git_config_diff::Config;
use super::quarantine::{self, put_aside};
use super::references::depth_of;
use super::snapshot::{Leads, Node, State, Tree};

/// How many entries beside a directory that is gone are searched for it.
const MAX_SEARCHED: usize = 4096;

/// What came of an attempt.
#[derive(Debug, Default)]
pub(super) struct Undone {
    /// Where what the command wrote is.
    pub(super) put_aside: Option<PathBuf>,
    /// Why it is not as it was.
    pub(super) why_not: Option<String>,
}

/// Undoes one difference between what was trusted and what is there.
pub(super) fn undo(root: &Root, old: &Tree, new: &Tree, difference: &Difference) -> Undone {
    let mut undone = Undone::default();
    let path = &difference.path;
    let result = match difference.act {
        Act::PutAside => clear(root, path, &mut undone),
        Act::PutBack => put_back(root, old, path, &mut undone),
        Act::Rewrite => rewrite(root, old.get(path), new.get(path), path),
        Act::Accept(reason) => Err(Failure::Reason(reason)),
    };
    undone.why_not = result.err().map(|failure| match failure {
        Failure::Reason(reason) => reason.to_owned(),
        Failure::Files(error) => error.to_string(),
    });
    undone
}

enum Failure {
    Reason(&'static str),
    Files(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Files(error)
    }
}

/// Moves away what stands at a path, if anything does.
fn clear(root: &Root, path: &Path, undone: &mut Undone) -> Result<(), Failure> {
    if path == Path::new(quarantine::DIRECTORY) {
        // It holds what was put aside a moment ago.
        return Ok(quarantine::open(root).map(drop)?);
    }
    let (parent, name) = match parent_of(root, path) {
        Err(Failure::Files(error)) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    match parent.link_metadata(name) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    undone.put_aside = put_aside(root, &parent, name)?;
    Ok(())
}

fn put_back(root: &Root, old: &Tree, path: &Path, undone: &mut Undone) -> Result<(), Failure> {
    let Some(node) = old.get(path) else { return Ok(()) };
    if let Some(parent) = path.parent() {
        make_directories(root, parent)?;
    }
    let behind = behind_link(root, path);
    clear(root, path, undone)?;
    let (parent, name) = parent_of(root, path)?;
    parent.open_up()?;
    if node.can_move() {
        if let Some(behind) = behind
            && let Ok((above, last)) = parent_of(root, &behind)
            && is_at(&above, last, node)
        {
            return Ok(above.rename_into(last, &parent, name, Collision::Refuse)?);
        }
        return bring_back(&parent, name, node);
    }
    write(&parent, old, path, name)
}

/// Returns the directory that a link in the place of another leads to.
fn behind_link(root: &Root, path: &Path) -> Option<PathBuf> {
    let target = root.read_link(path).ok()?;
    match leads(root, path, &target) {
        Leads::Inside(behind) => Some(behind),
        Leads::System | Leads::Nowhere | Leads::Outside(_) => None,
    }
}

/// Tells whether a directory is at a name, and not a later one that was given its number.
fn is_at(parent: &Root, name: &Path, node: &Node) -> bool {
    let metadata = parent.link_metadata(name);
    metadata.is_ok_and(|metadata| metadata.identity == node.stamp.identity)
        && parent.open_root_strict(name).is_ok_and(|directory| directory.born() == node.born)
}

/// Finds a directory that was only renamed. What is in a repository is not kept here,
/// so there is no other way to have it back.
fn bring_back(parent: &Root, name: &Path, node: &Node) -> Result<(), Failure> {
    let entries = parent.list_at_most(Path::new("."), MAX_SEARCHED)?.unwrap_or_default();
    let is_directory = |entry: &&Entry| entry.kind == FileKind::Directory;
    let found = entries
        .iter()
        .filter(is_directory)
        .find(|entry| is_at(parent, Path::new(&entry.name), node));
    let Some(entry) = found else {
        return Err(Failure::Reason("the directory that stood there is gone"));
    };
    Ok(parent.rename(Path::new(&entry.name), name, Collision::Refuse)?)
}

/// Writes what was at a path, with all below it.
fn write(parent: &Root, old: &Tree, path: &Path, name: &Path) -> Result<(), Failure> {
    let Some(node) = old.get(path) else { return Ok(()) };
    match &node.state {
        State::File { mode, bytes } => {
            let options = WriteOptions {
                collision: Collision::Refuse,
                durability: Durability::Buffered,
                new_mode: Some(0o600),
            };
            let mut file = parent.begin_write(name, options)?;
            file.write_all(bytes).map_err(|_| Failure::Reason("it could not be written"))?;
            file.set_mode(*mode)?;
            Ok(file.commit()?)
        }
        State::Link(target) | State::Door { target, .. } => Ok(parent.create_link(target, name)?),
        State::Directory { children, .. } => {
            parent.create_directory(name, 0o777)?;
            let directory = parent.open_root_strict(name)?;
            // The first failure is told when the rest is done.
            let results: Vec<_> = children
                .iter()
                .map(|child| write(&directory, old, &path.join(child), Path::new(child)))
                .collect();
            results.into_iter().collect()
        }
        State::Large | State::Crowded => {
            Err(Failure::Reason("what stood there was too large to be kept"))
        }
        State::Other | State::Unreadable => {
            Err(Failure::Reason("what stood there could not be kept"))
        }
    }
}

/// Writes the trusted entries into a configuration, which keeps its owner and mode.
fn rewrite(
    root: &Root,
    old: Option<&Node>,
    new: Option<&Node>,
    path: &Path,
) -> Result<(), Failure> {
    let trusted = bytes_of(old).unwrap_or_default();
    let Some(bytes) = bytes_of(new) else { return Ok(()) };
    let depth = depth_of(path);
    let (Ok(trusted), Ok(config)) = (Config::read(trusted, depth), Config::read(bytes, depth))
    else {
        return Err(Failure::Reason("git could not read it"));
    };
    let text = config.with_entries_of(&trusted);
    let (parent, name) = parent_of(root, path)?;
    parent.open_up()?;
    let options = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
    Ok(parent.write(name, &text, options)?)
}

fn bytes_of(node: Option<&Node>) -> Option<&[u8]> {
    match node.map(|node| &node.state) {
        Some(State::File { bytes, .. }) => Some(bytes),
        _ => None,
    }
}

/// Opens the directory of an entry with no link on the way.
fn parent_of<'a>(root: &Root, path: &'a Path) -> Result<(Root, &'a Path), Failure> {
    let name = path.file_name().map(Path::new).ok_or(Failure::Reason("it has no name"))?;
    match path.parent() {
        Some(parent) if parent != Path::new("") => Ok((root.open_root_strict(parent)?, name)),
        _ => Ok((root.try_clone()?, name)),
    }
}

/// Makes the directories above an entry as far as they are missing; a link is no directory.
fn make_directories(root: &Root, path: &Path) -> Result<(), Failure> {
    let mut directory = root.try_clone()?;
    for name in path.iter().map(Path::new) {
        directory = match directory.open_root_strict(name) {
            Err(error) if error.problem() == Problem::NotFound => {
                directory.open_up()?;
                directory.create_directory(name, 0o777)?;
                directory.open_root_strict(name)?
            }
            other => other?,
        };
    }
    Ok(())
}
