//! Links that stand where a project directory is watched.
//!
//! An operator who enters such a link is in its destination, so the destination is scanned like a
//! project directory. It may be any directory of the workspace, watched or not. When something there
//! would run and was not trusted, the link is undone, and the destination left alone.

use std::path::{Component, Path, PathBuf};

use carrel_fsroot::{Escape, Problem, Root};

use super::diff::below;
use super::snapshot::{EntryState, LinkDestination, Snapshot, WatchedEntry};

/// Directories of the system, to which many honest links lead.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix"];

/// Resolves a link. `path` is its own, relative to the workspace.
pub(super) fn resolve(root: &Root, path: &Path, target: &Path) -> LinkDestination {
    let above = path.parent().unwrap_or(Path::new(""));
    let from_top = match target.strip_prefix(root.path()) {
        Ok(below) => Path::new(".").join(below),
        Err(_) if target.is_absolute() => return outside(root, target),
        Err(_) => above.join(target),
    };
    match root.open_root(&from_top) {
        Ok(directory) => match directory.path().strip_prefix(root.path()) {
            Ok(inside) => LinkDestination::Inside(inside.to_owned()),
            // The workspace itself may have been moved since it was opened.
            Err(_) => root.locate(&from_top).map_or_else(
                |_| LinkDestination::Outside(target.to_owned()),
                LinkDestination::Inside,
            ),
        },
        Err(error) => match error.problem() {
            Problem::NotFound | Problem::NotADirectory | Problem::Escapes(Escape::DanglingLink) => {
                LinkDestination::Dangling
            }
            _ => leading_out(root, from_top),
        },
    }
}

/// Finds the place of a path that leads out. A directory on the way may be missing, so that it leads nowhere.
fn leading_out(root: &Root, path: PathBuf) -> LinkDestination {
    match root.outside_target(&path) {
        Ok(place) => LinkDestination::Outside(place.unwrap_or(path)),
        Err(error) => match error.problem() {
            Problem::NotFound | Problem::NotADirectory => LinkDestination::Dangling,
            _ => LinkDestination::Outside(path),
        },
    }
}

/// Classifies an absolute target by its names alone. Asking the host would tell a command which of its
/// files exist.
fn outside(root: &Root, target: &Path) -> LinkDestination {
    let climbs = target.components().any(|part| part == Component::ParentDir);
    let in_system = |top: &str| target.starts_with(top) && !root.path().starts_with(top);
    if !climbs && SYSTEM.iter().any(|top| in_system(top)) {
        LinkDestination::System
    } else {
        LinkDestination::Outside(target.to_owned())
    }
}

/// Keeps the trusted destination of links that are dangling now. Nothing runs behind them, and when the
/// directory is back they lead to it as before.
pub(super) fn keep_dangling_links(before: &Snapshot, now: &mut Snapshot) {
    for (path, entry) in now.iter_mut() {
        let Some(WatchedEntry { state: old, .. }) = before.get(path) else { continue };
        if let EntryState::DirectoryLink { target, destination } = &entry.state
            && let EntryState::DirectoryLink { target: old_target, .. } = old
            && *destination == LinkDestination::Dangling
            && target == old_target
        {
            entry.state = old.clone();
        }
    }
}

/// Returns the entries at and below a path, or behind the link there, moved to another path.
pub(super) fn rebased(trusted: &Snapshot, path: &Path, at: &Path) -> Snapshot {
    let from = match trusted.get(path).map(|entry| &entry.state) {
        Some(EntryState::DirectoryLink {
            destination: LinkDestination::Inside(behind), ..
        }) => behind,
        _ => path,
    };
    let moved = |(path, entry): (&PathBuf, &WatchedEntry)| {
        path.strip_prefix(from).ok().map(|rest| {
            let path = if rest.as_os_str().is_empty() { at.to_owned() } else { at.join(rest) };
            (path, entry.clone())
        })
    };
    trusted.get_key_value(from).into_iter().chain(below(trusted, from)).filter_map(moved).collect()
}

/// Returns whether a directory is a project directory by its path.
pub(super) fn is_project_location(path: &Path) -> bool {
    let above = path.parent().unwrap_or(Path::new(""));
    above == Path::new("") || above == Path::new("repos")
}
