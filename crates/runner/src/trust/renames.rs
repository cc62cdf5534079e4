//! Directories that only got another name take the trust in what is in them along.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use carrel_fsroot::Identity;

use super::diff::below;
use super::directory_link::view;
use super::snapshot::{Node, Tree};

/// Lets trust follow every place and repository to the name it has in a later look.
///
/// A name that something else has taken keeps its trust as well: what stands there is
/// held to it. Returns what is trusted at names that nothing has any more.
pub(super) fn follow_renames(trusted: &mut Tree, seen: &Tree) -> Tree {
    let mut vanished = Tree::new();
    let arrived =
        seen.iter().filter(|(path, node)| node.can_move() && !trusted.contains_key(*path));
    let arrived: HashMap<Identity, &PathBuf> =
        arrived.map(|(path, node)| (node.stamp.identity, path)).collect();
    if arrived.is_empty() {
        return vanished;
    }
    let left = |path: &Path, node: &Node| {
        seen.get(path).is_none_or(|now| now.stamp.identity != node.stamp.identity)
    };
    let moves: Vec<(PathBuf, PathBuf)> = trusted
        .iter()
        .filter(|(path, node)| node.can_move() && left(path, node))
        .filter_map(|(from, node)| {
            arrived.get(&node.stamp.identity).map(|to| (from.clone(), (*to).clone()))
        })
        .collect();
    for (from, to) in moves {
        if !is_same(trusted, &from, seen, &to) {
            continue;
        }
        let carried = view(trusted, &from, &to);
        trusted.extend(carried);
        if !seen.contains_key(&from) {
            let gone: Vec<_> = below(trusted, &from).map(|(path, _)| path.clone()).collect();
            for path in [from].into_iter().chain(gone) {
                vanished.extend(trusted.remove(&path).map(|node| (path, node)));
            }
        }
    }
    vanished
}

/// Tells whether a directory that was at one path is the one at another.
pub(super) fn is_same(trusted: &Tree, from: &Path, seen: &Tree, to: &Path) -> bool {
    let (Some(old), Some(new)) = (trusted.get(from), seen.get(to)) else { return false };
    if old.born.is_some() && new.born.is_some() {
        return old.is_same_directory(new);
    }
    old.stamp.identity == new.stamp.identity && shares_a_file(trusted, from, seen, to)
}

/// Numbers of directories are used again at once; a file inside tells whether it is the same.
fn shares_a_file(trusted: &Tree, from: &Path, seen: &Tree, to: &Path) -> bool {
    below(trusted, from).any(|(path, node)| {
        let now = path.strip_prefix(from).ok().and_then(|rest| seen.get(&to.join(rest)));
        now.is_some_and(|now| now.stamp.is_same_file(&node.stamp))
    })
}
