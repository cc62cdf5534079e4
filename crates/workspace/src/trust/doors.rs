//! Links where a directory would be a place.
//!
//! Whoever enters one is where it leads, so that is looked at like the place itself. What it
//! leads to may be anybody's, such as a directory that nobody watches: when something there would
//! run, it is the link that goes, and the rest is left alone.

use std::path::{Component, Path, PathBuf};

use carrel_fsroot::{Escape, Problem, Root};

use super::compare::below;
use super::node::{Leads, Node, State, Tree};

/// Directories of the system, to which many honest links lead.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix"];

/// Finds out where a link leads. `path` is its own, from the workspace.
pub(super) fn leads(root: &Root, path: &Path, target: &Path) -> Leads {
    let above = path.parent().unwrap_or(Path::new(""));
    let from_top = match target.strip_prefix(root.path()) {
        Ok(below) => Path::new(".").join(below),
        Err(_) if target.is_absolute() => return outside(root, target),
        Err(_) => above.join(target),
    };
    match root.open_root(&from_top) {
        Ok(directory) => match directory.path().strip_prefix(root.path()) {
            Ok(inside) => Leads::Inside(inside.to_owned()),
            // The workspace itself may have been moved since it was opened.
            Err(_) => root.locate(&from_top).map_or(Leads::Outside, Leads::Inside),
        },
        Err(error) => match error.problem() {
            Problem::NotFound | Problem::NotADirectory | Problem::Escapes(Escape::DanglingLink) => {
                Leads::Nowhere
            }
            _ => Leads::Outside,
        },
    }
}

/// By its names alone: the host is not asked what a command wants to know of it.
fn outside(root: &Root, target: &Path) -> Leads {
    let climbs = target.components().any(|part| part == Component::ParentDir);
    let in_system = |top: &str| target.starts_with(top) && !root.path().starts_with(top);
    if !climbs && SYSTEM.iter().any(|top| in_system(top)) { Leads::System } else { Leads::Outside }
}

/// Returns what is trusted in a place, as it would look at another path.
pub(super) fn view(trusted: &Tree, place: &Path, at: &Path) -> Tree {
    let from = match trusted.get(place).map(|node| &node.state) {
        Some(State::Door { leads: Leads::Inside(behind), .. }) => behind,
        _ => place,
    };
    let moved = |(path, node): (&PathBuf, &Node)| {
        path.strip_prefix(from).ok().map(|rest| {
            let path = if rest.as_os_str().is_empty() { at.to_owned() } else { at.join(rest) };
            (path, node.clone())
        })
    };
    trusted.get_key_value(from).into_iter().chain(below(trusted, from)).filter_map(moved).collect()
}

/// Tells whether a directory is looked at because of where it is.
pub(super) fn is_place_itself(path: &Path) -> bool {
    let above = path.parent().unwrap_or(Path::new(""));
    above == Path::new("") || above == Path::new("repos")
}
