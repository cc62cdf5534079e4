//! The comparison of a base with a fork, and the plan that follows from it.
//!
//! Only what the fork copied up or made is looked at, and what of the base that hides. Directories that both have are
//! compared entry by entry; one that the fork made, or that hides the base's, is one step of the plan, with
//! a step for each entry below it that the overlay left a mark on. Pending directories are a list of paths, so depth
//! costs neither stack nor descriptors.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use carrel_fsroot::{FileKind, Metadata, Problem, Root};

use crate::change::{Change, ChangeKind};
use crate::difference::{Form, Sides};
use crate::limits::{ChangesError, Limits, MAX_DEPTH};
use crate::overlay::Attributes;
use crate::plan::Plan;
use crate::planner::{Compared, Planner};
use crate::tree::{self, is_gone, node, open};

/// The tree of a fork.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The upper layer of an overlay over the base, which is not mounted while it is promoted.
    Upper(&'a Root),
    /// A copy of the base.
    Copy(&'a Root),
}

impl Source<'_> {
    pub(crate) fn root(&self) -> &Root {
        match self {
            Self::Upper(root) | Self::Copy(root) => root,
        }
    }

    fn form(&self) -> Form {
        match self {
            Self::Upper(_) => Form::Upper,
            Self::Copy(_) => Form::Copy,
        }
    }

    fn is_upper(&self) -> bool {
        self.form() == Form::Upper
    }
}

/// Returns the changes of a fork against its base, in path order.
///
/// Directories that were copied up, and files that were copied up or rewritten with equal content and mode, are no
/// changes. Neither is the time of the last change, which a promotion carries over nevertheless. The top directories
/// themselves are not compared.
pub fn changes(base: &Root, upper: &Root, limits: Limits) -> Result<Vec<Change>, ChangesError> {
    plan(base, Source::Upper(upper), limits).map(|plan| plan.changes)
}

/// Returns the changes of a copy against its base, in path order. Sockets, FIFOs and devices of the base, which are
/// not copied, are not missed.
pub fn changes_of_copy(
    base: &Root,
    copy: &Root,
    limits: Limits,
) -> Result<Vec<Change>, ChangesError> {
    plan(base, Source::Copy(copy), limits).map(|plan| plan.changes)
}

pub(crate) fn plan(base: &Root, source: Source<'_>, limits: Limits) -> Result<Plan, ChangesError> {
    let mut comparison = Comparison::new(base, source, limits);
    let context = if source.is_upper() { Context::Merged } else { Context::Complete };
    comparison.pending.push(Pending { path: PathBuf::new(), depth: 0, in_base: true, context });
    while let Some(next) = comparison.pending.pop() {
        match next.context {
            Context::Deleted => comparison.deleted_directory(&next)?,
            Context::Merged | Context::Complete | Context::Whole { .. } => {
                comparison.directory(&next)?;
            }
        }
    }
    Ok(comparison.planner.finish())
}

/// The relation of a directory of the fork to that of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    /// Entries that the fork does not have are the base's.
    Merged,
    /// Entries that the fork does not have are deleted.
    Complete,
    /// The same, and the directory moves with one above it.
    Whole {
        /// The permission bits of the directory in the fork.
        mode: u32,
    },
    /// Only the base has it.
    Deleted,
}

#[derive(Debug)]
struct Pending {
    path: PathBuf,
    depth: usize,
    in_base: bool,
    context: Context,
}

/// An open directory of the fork with that of the base.
struct Pair<'p> {
    at: &'p Pending,
    source: Root,
    base: Option<Root>,
}

struct Comparison<'a> {
    base: &'a Root,
    source: Source<'a>,
    limits: Limits,
    entries: usize,
    pending: Vec<Pending>,
    planner: Planner,
}

impl<'a> Comparison<'a> {
    fn new(base: &'a Root, source: Source<'a>, limits: Limits) -> Self {
        Self {
            base,
            source,
            limits,
            entries: 0,
            pending: Vec::new(),
            planner: Planner::new(source.form()),
        }
    }

