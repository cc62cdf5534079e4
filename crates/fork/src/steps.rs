//! Taking the steps of a plan, each of which can be taken again.
//!
//! Before a step changes something it looks at the inodes: if the change is there already, the step is done; if the
//! entry is neither as the plan found it nor as the plan leaves it, something else has come there since, and it is left
//! alone and reported.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use carrel_fsroot::{Attribute, Collision, Error, FileKind, Metadata, Problem, Root};

use crate::journal::Journal;
use crate::overlay::{is_hidden, is_overlay};
use crate::plan::{Stamp, Step};
use crate::sync::sync;
use crate::tree::{LastDirectory, metadata, name, parent};

/// The rights that a directory has while entries are put into it.
const OWNER_ALL: u32 = 0o700;

/// The rights that a file has while its attributes are changed.
const OWNER_WRITE: u32 = 0o600;

/// What came of the steps.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The steps that changed something.
    pub(crate) taken: usize,
    pub(crate) conflicts: BTreeSet<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Now,
    Before,
    /// Something else is there.
    Not,
}

pub(crate) struct Steps<'a> {
    base: LastDirectory<'a>,
    source: LastDirectory<'a>,
    base_root: &'a Root,
    trash: &'a Root,
    trash_name: &'a str,
    /// The inodes that are installed.
    installed: HashSet<u64>,
    /// Directories and stripped files of the base to sync.
    touched: BTreeSet<PathBuf>,
    pub(crate) outcome: Outcome,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        base: &'a Root,
        source: &'a Root,
        trash: &'a Root,
        journal: &'a Journal,
    ) -> Self {
        let installed = journal.steps.iter().filter_map(|step| match step {
            Step::Install { inode, .. } => Some(*inode),
            Step::Strip { .. }
            | Step::Discard { .. }
            | Step::Aside { .. }
            | Step::Finish { .. } => None,
        });
        Self {
            base: LastDirectory::new(base),
            source: LastDirectory::new(source),
            base_root: base,
            trash,
            trash_name: &journal.trash_name,
            installed: installed.collect(),
            touched: BTreeSet::new(),
            outcome: Outcome::default(),
        }
    }

    pub(crate) fn take(&mut self, number: usize, step: &Step) -> Result<(), Error> {
        let taken = match step {
            Step::Strip { path, inode, mode, attributes } => {
                self.strip(path, *inode, *mode, attributes)?
            }
            Step::Discard { path, inode, parent_mode } => {
                self.discard(path, *inode, *parent_mode)?
            }
            Step::Aside { path, entry } => self.aside(number, path, *entry)?,
            Step::Install { path, inode, replaced, directory_mode } => {
                self.install(path, *inode, *replaced, *directory_mode)?
            }
            Step::Finish { path, inode, mode, modified, attributes } => {
                let taken = self.change_attributes(path, *inode, attributes.as_deref())?;
                if taken == Taken::Now {
                    self.finish(path, *mode, (*modified).into())?;
                }
                taken
            }
        };
        match taken {
            Taken::Now => self.outcome.taken += 1,
            Taken::Before => {}
            Taken::Not => drop(self.outcome.conflicts.insert(step.path().to_owned())),
        }
        Ok(())
    }

    /// Syncs what the steps changed in the base.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        let touched: Vec<_> = std::mem::take(&mut self.touched).into_iter().collect();
        sync(self.base_root, &touched)
    }

    fn strip(
        &mut self,
        path: &Path,
        inode: u64,
        mode: u32,
        attributes: &[Attribute],
    ) -> Result<Taken, Error> {
        for tree in [&mut self.source, &mut self.base] {
            let Some(directory) = tree.parent(path)? else { continue };
            let Some(found) = metadata(directory, name(path))? else { continue };
            if found.identity.inode != inode {
                continue;
            }
            // Bookkeeping that comes back to a file after a power loss says nothing.
            if !attributes.is_empty() || found.kind == FileKind::Directory {
                self.touched.insert(path.to_owned());
            }
            let names = directory.entry_attribute_names(name(path))?;
            let is_done = attributes.is_empty() && !names.iter().any(|name| is_overlay(name));
            if !is_done {
                replace_attributes(directory, name(path), &found, attributes, is_overlay)?;
            }
            // The mode may have been changed for it, now or before a crash.
            if let Some(now) = metadata(directory, name(path))? {
                restore_mode(directory, name(path), &now, mode)?;
            }
            return Ok(if is_done { Taken::Before } else { Taken::Now });
        }
        Ok(Taken::Not)
    }

    fn discard(&mut self, path: &Path, inode: u64, parent_mode: u32) -> Result<Taken, Error> {
        // After a power loss the directory may have moved with the whiteout.
        for tree in [&mut self.source, &mut self.base] {
            let Some(directory) = tree.parent(path)? else { continue };
            let found = metadata(directory, name(path))?;
            if found.is_some_and(|found| found.identity.inode == inode) {
                directory.grant_owner_access()?;
                directory.remove_file(name(path))?;
                restore_own_mode(tree, parent(path), parent_mode)?;
                return Ok(Taken::Now);
            }
            // Perhaps it was removed before a crash, and the mode not restored.
            restore_own_mode(tree, parent(path), parent_mode)?;
        }
        Ok(Taken::Before)
    }

    fn aside(&mut self, number: usize, path: &Path, entry: Stamp) -> Result<Taken, Error> {
        // It may be the directory that is moved.
        self.base.forget();
        let Some(directory) = self.base.parent(path)? else { return Ok(Taken::Before) };
        match metadata(directory, name(path))? {
            None => return Ok(Taken::Before),
            Some(found) if Stamp::from(&found) == entry => {
                make_movable(directory, name(path), &found)?;
            }
            Some(found) if self.installed.contains(&found.identity.inode) => {
                return Ok(Taken::Before);
            }
            Some(_) => return Ok(Taken::Not),
        }
        let target = PathBuf::from(format!("{}-{number}", self.trash_name));
        let trash = self.trash;
        let directory = self.base_directory(path)?;
        directory.rename_into(name(path), trash, &target, Collision::Refuse)?;
        self.touch_parent(path);
        Ok(Taken::Now)
    }

    fn install(
        &mut self,
        path: &Path,
        inode: u64,
        replaced: Option<Stamp>,
        directory_mode: Option<u32>,
    ) -> Result<Taken, Error> {
        let name = name(path);
        let Some(target) = self.base.parent(path)? else { return Ok(Taken::Not) };
        let present = metadata(target, name)?;
        if let Some(present) = present.filter(|present| present.identity.inode == inode) {
            if let Some(mode) = directory_mode {
                restore_mode(target, name, &present, mode)?;
            }
            self.touch_parent(path);
            return Ok(Taken::Before);
        }
        let is_expected = match (present, directory_mode) {
            (None, _) => true,
            (Some(present), None) => {
                Some(Stamp::from(&present)) == replaced && present.kind != FileKind::Directory
            }
            // What was there was to be moved aside.
            (Some(_), Some(_)) => false,
        };
        let Some(source) = self.source.parent(path)? else { return Ok(Taken::Not) };
        let found = metadata(source, name)?;
        let Some(found) = found.filter(|found| found.identity.inode == inode && is_expected) else {
            return Ok(Taken::Not);
        };
        if !path_is_top_level(path) {
            source.grant_owner_access()?;
        }
        make_movable(source, name, &found)?;
        let collision =
            if directory_mode.is_some() { Collision::Refuse } else { Collision::Replace };
        let source = source.try_clone()?;
        let target = self.base_directory(path)?;
        source.rename_into(name, target, name, collision)?;
        if let Some(mode) = directory_mode {
            let found = Metadata { mode: found.mode | OWNER_ALL, ..found };
            restore_mode(target, name, &found, mode)?;
        }
        self.touch_parent(path);
        Ok(Taken::Now)
    }

    /// Opens the directory of an entry of the base, and makes it writable for its owner.
    fn base_directory(&mut self, path: &Path) -> Result<&Root, Error> {
        let is_top_level = path_is_top_level(path);
        let Some(directory) = self.base.parent(path)? else {
            unreachable!("the directory was opened before");
        };
        if !is_top_level {
            // Its mode is set at the end.
            directory.grant_owner_access()?;
        }
        Ok(directory)
    }

    fn touch_parent(&mut self, path: &Path) {
        self.touched.insert(parent(path).to_owned());
    }

    fn change_attributes(
        &mut self,
        path: &Path,
        inode: u64,
        attributes: Option<&[Attribute]>,
    ) -> Result<Taken, Error> {
        let Some(directory) = self.base.parent(path)? else { return Ok(Taken::Not) };
        match metadata(directory, name(path))? {
            Some(found) if found.identity.inode == inode => {
                if let Some(attributes) = attributes {
                    replace_attributes(directory, name(path), &found, attributes, |name| {
                        !is_hidden(name)
                    })?;
                }
                Ok(Taken::Now)
            }
            Some(_) | None => Ok(Taken::Not),
        }
    }

    fn finish(
        &mut self,
        path: &Path,
        mode: u32,
        modified: std::time::SystemTime,
    ) -> Result<(), Error> {
        let Some(directory) = self.base.parent(path)? else { return Ok(()) };
        directory.set_entry_modified(name(path), modified)?;
        directory.set_entry_mode(name(path), mode)?;
        self.touched.insert(path.to_owned());
        Ok(())
    }
}

