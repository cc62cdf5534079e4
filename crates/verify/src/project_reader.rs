//! Reads of project files that record what a detection depends on.
//!
//! Every path that is probed gets a stamp before it is used: device, inode, size and both times of
//! the entry itself, or its absence. Directory probes record the names with certain suffixes, so
//! that a new `.csproj` invalidates a profile but a new source file does not. The record is
//! compared with the file system by the profile cache.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use carrel_fsroot::{Entry, FileKind, Identity, Metadata, Root};

use crate::paths;
use crate::profile::ProfileProblem;

/// Bounds the size of a project file; real ones have a few kilobytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Bounds the entries of a listed directory.
pub(crate) const MAX_ENTRIES: usize = 5_000;

/// The identity and times of a file, which change when it is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: Identity,
    size: u64,
    modified: SystemTime,
    /// The inode change time. Programs cannot set it, so a restored modification time is noticed.
    changed: SystemTime,
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        let Metadata { identity, size, modified, changed, .. } = *metadata;
        Self { identity, size, modified, changed }
    }
}

/// A property of a path that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Probe {
    Entry,
    /// The names in a directory with one of these suffixes.
    Names(&'static [&'static str]),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// `None` if there is no entry or it cannot be read.
    Entry(Option<Stamp>),
    Names(Vec<String>),
}

fn probe(root: &Root, path: &str, probed: Probe) -> Observation {
    match probed {
        Probe::Entry => {
            Observation::Entry(root.link_metadata(Path::new(path)).ok().as_ref().map(Stamp::from))
        }
        Probe::Names(suffixes) => {
            let names = list(root, path).into_iter().filter(|(_, kind)| *kind == FileKind::File);
            let ends = |name: &String| suffixes.iter().any(|suffix| name.ends_with(suffix));
            Observation::Names(names.map(|(name, _)| name).filter(ends).collect())
        }
    }
}

/// Lists a directory with the kinds of its entries; empty if there are more than [`MAX_ENTRIES`].
fn list(root: &Root, directory: &str) -> Vec<(String, FileKind)> {
    let entries = root.list_at_most(Path::new(directory), MAX_ENTRIES);
    let entries = entries.ok().flatten().unwrap_or_default();
    let named = |entry: Entry| Some((entry.name.into_string().ok()?, entry.kind));
    entries.into_iter().filter_map(named).collect()
}

/// All probes of a detection with their values.
#[derive(Debug, Default)]
pub(crate) struct FileStamps(BTreeMap<(String, Probe), Observation>);

impl FileStamps {
    /// Returns the path of the first probe whose value has changed.
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

/// A read-only view of a workspace that records its probes.
#[derive(Debug)]
pub(crate) struct ProjectReader<'a> {
    root: &'a Root,
    seen: RefCell<FileStamps>,
}

impl<'a> ProjectReader<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        Self { root, seen: RefCell::default() }
    }

    pub(crate) fn into_stamps(self) -> FileStamps {
        self.seen.into_inner()
    }

    /// Returns true if a path is a regular file, following links inside of the workspace.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.stamp(path);
        let metadata = self.root.metadata(Path::new(path));
        metadata.is_ok_and(|metadata| metadata.kind == FileKind::File)
    }

    /// Returns true if a path is a file or a link. Virtual environments link to interpreters
    /// outside of the workspace.
    pub(crate) fn has_program(&self, path: &str) -> bool {
        self.stamp(path);
        let metadata = self.root.link_metadata(Path::new(path));
        metadata.is_ok_and(|metadata| matches!(metadata.kind, FileKind::File | FileKind::Link))
    }

    pub(crate) fn has_directory(&self, path: &str) -> bool {
        self.stamp(path);
        let metadata = self.root.metadata(Path::new(path));
        metadata.is_ok_and(|metadata| metadata.kind == FileKind::Directory)
    }

    /// Returns the path of the first name that is a file in a directory.
    pub(crate) fn first(&self, directory: &str, names: &[&str]) -> Option<String> {
        names.iter().map(|name| paths::join(directory, name)).find(|path| self.has(path))
    }

    /// Returns the nearest file with one of these names, from a directory upwards.
    pub(crate) fn nearest(&self, directory: &str, names: &[&str]) -> Option<String> {
        paths::upwards(directory).find_map(|directory| self.first(directory, names))
    }

    /// Returns the nearest program in a subdirectory of each parent, such as `node_modules/.bin`.
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

    /// Reads a text file; `Ok(None)` if there is none.
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
        // Parsers do not expect a byte order mark.
        Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }

    /// Reads a text file and treats a problem as absence.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.read(path).ok().flatten()
    }

    /// Lists a directory with the kinds of its entries; empty if there are more than
    /// [`MAX_ENTRIES`].
    pub(crate) fn list(&self, directory: &str) -> Vec<(String, FileKind)> {
        self.stamp(directory);
        list(self.root, directory)
    }

    /// Lists the names of files with one of these suffixes.
    pub(crate) fn files(&self, directory: &str, suffixes: &'static [&'static str]) -> Vec<String> {
        match self.observe(directory, Probe::Names(suffixes)) {
            Observation::Names(names) => names,
            Observation::Entry(_) => Vec::new(),
        }
    }

    /// Records the stamp of a path, before the path is used, so that a later change is noticed.
    fn stamp(&self, path: &str) {
        self.observe(path, Probe::Entry);
    }

    fn observe(&self, path: &str, probed: Probe) -> Observation {
        let mut seen = self.seen.borrow_mut();
        let entry = seen.0.entry((path.to_owned(), probed));
        entry.or_insert_with(|| probe(self.root, path, probed)).clone()
    }
}