    fn list(&mut self, directory: &Root) -> Result<Vec<OsString>, ChangesError> {
        let limit = self.limits.entries;
        let left = limit.saturating_sub(self.entries);
        let entries = directory.list_at_most(Path::new("."), left)?;
        let entries = entries.ok_or(ChangesError::TooManyEntries { limit })?;
        self.entries += entries.len();
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    fn directory(&mut self, at: &Pending) -> Result<(), ChangesError> {
        if at.depth > MAX_DEPTH {
            return Err(ChangesError::TooDeep { path: at.path.clone() });
        }
        let source = match open(self.source.root(), &at.path) {
            // A fork that lives goes on.
            Err(error) if is_gone(&error) => return Ok(()),
            opened => opened?,
        };
        let base = if at.in_base { Some(open(self.base, &at.path)?) } else { None };
        let pair = Pair { at, source, base };
        self.entries_of(&pair).map_err(|error| error.below(&at.path))
    }

    fn entries_of(&mut self, pair: &Pair<'_>) -> Result<(), ChangesError> {
        let names = self.list(&pair.source)?;
        let mut present = Vec::new();
        for name in names {
            if self.entry(pair, Path::new(&name))? {
                present.push(name);
            }
        }
        let context = pair.at.context;
        if let (Context::Complete | Context::Whole { .. }, Some(base)) = (context, &pair.base) {
            for name in self.list(base)? {
                if present.binary_search(&name).is_err() {
                    self.missing(pair, base, Path::new(&name))?;
                }
            }
        }
        Ok(())
    }

    /// Compares an entry of the fork; returns false if it says that the name is gone.
    fn entry(&mut self, pair: &Pair<'_>, name: &Path) -> Result<bool, ChangesError> {
        let Some(found) = tree::metadata(&pair.source, name)? else { return Ok(false) };
        let path = pair.at.path.join(name);
        let attributes = self.attributes(&pair.source, name, found.kind)?;
        let old = match &pair.base {
            Some(base) => tree::metadata(base, name)?,
            None => None,
        };
        if self.source.is_upper() && attributes.is_whiteout(&found) {
            self.whiteout(pair, path, &found, old.as_ref())?;
            return Ok(false);
        }
        if let Some(attribute) = attributes.refused {
            return Err(ChangesError::Unsupported { path, attribute });
        }
        let new_node = node(&pair.source, name, &found)?;
        let old_node = match (&pair.base, &old) {
            (Some(base), Some(old)) => Some(node(base, name, old)?),
            _ => None,
        };
        let kind = match (&pair.base, &old, &old_node) {
            (Some(base), Some(old), Some(old_node)) => {
                let form = self.source.form();
                let sides = Sides { name, base, old, source: &pair.source, new: &found, form };
                let compared_bytes = &mut self.limits.compared_bytes;
                sides.difference(old_node, &new_node, &attributes, compared_bytes)?
            }
            _ => Some(ChangeKind::Added),
        };
        let entry = Compared { path, found, old, attributes, kind };
        match pair.at.context {
            Context::Whole { .. } => self.planner.below_moved(&entry),
            Context::Merged | Context::Complete | Context::Deleted => self.planner.entry(&entry),
        }
        self.descend(pair, &entry);
        if let Some(kind) = kind {
            let change = Change { path: entry.path, kind, old: old_node, new: Some(new_node) };
            self.planner.change(change);
        }
        Ok(true)
    }

    fn attributes(
        &self,
        directory: &Root,
        name: &Path,
        kind: FileKind,
    ) -> Result<Attributes, ChangesError> {
        let read = match kind {
            FileKind::File | FileKind::Directory if self.source.is_upper() => {
                Attributes::of_upper(directory, name)
            }
            FileKind::File | FileKind::Directory => Attributes::of_plain(directory, name),
            FileKind::Link
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Device
            | FileKind::Unknown => return Ok(Attributes::default()),
        };
        match read {
            Err(error) if is_gone(&error) => Ok(Attributes::default()),
            read => Ok(read?),
        }
    }

    fn whiteout(
        &mut self,
        pair: &Pair<'_>,
        path: PathBuf,
        found: &Metadata,
        old: Option<&Metadata>,
    ) -> Result<(), ChangesError> {
        if let Context::Whole { mode } = pair.at.context {
            let inode = found.identity.inode;
            self.planner.discard(path, inode, mode);
            // That the base's entry is gone is seen when the base's names are compared.
            return Ok(());
        }
        match (&pair.base, old) {
            (Some(base), Some(old)) => self.delete(pair, base, path, old),
            _ => Ok(()),
        }
    }

    /// Deletes an entry of the base that a complete directory of the fork does not have.
    fn missing(&mut self, pair: &Pair<'_>, base: &Root, name: &Path) -> Result<(), ChangesError> {
        let Some(old) = tree::metadata(base, name)? else { return Ok(()) };
        let is_special = !matches!(old.kind, FileKind::File | FileKind::Directory | FileKind::Link);
        if is_special && !self.source.is_upper() {
            return Ok(());
        }
        self.delete(pair, base, pair.at.path.join(name), &old)
    }

    fn delete(
        &mut self,
        pair: &Pair<'_>,
        base: &Root,
        path: PathBuf,
        old: &Metadata,
    ) -> Result<(), ChangesError> {
        let old_node = node(base, tree::name(&path), old)?;
        if !matches!(pair.at.context, Context::Whole { .. }) {
            self.planner.aside(path.clone(), old);
        }
        if old_node.is_directory() {
            self.delete_contents(pair.at.depth, &path);
        }
        let kind = ChangeKind::Deleted;
        self.planner.change(Change { path, kind, old: Some(old_node), new: None });
        Ok(())
    }

    fn delete_contents(&mut self, depth: usize, path: &Path) {
        self.pending.push(Pending {
            path: path.to_owned(),
            depth: depth + 1,
            in_base: true,
            context: Context::Deleted,
        });
    }

    fn deleted_directory(&mut self, at: &Pending) -> Result<(), ChangesError> {
        if at.depth > MAX_DEPTH {
            return Err(ChangesError::TooDeep { path: at.path.clone() });
        }
        let directory = open(self.base, &at.path)?;
        self.deleted_entries(at, &directory).map_err(|error| error.below(&at.path))
    }

    fn deleted_entries(&mut self, at: &Pending, directory: &Root) -> Result<(), ChangesError> {
        let names = match self.list(directory) {
            // It goes as a whole.
            Err(ChangesError::Files(error)) if error.problem() == Problem::PermissionDenied => {
                return Ok(());
            }
            names => names?,
        };
        for name in names {
            let name = Path::new(&name);
            let found = match tree::metadata(directory, name) {
                Err(error) if error.problem() == Problem::PermissionDenied => continue,
                found => found?,
            };
            let Some(found) = found else { continue };
            let path = at.path.join(name);
            let old = node(directory, name, &found)?;
            if old.is_directory() {
                self.delete_contents(at.depth, &path);
            }
            let kind = ChangeKind::Deleted;
            self.planner.change(Change { path, kind, old: Some(old), new: None });
        }
        Ok(())
    }

    /// Adds the directories below an entry to the pending ones.
    fn descend(&mut self, pair: &Pair<'_>, entry: &Compared) {
        let was_directory = entry.was_directory();
        if !entry.is_directory() {
            if was_directory {
                self.delete_contents(pair.at.depth, &entry.path);
            }
            return;
        }
        let context = match pair.at.context {
            Context::Complete if was_directory => Context::Complete,
            Context::Merged if was_directory && !entry.attributes.is_opaque => Context::Merged,
            _ => Context::Whole { mode: entry.found.mode },
        };
        self.pending.push(Pending {
            path: entry.path.clone(),
            depth: pair.at.depth + 1,
            in_base: was_directory,
            context,
        });
    }
}
