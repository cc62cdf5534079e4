//! The differences between two trees.
//!
//! Directories with the same list are skipped, so comparing costs what differs. The time of a file's last change is
//! not a difference. What was left out on one side cannot be compared, and is no change.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::objects::Objects;
use crate::scan_options::{ScanError, ScanOptions, Scanned, Trust};
use crate::store::{FindError, Reference, State, Store};
use crate::tree::{Entry, Node, Omission, read_list};

/// A state of the workspace to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of a snapshot.
    Snapshot(Reference),
    /// The present one.
    Now,
}

/// A difference between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the workspace; the new one of a renamed file.
    pub path: PathBuf,
    /// What differs.
    pub kind: ChangeKind,
    /// What was there; `None` if nothing was.
    pub old: Option<Node>,
    /// What is there afterwards.
    pub new: Option<Node>,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// A file has other content, or a link another target.
    Modified,
    /// Only the permission bits differ.
    Mode,
    /// It is of another kind, such as a link in place of a file.
    Type,
    /// A file with the same content had another path.
    Renamed {
        /// That path.
        from: PathBuf,
    },
}

impl ChangeKind {
    /// Returns the name used in answers.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Modified => "modified",
            Self::Mode => "mode",
            Self::Type => "type",
            Self::Renamed { .. } => "renamed",
        }
    }
}

/// The differences between two states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The differences, in path order.
    pub changes: Vec<Change>,
    /// What is left out of one side, so that it cannot be compared with the other. What ignore rules exclude
    /// counts only if it is in the other.
    pub incomparable: Vec<(PathBuf, Omission)>,
}

/// Why two states could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// There is no such snapshot.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The workspace could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The form in which moved files are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renames {
    /// A file that was deleted and one with the same content that was added are one change.
    #[default]
    Joined,
    /// They are two.
    Apart,
}

impl Store {
    /// Compares two states. The content of both sides can be read afterwards with [`Store::content`]: that of
    /// the present files is stored for it, until the next collection of garbage. `trust` is about these.
    pub fn compare(
        &self,
        old: &Side,
        new: &Side,
        renames: Renames,
        trust: &Trust,
    ) -> Result<Comparison, CompareError> {
        self.compare_and_read(old, new, renames, trust, |comparison, _| comparison)
    }

    /// Compares two states, and does something with their content while no other process can collect it.
    pub fn compare_and_read<T>(
        &self,
        old: &Side,
        new: &Side,
        renames: Renames,
        trust: &Trust,
        act: impl FnOnce(Comparison, &mut Contents<'_>) -> T,
    ) -> Result<T, CompareError> {
        self.locked(|state| {
            let old_top = self.top_of(state, old, new, trust)?;
            let new_top = self.top_of(state, new, old, trust)?;
            let mut differences = Differences::new(&mut state.objects);
            differences.directories(Path::new(""), Some(old_top), Some(new_top))?;
            let mut comparison = differences.found;
            if renames == Renames::Joined {
                join_renames(&mut comparison.changes);
            }
            Ok(act(comparison, &mut Contents { objects: &mut state.objects }))
        })
    }

    /// Returns the list of a state. The present one is scanned with the options of the other.
    fn top_of(
        &self,
        state: &mut State,
        side: &Side,
        other: &Side,
        trust: &Trust,
    ) -> Result<ObjectId, CompareError> {
        let options = ScanOptions { trust: trust.clone(), ..ScanOptions::default() };
        let scanned = match (side, other) {
            (Side::Snapshot(reference), _) => return Ok(state.find(reference)?.top),
            (Side::Now, Side::Snapshot(other)) => {
                let other = state.find(other)?;
                let (top, ignored) = (other.top, other.ignored);
                self.scan_for(state, &ScanOptions { ignored, ..options }, top)?
            }
            (Side::Now, Side::Now) => self.scan(state, &options, &BTreeSet::new())?,
        };
        self.save_cache(state, &scanned);
        Ok(scanned.top)
    }

    /// Scans the workspace to compare it with a tree. What the tree has is taken, although ignore rules that came since
    /// exclude it.
    pub(crate) fn scan_for(
        &self,
        state: &mut State,
        options: &ScanOptions,
        tree: ObjectId,
    ) -> Result<Scanned, ScanError> {
        Ok(self.scan_and_compare(state, options, tree)?.scanned)
    }

    /// Scans the workspace in this way, and compares it with the tree.
    pub(crate) fn scan_and_compare(
        &self,
        state: &mut State,
        options: &ScanOptions,
        tree: ObjectId,
    ) -> Result<Compared, ScanError> {
        let mut held = BTreeSet::new();
        loop {
            let scanned = self.scan(state, options, &held)?;
            let mut differences = Differences::new(&mut state.objects);
            differences.directories(Path::new(""), Some(scanned.top), Some(tree))?;
            let more = if held.is_empty() { differences.held()? } else { BTreeSet::new() };
            if more.is_empty() {
                let Differences { found, left_out_of_old, .. } = differences;
                return Ok(Compared { scanned, found, left_out_of_old });
            }
            held = more;
        }
    }

    /// Returns the content of a file of a snapshot or comparison.
    pub fn content(&self, id: ObjectId) -> Result<Vec<u8>, StorageError> {
        self.locked(|state| state.objects.get(id))
    }

    /// Returns the entries of a directory of a snapshot by the id of its list, such as [`crate::Snapshot::top`].
    pub fn entries(&self, list: ObjectId) -> Result<Vec<Entry>, StorageError> {
        self.locked(|state| entries_of(&mut state.objects, list))
    }
}

/// The content of the files of a comparison.
#[derive(Debug)]
pub struct Contents<'a> {
    objects: &'a mut Objects,
}

