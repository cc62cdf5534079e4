//! Reading project files, and remembering which were looked at.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use carrel_fsroot::{Entry, FileKind, Identity, Metadata, Root};

use crate::paths;
use crate::profile::ProfileProblem;

/// Bounds what one project file may cost; real ones have a few kilobytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Bounds what one directory may cost.
pub(crate) const MAX_ENTRIES: usize = 5_000;

/// What tells whether a file is still the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: Identity,
    size: u64,
    modified: SystemTime,
    /// Only the kernel sets this one, so a file that was put back in time is noticed.
    changed: SystemTime,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        let Metadata { identity, size, modified, changed, .. } = *metadata;
        Self { identity, size, modified, changed }
    }
}

/// What was asked about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Probe {
    /// What is there.
    Entry,
    /// Which names in a directory have one of these endings. Other names may come and go.
    Names(&'static [&'static str]),
}

/// What the answer was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// The stamp of what is there; `None` when nothing usable is.
    Entry(Option<Stamp>),
    /// The names, sorted.
    Names(Vec<String>),
}

/// Asks again about a path.
fn probe(root: &Root, path: &str, probed: Probe) -> Observation {
    match probed {
        Probe::Entry => {
            Observation::Entry(root.link_metadata(Path::new(path)).ok().as_ref().map(Stamp::from))
        }
        Probe::Names(endings) => {
            let names = list(root, path).into_iter().filter(|(_, kind)| *kind == FileKind::File);
            let ends = |name: &String| endings.iter().any(|ending| name.ends_with(ending));
            Observation::Names(names.map(|(name, _)| name).filter(ends).collect())
        }
    }
}

/// Lists the names in a directory with their kinds; nothing when there are too many.
fn list(root: &Root, directory: &str) -> Vec<(String, FileKind)> {
    let entries = root.list_at_most(Path::new(directory), MAX_ENTRIES);
    let entries = entries.ok().flatten().unwrap_or_default();
    let named = |entry: Entry| Some((entry.name.into_string().ok()?, entry.kind));
    entries.into_iter().filter_map(named).collect()
}

/// Everything that was asked, with the answers.
#[derive(Debug, Default)]
pub(crate) struct FileStamps(BTreeMap<(String, Probe), Observation>);

impl FileStamps {
    /// Returns the first file about which the answer is another one by now.
    pub(crate) fn changed(&self, root: &Root) -> Option<String> {
        self.0.iter().find_map(|((path, probed), before)| {
            let now = probe(root, path, *probed);
            (now != *before).then(|| match (before, now) {
                (Observation::Names(before), Observation::Names(now)) => {
                    let differs = |name: &&String| !(before.contains(name) && now.contains(name));
                    let name = before.iter().chain(&now).find(differs);
                    name.map_or_else(|| path.clone(), |name| paths::join(path, name))
                }
                _ => path.clone(),
            })
        })
    }
}

/// A view of the workspace that keeps a list of what it was asked for.
#[derive(Debug)]
pub(crate) struct ProjectReader<'a> {
    root: &'a Root,
    seen: RefCell<FileStamps>,
}

impl<'a> ProjectReader<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root, seen: RefCell::default() }
    }

    /// Ends the looking and returns the list.
    pub(crate) fn into_stamps(self) -> FileStamps {
        self.seen.into_inner()
    }

    /// Tells whether a regular file is there, following links that stay in the workspace.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.stamp(path);
        let metadata = self.root.metadata(Path::new(path));
        metadata.is_ok_and(|metadata| metadata.kind == FileKind::File)
    }

    /// Tells whether a program is there. It may be a link to anywhere, as in virtual environments.
    pub(crate) fn has_program(&self, path: &str) -> bool {
        self.stamp(path);
        let metadata = self.root.link_metadata(Path::new(path));
        metadata.is_ok_and(|metadata| matches!(metadata.kind, FileKind::File | FileKind::Link))
    }

    /// Tells whether a directory is there.
    pub(crate) fn has_directory(&self, path: &str) -> bool {
        self.stamp(path);
        let metadata = self.root.metadata(Path::new(path));
        metadata.is_ok_and(|metadata| metadata.kind == FileKind::Directory)
    }

    /// Returns the first of some names that is a file of a directory.
    pub(crate) fn first(&self, directory: &str, names: &[&str]) -> Option<String> {
        names.iter().map(|name| paths::join(directory, name)).find(|path| self.has(path))
    }

    /// Returns the nearest of some names, from a directory upwards.
    pub(crate) fn nearest(&self, directory: &str, names: &[&str]) -> Option<String> {
        paths::upwards(directory).find_map(|directory| self.first(directory, names))
    }

    /// Returns the nearest program below a directory of each parent, such as `node_modules/.bin`.
    pub(crate) fn nearest_program(
        &self,
        directory: &str,
        below: &str,
        name: &str,
    ) -> Option<String> {
        paths::upwards(directory)
            .map(|directory| paths::join(directory, &format!("{below}/{name}")))
            .find(|path| self.has_program(path))
    }

    /// Reads a text file; `Ok(None)` when there is none.
    pub(crate) fn read(&self, path: &str) -> Result<Option<String>, ProfileProblem> {
        if !self.has(path) {
            return Ok(None);
        }
        let problem = |message| ProfileProblem { file: path.to_owned(), line: None, message };
        let bytes = self
            .root
            .read(Path::new(path), MAX_FILE_BYTES)
            .map_err(|error| problem(format!("could not be read: {}", error.problem())))?;
        let text = String::from_utf8(bytes).map_err(|_| problem("is not UTF-8 text".to_owned()))?;
        // Editors of other systems put a mark in front, which no parser expects.
        Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }

    /// Reads a text file whose problems do not matter here.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.read(path).ok().flatten()
    }

    /// Lists the names in a directory with their kinds; nothing when there are too many.
    pub(crate) fn list(&self, directory: &str) -> Vec<(String, FileKind)> {
        self.stamp(directory);
        list(self.root, directory)
    }

    /// Lists the files of a directory whose names end in one of some ways.
    pub(crate) fn files(&self, directory: &str, endings: &'static [&'static str]) -> Vec<String> {
        match self.observe(directory, Probe::Names(endings)) {
            Observation::Names(names) => names,
            Observation::Entry(_) => Vec::new(),
        }
    }

    /// Takes the stamp before the file is used, so that a later change is never missed.
    fn stamp(&self, path: &str) {
        self.observe(path, Probe::Entry);
    }

    fn observe(&self, path: &str, probed: Probe) -> Observation {
        let mut seen = self.seen.borrow_mut();
        let entry = seen.0.entry((path.to_owned(), probed));
        entry.or_insert_with(|| probe(self.root, path, probed)).clone()
    }
}
