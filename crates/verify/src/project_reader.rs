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

/// A probe: a path, and the suffixes of the names that were looked for in it. Without suffixes the
/// entry itself was looked at.
type Probe = (String, &'static [&'static str]);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// `None` if there is no entry or it cannot be read.
    Entry(Option<Stamp>),
    Names(Vec<String>),
}

fn observe(root: &Root, (path, suffixes): &Probe) -> Observation {
    if suffixes.is_empty() {
        let stamp = |Metadata { identity, size, modified, changed, .. }| Stamp {
            identity,
            size,
            modified,
            changed,
        };
        return Observation::Entry(root.link_metadata(Path::new(path)).ok().map(stamp));
    }
    let files = list(root, path).into_iter().filter(|(_, kind)| *kind == FileKind::File);
    let ends = |name: &String| suffixes.iter().any(|suffix| name.ends_with(suffix));
    Observation::Names(files.map(|(name, _)| name).filter(ends).collect())
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
pub(crate) struct FileStamps(BTreeMap<Probe, Observation>);

impl FileStamps {
    /// Returns the path of the first probe whose value has changed.
    pub(crate) fn changed(&self, root: &Root) -> Option<String> {
        self.0.iter().find_map(|(probe, before)| {
            let (path, _) = probe;
            let now = observe(root, probe);
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
        self.kind(path) == Some(FileKind::File)
    }

    /// Returns true if a path is a file or a link. Virtual environments link to interpreters
    /// outside of the workspace.
    pub(crate) fn has_program(&self, path: &str) -> bool {
        self.stamp(path);
        let metadata = self.root.link_metadata(Path::new(path));
        metadata.is_ok_and(|metadata| matches!(metadata.kind, FileKind::File | FileKind::Link))
    }

    pub(crate) fn has_directory(&self, path: &str) -> bool {
        self.kind(path) == Some(FileKind::Directory)
    }

    fn kind(&self, path: &str) -> Option<FileKind> {
        self.stamp(path);
        self.root.metadata(Path::new(path)).ok().map(|metadata| metadata.kind)
    }

    /// Returns the path of the first name, of a list separated by spaces, that is a file in a
    /// directory.
    pub(crate) fn first(&self, directory: &str, names: &'static str) -> Option<String> {
        names
            .split_whitespace()
            .map(|name| paths::join(directory, name))
            .find(|path| self.has(path))
    }

    /// Returns the nearest file with one of these names, from a directory upwards.
    pub(crate) fn nearest(&self, directory: &str, names: &'static str) -> Option<String> {
        paths::upwards(directory).find_map(|directory| self.first(directory, names))
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

    /// Reads and parses a file, which is empty text if there is none.
    pub(crate) fn document<T>(
        &self,
        path: &str,
        parse: fn(&str, &str) -> Result<T, ProfileProblem>,
    ) -> Result<T, ProfileProblem> {
        parse(path, &self.read(path)?.unwrap_or_default())
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
        match self.observe(directory, suffixes) {
            Observation::Names(names) => names,
            Observation::Entry(_) => Vec::new(),
        }
    }

    /// Records the stamp of a path, before the path is used, so that a later change is noticed.
    fn stamp(&self, path: &str) {
        self.observe(path, &[]);
    }

    fn observe(&self, path: &str, suffixes: &'static [&'static str]) -> Observation {
        let probe = (path.to_owned(), suffixes);
        let mut seen = self.seen.borrow_mut();
        seen.0.entry(probe.clone()).or_insert_with(|| observe(self.root, &probe)).clone()
    }
}
