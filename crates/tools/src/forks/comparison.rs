//! What a fork changed, against its base or another fork of that base, and the same as a patch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{Code, Failure, Identifier};
use carrel_fork::{Change, ChangeKind, Node};
use carrel_fsroot::{Problem, Root};
use carrel_workspace::{Record, Workspace};
use futures_util::future::BoxFuture;

use super::{Forks, Pair};
use crate::blocking::blocking;
use crate::snapshots::{MAX_COMPARED, Shown, body, header};

/// The text of a comparison, as far as it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkPatch {
    /// The sections of `git diff`, in path order.
    pub text: String,
    /// Changes that are not in it, since the text would be too long.
    pub not_shown: Vec<PathBuf>,
    /// The number of changes below `.git`, which are in no patch.
    pub in_repositories: usize,
}

/// The directory of a repository.
const REPOSITORY: &str = ".git";

/// A state of a base's tree: that of a fork, or the base's own.
struct Tree {
    /// The changes of the fork; none for the base.
    changes: BTreeMap<PathBuf, Change>,
    /// The directory that has the changed entries.
    changed: Option<Root>,
    base: Arc<Workspace>,
}

impl Forks {
    /// Lists what a fork changed, against its base or another fork of it.
    pub async fn changes_against(
        &self,
        fork: &Identifier,
        other: Option<&Identifier>,
    ) -> Result<Vec<Change>, Failure> {
        let (old, new) = self.trees(fork, other).await?;
        blocking(move || differences(&old, &new)).await
    }

    /// Returns what a fork changed as a patch of at most so many bytes, with the changes. Binary files are only named,
    /// and what is below `.git` is left out.
    pub async fn patch(
        &self,
        fork: &Identifier,
        other: Option<&Identifier>,
        limit: usize,
    ) -> Result<(Vec<Change>, ForkPatch), Failure> {
        let (old, new) = self.trees(fork, other).await?;
        blocking(move || {
            let changes = differences(&old, &new)?;
            let mut patch = ForkPatch::default();
            for change in &changes {
                if change.path.iter().any(|name| name == REPOSITORY) {
                    patch.in_repositories += 1;
                    continue;
                }
                if patch.text.len() < limit {
                    let section = section(change, &old, &new)?;
                    if patch.text.len() + section.len() <= limit {
                        patch.text.push_str(&section);
                        continue;
                    }
                }
                patch.not_shown.push(change.path.clone());
            }
            Ok((changes, patch))
        })
        .await
    }

    /// Returns the tree that is compared with, and that of the fork.
    fn trees<'a>(
        &'a self,
        fork: &'a Identifier,
        other: Option<&'a Identifier>,
    ) -> BoxFuture<'a, Result<(Tree, Tree), Failure>> {
        Box::pin(self.find_trees(fork, other))
    }

    async fn find_trees(
        &self,
        fork: &Identifier,
        other: Option<&Identifier>,
    ) -> Result<(Tree, Tree), Failure> {
        let Pair { fork, base } = self.pair(fork).await?;
        let new = self.tree(&fork, &base).await?;
        let Some(other) = other else {
            return Ok((Tree { changes: BTreeMap::new(), changed: None, base }, new));
        };
        let other = self.pair(other).await?;
        let (one, key) = (&base.record().key, &other.base.record().key);
        if one != key {
            let (fork, other) = (&fork.key, &other.fork.key);
            let message = format!(
                "{other} is a fork of {key} and {fork} one of {one}; compare forks of the same base"
            );
            return Err(Failure::new(Code::ForkRefused, message).with("key", other.as_str()));
        }
        Ok((self.tree(&other.fork, &base).await?, new))
    }

    async fn tree(&self, fork: &Record, base: &Arc<Workspace>) -> Result<Tree, Failure> {
        let (workspaces, fork, base) = (self.workspaces.clone(), fork.clone(), Arc::clone(base));
        blocking(move || {
            let changes = workspaces.changes(&fork, base.files())?;
            let changes = changes.into_iter().map(|change| (change.path.clone(), change)).collect();
            Ok(Tree { changes, changed: Some(workspaces.changed_tree(&fork)?), base })
        })
        .await
    }
}

impl Tree {
    /// Returns the directory that has an entry of this tree.
    fn root_of(&self, path: &Path) -> &Root {
        let changed = self.changed.as_ref().filter(|_| self.changes.contains_key(path));
        changed.unwrap_or_else(|| self.base.files())
    }

