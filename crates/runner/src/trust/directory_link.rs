//! Links where a directory would be a place.
//!
//! Whoever enters one is where it leads, so that is looked at like the place itself. What it
//! leads to may be anybody's, such as a directory that nobody watches: when something there would
//! run, it is the link that goes, and the rest is left alone.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use carrel_fsroot::{Escape, Problem, Root};

use super::diff::below;
use super::snapshot::{Leads, Node, State, Tree};

/// Directories of the system, to which many honest links lead.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix"];

/// How many names are passed to find out how a path leaves.
const MAX_STEPS: usize = 1024;

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
            Err(_) => root
                .locate(&from_top)
                .map_or_else(|_| Leads::Outside(target.to_owned()), Leads::Inside),
        },
        Err(error) => match error.problem() {
            Problem::NotFound | Problem::NotADirectory | Problem::Escapes(Escape::DanglingLink) => {
                Leads::Nowhere
            }
            _ => Leads::Outside(way_out(root, &from_top)),
        },
    }
}

/// By its names alone: the host is not asked what a command wants to know of it.
fn outside(root: &Root, target: &Path) -> Leads {
    let climbs = target.components().any(|part| part == Component::ParentDir);
    let in_system = |top: &str| target.starts_with(top) && !root.path().starts_with(top);
    if !climbs && SYSTEM.iter().any(|top| in_system(top)) {
        Leads::System
    } else {
        Leads::Outside(target.to_owned())
    }
}

/// Finds the link by which a path leaves, which may be another than the first.
fn way_out(root: &Root, path: &Path) -> PathBuf {
    let mut at = PathBuf::new();
    let mut ahead: VecDeque<OsString> = path.iter().map(OsString::from).collect();
    for _ in 0..MAX_STEPS {
        let Some(name) = ahead.pop_front() else { break };
        if name == "." || (name == ".." && at.pop()) {
            continue;
        }
        let next = at.join(&name);
        match root.read_link(&next) {
            Ok(target) if target.is_absolute() => return target,
            Ok(target) => {
                let names = target.iter().rev().map(OsString::from);
                names.for_each(|name| ahead.push_front(name));
            }
            Err(_) if name == ".." => return next.join(ahead.iter().collect::<PathBuf>()),
            Err(_) => at = next,
        }
    }
    path.to_owned()
}

/// Keeps what is trusted of links that lead nowhere for a while: nothing runs behind them.
pub(super) fn keep_dangling(before: &Tree, now: &mut Tree) {
    for (path, node) in now.iter_mut() {
        let State::Door { target, leads: Leads::Nowhere } = &node.state else { continue };
        let Some(State::Door { target: old, .. }) = before.get(path).map(|node| &node.state) else {
            continue;
        };
        if old == target {
            node.state = before[path].state.clone();
        }
    }
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
