//! The making of a plan from entries that were compared.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use carrel_fsroot::{FileKind, Metadata};

use crate::change::{Change, ChangeKind};
use crate::difference::{COPIED_MODE, Form};
use crate::overlay::{Attributes, Values};
use crate::plan::{Plan, Stamp, Step};
use crate::tree;

/// An entry of the fork, compared.
pub(crate) struct Compared {
    pub(crate) path: PathBuf,
    pub(crate) found: Metadata,
    pub(crate) old: Option<Metadata>,
    pub(crate) attributes: Attributes,
    pub(crate) kind: Option<ChangeKind>,
}

impl Compared {
    pub(crate) fn is_directory(&self) -> bool {
        self.found.kind == FileKind::Directory
    }

    pub(crate) fn was_directory(&self) -> bool {
        self.old.as_ref().is_some_and(|old| old.kind == FileKind::Directory)
    }

    /// Returns the step that strips the entry of what the overlay wrote on it.
    fn strip(&self) -> Option<Step> {
        self.attributes.has_own.then(|| Step::Strip {
            path: self.path.clone(),
            inode: self.found.identity.inode,
            mode: self.found.mode,
            attributes: self.attributes.unescaped.clone(),
        })
    }
}

/// A file of the fork that is as in the base, and has several names.
struct Linked {
    path: PathBuf,
    inode: u64,
    base: Stamp,
    strip: Option<Step>,
}

/// A step at the end, for a directory that both have.
struct Finish {
    step: Step,
    /// The directory itself differs.
    differs: bool,
}

/// A plan that is being made.
pub(crate) struct Planner {
    form: Form,
    plan: Plan,
    finishes: Vec<Finish>,
    linked: Vec<Linked>,
    /// Steps at the end, for files of which only the time differs.
    times: Vec<Step>,
    /// The inodes with several names that are moved.
    moved_links: HashSet<u64>,
}

