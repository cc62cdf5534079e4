//! Directories that only got another name take the trust in what is in them along.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use carrel_fsroot::Identity;

use super::compare::below;
use super::node::{Node, Tree};
use super::watch::Role;

/// Lets trust follow every place and repository to the name it has in a later look.
///
/// A name that something else has taken keeps its trust as well: what stands there is
/// held to it.
pub(super) fn follow_renames(trusted: &mut Tree, seen: &Tree) {
    let arrived = seen.iter().filter(|(path, node)| can_move(node) && !trusted.contains_key(*path));
    let arrived: HashMap<Identity, &PathBuf> =
        arrived.map(|(path, node)| (node.stamp.identity, path)).collect();
    if arrived.is_empty() {
        return;
    }
    let left = |path: &Path, node: &Node| {
        seen.get(path).is_none_or(|now| now.stamp.identity != node.stamp.identity)
    };
    let moves: Vec<(PathBuf, PathBuf)> = trusted
        .iter()
        .filter(|(path, node)| can_move(node) && left(path, node))
        .filter_map(|(from, node)| {
            arrived.get(&node.stamp.identity).map(|to| (from.clone(), (*to).clone()))
        })
        .collect();
    for (from, to) in moves {
        if !shares_a_file(trusted, &from, seen, &to) {
            continue;
        }
        carry(trusted, &from, &to);
        if !seen.contains_key(&from) {
            let gone: Vec<_> = below(trusted, &from).map(|(path, _)| path.clone()).collect();
            trusted.remove(&from);
            for path in gone {
                trusted.remove(&path);
            }
        }
    }
}

/// Numbers of directories are used again at once; a file inside tells whether it is the same.
fn shares_a_file(trusted: &Tree, from: &Path, seen: &Tree, to: &Path) -> bool {
    below(trusted, from).any(|(path, node)| {
        let now = path.strip_prefix(from).ok().and_then(|rest| seen.get(&to.join(rest)));
        now.is_some_and(|now| now.stamp.is_same_file(&node.stamp))
    })
}

fn can_move(node: &Node) -> bool {
    node.is_directory() && matches!(node.watch.role(), Role::Place | Role::GitDirectory)
}

fn carry(trusted: &mut Tree, from: &Path, to: &Path) {
    let carried: Vec<(PathBuf, Node)> = below(trusted, from)
        .filter_map(|(path, node)| Some((to.join(path.strip_prefix(from).ok()?), node.clone())))
        .collect();
    let top = trusted.get(from).cloned();
    trusted.extend(carried);
    trusted.extend(top.map(|node| (to.to_owned(), node)));
}
