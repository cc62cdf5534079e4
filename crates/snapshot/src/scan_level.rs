//! A directory on the path of a scan down: what is known of it, its names, and its ignore rules.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_fsroot::{Directory, Entry, Error, FileKind, Metadata, unfinished_write_pid};
use carrel_search::{ALWAYS_IGNORED, IgnoreRules, PresentRuleFiles, ReadFailures, is_rule_file};

use crate::change_key::ChangeKey;
use crate::scan_cache::{Known, KnownDirectory, State};
use crate::scan_options::ScanError;

/// Bounds the entries of one directory, which are sorted in memory.
const MAX_DIRECTORY_ENTRIES: usize = if cfg!(test) { 1000 } else { 1 << 20 };

/// A directory that is about to be scanned.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) key: ChangeKey,
    /// Ignore rules exclude it. It is scanned for what is held in it.
    pub(crate) is_ignored: bool,
    /// It was just looked at, and is as the last scan found it.
    pub(crate) is_unchanged: bool,
}

/// A directory on the path down.
pub(crate) struct Level<'a> {
    /// An unchanged one is opened when something below it is not.
    pub(crate) opened: OnceCell<Directory>,
    pub(crate) path: PathBuf,
    pub(crate) is_ignored: bool,
    pub(crate) is_unchanged: bool,
    pub(crate) depth: usize,
    pub(crate) above: Option<&'a Level<'a>>,
    pub(crate) present: PresentRuleFiles,
    pub(crate) rules: OnceCell<Option<Arc<IgnoreRules>>>,
}

impl Level<'_> {
    pub(crate) fn directory(&self) -> Result<&Directory, Error> {
        if let (None, Some(above)) = (self.opened.get(), self.above) {
            let name = Path::new(self.path.file_name().unwrap_or_default());
            let opened = above.directory()?.look_up(name)?;
            return Ok(self.opened.get_or_init(|| opened));
        }
        Ok(self.opened.get().expect("the top is open from the start"))
    }

    /// Returns the rules of this directory, which are read when they are first asked.
    fn rules(&self) -> Option<&Arc<IgnoreRules>> {
        let rules = self.rules.get_or_init(|| {
            let above = self.above.and_then(Level::rules);
            // A file of rules that cannot be read excludes nothing, as in searches.
            let Ok(directory) = self.directory() else { return above.cloned() };
            let mut unreadable = ReadFailures::default();
            IgnoreRules::read(above, directory, &self.path, self.present, &mut unreadable)
        });
        rules.as_ref()
    }

    pub(crate) fn ignores(&self, known: &Known) -> bool {
        self.is_ignored
            || known.name == ALWAYS_IGNORED
            || self.rules().is_some_and(|rules| {
                rules.excludes(&self.path.join(&known.name), known.is_directory)
            })
    }
}

pub(crate) fn name_of(child: &Known) -> &Path {
    Path::new(&child.name)
}

/// Looks at an entry itself.
pub(crate) fn look(level: &Level<'_>, child: &Known) -> Result<Metadata, Error> {
    level.directory()?.link_metadata(name_of(child))
}

/// Lists a directory, and keeps what is known of the names that it still has.
pub(crate) fn list(directory: &Directory, known: &mut KnownDirectory) -> Result<(), ScanError> {
    let (mut entries, all) = directory.entries(MAX_DIRECTORY_ENTRIES)?;
    if !all {
        return Err(ScanError::TooManyEntries);
    }
    entries.retain(|entry| unfinished_write_pid(&entry.name).is_none());
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    // A listing may have a name twice while entries are renamed.
    entries.dedup_by(|one, other| one.name == other.name);
    let before = std::mem::take(&mut known.children);
    let names_before = before.len();
    let mut before = before.into_iter().peekable();
    let mut kept = 0;
    known.children.reserve(entries.len());
    for Entry { name, kind } in entries {
        while before.next_if(|known| known.name.cmp(&name) == Ordering::Less).is_some() {}
        let is_directory = kind == FileKind::Directory;
        match before.next_if(|known| known.name == name && known.is_directory == is_directory) {
            Some(child) => {
                kept += 1;
                known.children.push(child);
            }
            None => known.children.push(Known::new(name, kind)),
        }
    }
    if kept != names_before || kept != known.children.len() {
        known.list = None;
    }
    Ok(())
}

/// Returns the keys of the files with ignore rules in a directory.
pub(crate) fn rule_keys(directory: &Directory, children: &[Known]) -> Vec<ChangeKey> {
    let of_child = |child: &Known| {
        let name = Path::new(&child.name);
        if matches!(child.state, State::Repository) {
            let exclude = directory.open_file(&name.join("info/exclude"));
            // Its presence counts, even without rules of its own.
            return Some(exclude.map_or(ChangeKey::default(), |(_, found)| ChangeKey::of(&found)));
        }
        let metadata = is_rule_file(&child.name).then(|| directory.link_metadata(name).ok());
        metadata.flatten().map(|metadata| ChangeKey::of(&metadata))
    };
    children.iter().filter_map(of_child).collect()
}
