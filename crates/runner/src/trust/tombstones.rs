//! What was trusted and is not there any more.
//!
//! A directory that is moved to where nobody looks and back comes back as what it was, and so does
//! a name that is free for a while: what appears there is compared with what was trusted, and is
//! not taken for new.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use super::diff::{Newcomers, below};
use super::directory_link::view;
use super::renames::is_same;
use super::snapshot::{Node, State, Tree};

/// How many entries are remembered; the oldest are forgotten.
const MAX_ENTRIES: usize = 4096;

/// How much of their contents is kept in memory.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What was trusted and is not there any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Gone {
    nodes: Tree,
    numbers: HashMap<PathBuf, u64>,
    oldest_first: VecDeque<(u64, PathBuf)>,
    bytes: usize,
    next: u64,
    has_forgotten: bool,
}

impl Gone {
    /// Remembers what has vanished.
    pub(super) fn remember(&mut self, vanished: impl IntoIterator<Item = (PathBuf, Node)>) {
        for (path, node) in vanished {
            self.forget(&path);
            self.next += 1;
            self.bytes += kept(&node);
            self.numbers.insert(path.clone(), self.next);
            self.oldest_first.push_back((self.next, path.clone()));
            self.nodes.insert(path, node);
        }
        while self.nodes.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some((number, path)) = self.oldest_first.pop_front() else { break };
            if self.numbers.get(&path) == Some(&number) {
                self.forget(&path);
                self.has_forgotten = true;
            }
        }
        if self.oldest_first.len() > 2 * MAX_ENTRIES {
            let numbers = &self.numbers;
            self.oldest_first.retain(|(number, path)| numbers.get(path) == Some(number));
        }
    }

    /// Trusts again what is back, by its name or as the directory that it was, the way it was.
    pub(super) fn revive(&mut self, trusted: &mut Tree, seen: &Tree) {
        if self.nodes.is_empty() {
            return;
        }
        let is_back =
            |path: &&PathBuf| !trusted.contains_key(*path) && self.nodes.contains_key(*path);
        let back: Vec<&PathBuf> = seen.keys().filter(is_back).collect();
        for path in back {
            for (path, node) in self.take(path) {
                trusted.entry(path).or_insert(node);
            }
        }
        let arrived: Vec<&PathBuf> = seen
            .iter()
            .filter(|(path, node)| node.can_move() && !trusted.contains_key(*path))
            .map(|(path, _)| path)
            .collect();
        for path in arrived {
            let was = |from: &&PathBuf| is_same(&self.nodes, from, seen, path);
            let movable = self.nodes.iter().filter(|(_, node)| node.can_move());
            if let Some(from) = movable.map(|(from, _)| from).find(was) {
                for (path, node) in view(&self.nodes, from, path) {
                    trusted.entry(path).or_insert(node);
                }
            }
        }
    }

    /// Tells what may come with a directory that nothing is known of.
    pub(super) fn newcomers(&self) -> Newcomers {
        if self.has_forgotten { Newcomers::PutAside } else { Newcomers::Told }
    }

    /// Returns what is remembered of a path and all below it, and forgets it.
    fn take(&mut self, path: &Path) -> Vec<(PathBuf, Node)> {
        let found = self.nodes.get_key_value(path).into_iter().chain(below(&self.nodes, path));
        let paths: Vec<PathBuf> = found.map(|(path, _)| path.clone()).collect();
        paths.into_iter().filter_map(|path| self.forget(&path).map(|node| (path, node))).collect()
    }

    fn forget(&mut self, path: &Path) -> Option<Node> {
        let node = self.nodes.remove(path)?;
        self.numbers.remove(path);
        self.bytes -= kept(&node);
        Some(node)
    }
}

fn kept(node: &Node) -> usize {
    match &node.state {
        State::File { bytes, .. } => bytes.len(),
        _ => 0,
    }
}