impl Contents<'_> {
    /// Returns the content of a file.
    pub fn get(&mut self, id: ObjectId) -> Result<Vec<u8>, StorageError> {
        self.objects.get(id)
    }
}

pub(crate) fn entries_of(
    objects: &mut Objects,
    list: ObjectId,
) -> Result<Vec<Entry>, StorageError> {
    read_list(&objects.get(list)?).ok_or(StorageError::Damaged { id: list })
}

/// The present tree, compared with another one.
pub(crate) struct Compared {
    pub(crate) scanned: Scanned,
    pub(crate) found: Comparison,
    /// What is left out of the present tree, everywhere in what was looked at.
    pub(crate) left_out_of_old: Vec<(PathBuf, Omission)>,
}

/// The differences that were found so far.
pub(crate) struct Differences<'a> {
    objects: &'a mut Objects,
    pub(crate) found: Comparison,
    /// What is left out on the old side, everywhere in what was looked at.
    left_out_of_old: Vec<(PathBuf, Omission)>,
    /// What the new side has and ignore rules exclude from the old one.
    ignored_in_old: Vec<(PathBuf, Node)>,
}

impl<'a> Differences<'a> {
    pub(crate) fn new(objects: &'a mut Objects) -> Self {
        Self {
            objects,
            found: Comparison::default(),
            left_out_of_old: Vec::new(),
            ignored_in_old: Vec::new(),
        }
    }

    /// Returns all paths that the new side has and ignore rules exclude from the old one.
    fn held(&mut self) -> Result<BTreeSet<PathBuf>, StorageError> {
        let mut held = BTreeSet::new();
        let mut pending = std::mem::take(&mut self.ignored_in_old);
        while let Some((path, node)) = pending.pop() {
            if let Node::Directory { id, .. } = node {
                let entries = entries_of(self.objects, id)?.into_iter();
                pending.extend(entries.map(|entry| (path.join(entry.name), entry.node)));
            }
            if !matches!(node, Node::LeftOut(_)) {
                held.insert(path);
            }
        }
        Ok(held)
    }

    /// Compares the lists of two directories; a missing one is empty.
    pub(crate) fn directories(
        &mut self,
        path: &Path,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
    ) -> Result<(), StorageError> {
        if old == new {
            return Ok(());
        }
        let mut old = self.list(old)?;
        let mut new = self.list(new)?;
        while let Some(name) = next_name(&mut old, &mut new) {
            let path = path.join(&name);
            let old = old.next_if(|entry| entry.name == name).map(|entry| entry.node);
            let new = new.next_if(|entry| entry.name == name).map(|entry| entry.node);
            self.entry(path, old, new)?;
        }
        Ok(())
    }

    fn list(
        &mut self,
        id: Option<ObjectId>,
    ) -> Result<Peekable<std::vec::IntoIter<Entry>>, StorageError> {
        let entries = id.map(|id| entries_of(self.objects, id)).transpose()?;
        Ok(entries.unwrap_or_default().into_iter().peekable())
    }