    /// Returns what a tree has where another one changed the base.
    fn node(&self, path: &Path, other: &Change) -> Option<Node> {
        self.changes.get(path).map_or_else(|| other.old.clone(), |own| own.new.clone())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        Ok(self.root_of(path).read(path, MAX_COMPARED)?)
    }
}

fn differences(old: &Tree, new: &Tree) -> Result<Vec<Change>, Failure> {
    let paths: BTreeSet<&PathBuf> = old.changes.keys().chain(new.changes.keys()).collect();
    let mut changes = Vec::new();
    for path in paths {
        let Some(any) = new.changes.get(path).or_else(|| old.changes.get(path)) else { continue };
        let (before, after) = (old.node(path, any), new.node(path, any));
        let kind = match (&before, &after) {
            (None, None) => None,
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Deleted),
            (Some(before), Some(after)) => kind_of(path, (old, before), (new, after), any)?,
        };
        let change = |kind| Change { path: path.clone(), kind, old: before, new: after };
        changes.extend(kind.map(change));
    }
    Ok(changes)
}

/// Compares two entries of one path, which are in both trees.
fn kind_of(
    path: &Path,
    (old, before): (&Tree, &Node),
    (new, after): (&Tree, &Node),
    any: &Change,
) -> Result<Option<ChangeKind>, Failure> {
    let by_mode = |one: u32, other: u32| (one != other).then_some(ChangeKind::Mode);
    let is_changed_in_one = !old.changes.contains_key(path) || !new.changes.contains_key(path);
    Ok(match (before, after) {
        // The comparison with the base has read the contents.
        _ if is_changed_in_one => Some(any.kind),
        (Node::File { mode, size }, Node::File { mode: other, size: other_size }) => {
            let is_same = size == other_size && has_same_content(path, old, new)?;
            if is_same { by_mode(*mode, *other) } else { Some(ChangeKind::Modified) }
        }
        (Node::Directory { mode }, Node::Directory { mode: other }) => by_mode(*mode, *other),
        (Node::Link { .. }, Node::Link { .. }) => (before != after).then_some(ChangeKind::Modified),
        (Node::Special(one), Node::Special(other)) if one == other => None,
        _ => Some(ChangeKind::Type),
    })
}

/// A file that may not be read counts as another one.
fn has_same_content(path: &Path, old: &Tree, new: &Tree) -> Result<bool, Failure> {
    let open = |tree: &Tree| match tree.root_of(path).open_file(path) {
        Err(error) if error.problem() == Problem::PermissionDenied => Ok(None),
        opened => opened.map(|(file, _)| Some(file)),
    };
    let (Some(old), Some(new)) = (open(old)?, open(new)?) else { return Ok(false) };
    Ok(carrel_fork::have_equal_content(&old, &new).unwrap_or(false))
}

/// Returns the section of one change, in the form of `git diff`.
fn section(change: &Change, old: &Tree, new: &Tree) -> Result<String, Failure> {
    let name = change.path.display().to_string();
    let modes = (mode(change.old.as_ref()), mode(change.new.as_ref()));
    if modes == (None, None) {
        return Ok(String::new());
    }
    let text = header((&name, modes.0), (&name, modes.1));
    let before = shown(&change.path, change.old.as_ref(), old)?;
    let after = shown(&change.path, change.new.as_ref(), new)?;
    let section = body(&name, (change.old.is_some(), before), (change.new.is_some(), after));
    Ok(text + &section.text)
}

fn shown(path: &Path, node: Option<&Node>, tree: &Tree) -> Result<Shown, Failure> {
    Ok(match node {
        Some(Node::File { size, .. }) if *size > MAX_COMPARED => Shown::Binary,
        Some(Node::File { .. }) => match tree.read(path) {
            Err(failure) if failure.code == Code::PermissionDenied => Shown::Binary,
            read => Shown::of(read?),
        },
        Some(Node::Link { target }) => Shown::Text(target.display().to_string()),
        Some(Node::Directory { .. } | Node::Special(_)) | None => Shown::Text(String::new()),
    })
}

/// Returns the mode as git writes it; none for a directory, which git does not have, and for special files.
fn mode(node: Option<&Node>) -> Option<String> {
    match node? {
        Node::File { mode, .. } => Some(format!("100{mode:03o}")),
        Node::Link { .. } => Some("120000".to_owned()),
        Node::Directory { .. } | Node::Special(_) => None,
    }
}