/// The top of a tree keeps its mode.
fn path_is_top_level(path: &Path) -> bool {
    parent(path).as_os_str().is_empty()
}

/// Gives the owner of a directory the right to write it, without which it cannot be moved to another one.
fn make_movable(directory: &Root, name: &Path, found: &Metadata) -> Result<(), Error> {
    if found.kind == FileKind::Directory && found.mode & OWNER_ALL != OWNER_ALL {
        directory.set_entry_mode(name, found.mode | OWNER_ALL)?;
    }
    Ok(())
}

/// Takes back the rights that the owner of a directory was given for a moment.
fn restore_own_mode(tree: &mut LastDirectory<'_>, path: &Path, mode: u32) -> Result<(), Error> {
    let Some(directory) = tree.open(path)? else { return Ok(()) };
    let found = directory.own_metadata()?;
    if found.mode == mode || found.mode != mode | OWNER_ALL {
        return Ok(());
    }
    match tree.parent(path)? {
        Some(above) => restore_mode(above, name(path), &found, mode),
        None => Ok(()),
    }
}

fn restore_mode(directory: &Root, name: &Path, found: &Metadata, mode: u32) -> Result<(), Error> {
    if found.mode == mode { Ok(()) } else { directory.set_entry_mode(name, mode) }
}

/// Sets these attributes and removes others to which `is_replaced` applies.
fn replace_attributes(
    directory: &Root,
    name: &Path,
    found: &Metadata,
    attributes: &[Attribute],
    is_replaced: impl Fn(&std::ffi::OsStr) -> bool,
) -> Result<(), Error> {
    let replace = || -> Result<(), Error> {
        for attribute in attributes {
            directory.set_entry_attribute(name, attribute)?;
        }
        for present in directory.entry_attribute_names(name)? {
            let is_kept = attributes.iter().any(|attribute| attribute.name == present);
            if is_replaced(&present) && !is_kept {
                directory.remove_entry_attribute(name, &present)?;
            }
        }
        Ok(())
    };
    match replace() {
        Err(error) if error.problem() == Problem::PermissionDenied => {
            directory.set_entry_mode(name, found.mode | OWNER_WRITE)?;
            replace()
        }
        replaced => replaced,
    }
}