    fn entry(
        &mut self,
        path: PathBuf,
        old: Option<Node>,
        new: Option<Node>,
    ) -> Result<(), StorageError> {
        if let Some(Node::LeftOut(omission)) = old {
            self.left_out_of_old.push((path.clone(), omission));
        }
        if let (Some(Node::LeftOut(Omission::Ignored)), Some(new)) = (&old, &new) {
            self.ignored_in_old.push((path.clone(), new.clone()));
        }
        match (&old, &new) {
            (None, Some(Node::LeftOut(omission))) | (Some(Node::LeftOut(omission)), None) => {
                let is_expected = matches!(omission, Omission::Ignored | Omission::Repository);
                if !is_expected {
                    self.found.incomparable.push((path, *omission));
                }
                return Ok(());
            }
            (Some(Node::LeftOut(_)), Some(Node::LeftOut(_))) | (None, None) => return Ok(()),
            (Some(Node::LeftOut(omission)), Some(_)) | (Some(_), Some(Node::LeftOut(omission))) => {
                self.found.incomparable.push((path, *omission));
                return Ok(());
            }
            (Some(_) | None, Some(_)) | (Some(_), None) => {}
        }
        let (old_list, new_list) = (list_of(old.as_ref()), list_of(new.as_ref()));
        let kind = match (&old, &new) {
            (None, _) => Some(ChangeKind::Added),
            (_, None) => Some(ChangeKind::Deleted),
            (Some(old), Some(new)) => kind_of(old, new),
        };
        if let Some(kind) = kind {
            self.found.changes.push(Change { path: path.clone(), kind, old, new });
        }
        self.directories(&path, old_list, new_list)
    }
}

fn next_name(
    old: &mut Peekable<std::vec::IntoIter<Entry>>,
    new: &mut Peekable<std::vec::IntoIter<Entry>>,
) -> Option<std::ffi::OsString> {
    let names = [old.peek(), new.peek()].into_iter().flatten().map(|entry| &entry.name);
    names.min().cloned()
}

fn list_of(node: Option<&Node>) -> Option<ObjectId> {
    match node {
        Some(Node::Directory { id, .. }) => Some(*id),
        Some(Node::File { .. } | Node::Link { .. } | Node::LeftOut(_)) | None => None,
    }
}

/// Returns what differs between two entries of the same name, apart from what is below them.
fn kind_of(old: &Node, new: &Node) -> Option<ChangeKind> {
    match (old, new) {
        (Node::File { id, .. }, Node::File { id: other, .. }) if id != other => {
            Some(ChangeKind::Modified)
        }
        (Node::File { mode, .. }, Node::File { mode: other, .. })
        | (Node::Directory { mode, .. }, Node::Directory { mode: other, .. }) => {
            (mode != other).then_some(ChangeKind::Mode)
        }
        (Node::Link { target }, Node::Link { target: other }) => {
            (target != other).then_some(ChangeKind::Modified)
        }
        _ => Some(ChangeKind::Type),
    }
}

/// Joins each deleted file with an added one of the same content, of the same name if there is one.
fn join_renames(changes: &mut Vec<Change>) {
    let mut deleted: HashMap<ObjectId, Vec<usize>> = HashMap::new();
    for (index, change) in changes.iter().enumerate() {
        if let (ChangeKind::Deleted, Some(id)) = (&change.kind, content_of(change.old.as_ref())) {
            deleted.entry(id).or_default().push(index);
        }
    }
    let mut joined = Vec::new();
    for round in [Candidates::SameName, Candidates::Any] {
        for index in 0..changes.len() {
            let change = &changes[index];
            if change.kind != ChangeKind::Added {
                continue;
            }
            let Some(id) = content_of(change.new.as_ref()) else { continue };
            let Some(candidates) = deleted.get_mut(&id) else { continue };
            let fits = |from: &usize| match round {
                Candidates::SameName => name(&changes[*from]) == name(change),
                Candidates::Any => true,
            };
            let Some(place) = candidates.iter().position(fits) else { continue };
            let from = candidates.remove(place);
            joined.push(from);
            let (path, old) = (changes[from].path.clone(), changes[from].old.clone());
            changes[index].kind = ChangeKind::Renamed { from: path };
            changes[index].old = old;
        }
    }
    joined.sort_unstable();
    let mut index = 0;
    changes.retain(|_| {
        index += 1;
        joined.binary_search(&(index - 1)).is_err()
    });
}

#[derive(Clone, Copy)]
enum Candidates {
    SameName,
    Any,
}

fn name(change: &Change) -> Option<&OsStr> {
    change.path.file_name()
}

/// Returns the content of a file that is not empty; empty files are not told apart.
fn content_of(node: Option<&Node>) -> Option<ObjectId> {
    match node {
        Some(Node::File { id, size, .. }) if *size > 0 => Some(*id),
        _ => None,
    }
}