impl Planner {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            plan: Plan::default(),
            finishes: Vec::new(),
            linked: Vec::new(),
            times: Vec::new(),
            moved_links: HashSet::new(),
        }
    }

    pub(crate) fn change(&mut self, change: Change) {
        self.plan.changes.push(change);
    }

    /// Removes a whiteout from a directory that moves as a whole.
    pub(crate) fn discard(&mut self, path: PathBuf, inode: u64, parent_mode: u32) {
        self.plan.steps.push(Step::Discard { path, inode, parent_mode });
    }

    /// Removes an entry of the base.
    pub(crate) fn aside(&mut self, path: PathBuf, entry: &Metadata) {
        self.plan.steps.push(Step::Aside { path, entry: entry.into() });
    }

    /// Plans for an entry that moves with a directory above it.
    pub(crate) fn below_moved(&mut self, entry: &Compared) {
        self.plan.steps.extend(entry.strip());
        self.note_moved(&entry.path, &entry.found);
    }

    /// Plans for an entry of a directory that both have.
    pub(crate) fn entry(&mut self, entry: &Compared) {
        let (is_directory, was_directory) = (entry.is_directory(), entry.was_directory());
        if is_directory && was_directory && !entry.attributes.is_opaque {
            return self.common_directory(entry);
        }
        let inode = entry.found.identity.inode;
        if entry.kind.is_none() && !is_directory {
            return self.unchanged(entry);
        }
        self.below_moved(entry);
        if let (Some(old), true) = (&entry.old, was_directory || is_directory) {
            self.aside(entry.path.clone(), old);
        }
        self.plan.steps.push(Step::Install {
            path: entry.path.clone(),
            inode,
            replaced: entry.old.as_ref().map(Stamp::from),
            directory_mode: is_directory.then_some(entry.found.mode),
        });
    }

    fn unchanged(&mut self, entry: &Compared) {
        let Some(old) = &entry.old else { return };
        if entry.found.links > 1 {
            self.linked.push(Linked {
                path: entry.path.clone(),
                inode: entry.found.identity.inode,
                base: old.into(),
                strip: entry.strip(),
            });
        } else if entry.found.kind == FileKind::File
            && entry.found.modified != old.modified
            // The time of another user's file cannot be set.
            && entry.found.uid == old.uid
        {
            // Build tools compare times: what was built in the fork is newer than the file there.
            self.times.push(Step::Finish {
                path: entry.path.clone(),
                inode: old.identity.inode,
                mode: old.mode,
                modified: entry.found.modified.into(),
                attributes: None,
            });
        }
    }

    fn note_moved(&mut self, path: &Path, found: &Metadata) {
        if found.links > 1 && found.kind != FileKind::Directory {
            self.moved_links.insert(found.identity.inode);
        }
        if matches!(found.kind, FileKind::File | FileKind::Directory) {
            self.plan.moved.push(path.to_owned());
        }
    }

    fn common_directory(&mut self, entry: &Compared) {
        let Some(old) = &entry.old else { return };
        let mode = match self.form {
            Form::Upper => entry.found.mode,
            Form::Copy => (entry.found.mode & COPIED_MODE) | (old.mode & !COPIED_MODE),
        };
        let Attributes { plain, unescaped, values, .. } = &entry.attributes;
        let may_differ = matches!(entry.kind, Some(ChangeKind::Mode | ChangeKind::Attributes));
        let attributes = (may_differ && *values == Values::Read)
            .then(|| plain.iter().chain(unescaped).cloned().collect());
        let step = Step::Finish {
            path: entry.path.clone(),
            inode: old.identity.inode,
            mode,
            modified: entry.found.modified.into(),
            attributes,
        };
        let differs = entry.kind.is_some() || old.modified != entry.found.modified;
        self.finishes.push(Finish { step, differs });
    }

    /// Moves files that are as in the base, too, where that is needed for files to have the same names in common.
    fn links(&mut self) {
        let mut groups: HashMap<u64, Vec<Linked>> = HashMap::new();
        for linked in std::mem::take(&mut self.linked) {
            groups.entry(linked.inode).or_default().push(linked);
        }
        let mut installs = Vec::new();
        for (inode, group) in groups {
            let is_apart = group.iter().any(|linked| linked.base != group[0].base);
            if !is_apart && !self.moved_links.contains(&inode) {
                continue;
            }
            self.plan.moved.push(group[0].path.clone());
            self.plan.steps.extend(group[0].strip.clone());
            installs.extend(group.into_iter().map(|linked| Step::Install {
                path: linked.path,
                inode,
                replaced: Some(linked.base),
                directory_mode: None,
            }));
        }
        installs.sort_unstable_by(|one, other| one.path().cmp(other.path()));
        self.plan.steps.extend(installs);
    }

    /// Brings the steps into order.
    pub(crate) fn finish(mut self) -> Plan {
        self.links();
        let mut plan = self.plan;
        // What is stripped and discarded goes before what moves, also if it lies below.
        plan.steps.sort_by_key(|step| match step {
            Step::Strip { .. } | Step::Discard { .. } => 0,
            Step::Aside { .. } | Step::Install { .. } | Step::Finish { .. } => 1,
        });
        let moves = plan
            .steps
            .iter()
            .filter(|step| matches!(step, Step::Aside { .. } | Step::Install { .. }));
        let touched: HashSet<PathBuf> =
            moves.map(|step| tree::parent(step.path()).to_owned()).collect();
        let needed = |finish: &Finish| finish.differs || touched.contains(finish.step.path());
        let finishes = self.finishes.into_iter().filter(needed).map(|finish| finish.step);
        let mut finishes: Vec<_> = finishes.chain(self.times).collect();
        // The deepest first: a directory without rights for its owner hides those below.
        finishes.sort_unstable_by(|one, other| other.path().cmp(one.path()));
        plan.steps.extend(finishes);
        plan.changes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        plan
    }
}
