//! The state of an index: its files with their change keys, the names, and the memory that they take.
//!
//! A file that does not fit is left out, and tried again when there is so much room. Names that no file has any more are
//! dropped now and then, which gives all others new ids.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_fsroot::{Identity, Metadata, Root};
use carrel_search::SourceFile;

use super::file_entry::{Indexed, ParsedFile};
use super::names::Names;
use super::{Definition, FileDefinitions, MAX_INDEX_BYTES, SkipReason};
use crate::language::Language;
use crate::syntax::MAX_SOURCE_BYTES;

/// The memory of removed files from which on their names are dropped. Below it they are not worth a walk over all
/// files.
const WORTH_COMPACTING: usize = 256 << 10;

/// The step of the coarsest clock for file times, with a margin. A file that changed this shortly before it was
/// read may have changed again at the same time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct State {
    pub(super) names: Names,
    pub(super) files: BTreeMap<PathBuf, FileEntry>,
    /// The memory of the entries.
    pub(super) bytes: usize,
    /// The memory of entries that were removed since names without uses were dropped.
    pub(super) removed: usize,
    /// The memory that entries and names may take.
    pub(super) capacity: usize,
    /// Files that were taken in as a caller had read them. They may have changed before that.
    pub(super) unconfirmed: BTreeSet<PathBuf>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            names: Names::default(),
            files: BTreeMap::new(),
            bytes: 0,
            removed: 0,
            capacity: MAX_INDEX_BYTES,
            unconfirmed: BTreeSet::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) language: Language,
    pub(super) key: ChangeKey,
    /// Its content is compared when it is looked at again, although its key is the same.
    pub(super) content: Option<u64>,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Parsed {
        content: Indexed,
        has_error: bool,
    },
    /// The memory is used up. It is tried again when there is so much.
    NoRoom {
        needed: usize,
    },
    Skipped(SkipReason),
}

/// The state of a file on disk, which changes with every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangeKey {
    pub(super) identity: Identity,
    pub(super) size: u64,
    pub(super) modified: SystemTime,
    pub(super) changed: SystemTime,
}

impl ChangeKey {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            identity: metadata.identity,
            size: metadata.size,
            modified: metadata.modified,
            changed: metadata.changed,
        }
    }
}

/// A file that a worker has read.
pub(super) enum ReadFile {
    /// It is as it was.
    Same,
    Parsed {
        key: ChangeKey,
        language: Language,
        hash: u64,
        parsed: Result<ParsedFile, SkipReason>,
    },
}

impl ReadFile {
    pub(super) fn skipped(file: &SourceFile, reason: SkipReason) -> Self {
        let Some(language) = Language::of_path(&file.path) else { return Self::Same };
        let key = ChangeKey::of(&file.metadata);
        Self::Parsed { key, language, hash: 0, parsed: Err(reason) }
    }

    pub(super) fn read(root: &Root, file: &SourceFile, known: Option<u64>) -> Self {
        let Some(language) = Language::of_path(&file.path) else { return Self::Same };
        let failed = |reason| Self::skipped(file, reason);
        if language.grammar().is_err() {
            return failed(SkipReason::NoGrammar);
        }
        if file.metadata.size > MAX_SOURCE_BYTES as u64 {
            return failed(SkipReason::TooLarge);
        }
        let Ok(opened) = root.read_opened(&file.path, MAX_SOURCE_BYTES as u64) else {
            return failed(SkipReason::Unreadable);
        };
        let hash = content_hash(&opened.bytes);
        let key = ChangeKey::of(&opened.metadata);
        if known == Some(hash) && key == ChangeKey::of(&file.metadata) {
            return Self::Same;
        }
        let parsed = match String::from_utf8(opened.bytes) {
            Err(_) => Err(SkipReason::NotUtf8),
            Ok(source) => ParsedFile::of(language, &source).map_err(|error| SkipReason::of(&error)),
        };
        Self::Parsed { key, language, hash, parsed }
    }
}

/// Tells contents apart. It is no defence against a file that was made to have the same hash: its owner could
/// deceive itself alone.
pub(super) fn content_hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl State {
    pub(super) fn insert(&mut self, file: &SourceFile, read: ReadFile, as_of: SystemTime) {
        let ReadFile::Parsed { key, language, hash, parsed } = read else {
            if let Some(entry) = self.files.get_mut(&file.path) {
                entry.content = entry.content.filter(|_| is_racy(&entry.key, as_of));
            }
            return;
        };
        self.remove(&file.path);
        let outcome = match parsed {
            Err(SkipReason::NoRoom) => Outcome::NoRoom { needed: 0 },
            Err(reason) => Outcome::Skipped(reason),
            Ok(parsed) => self.take_in(parsed),
        };
        // A file that is left out is read anew when it is tried again.
        let is_left_out = matches!(outcome, Outcome::NoRoom { .. });
        let content = (is_racy(&key, as_of) && !is_left_out).then_some(hash);
        let entry = FileEntry { language, key, content, outcome };
        self.bytes += entry.bytes(&file.path);
        self.files.insert(file.path.clone(), entry);
    }

    /// Gives the names of a file ids, unless the memory does not suffice for it.
    pub(super) fn take_in(&mut self, parsed: ParsedFile) -> Outcome {
        let (count, before) = (self.names.len(), self.names.bytes());
        let has_error = parsed.has_error;
        let content = parsed.indexed(&mut self.names);
        if self.has_room_for(content.bytes()) {
            return Outcome::Parsed { content, has_error };
        }
        let needed = content.bytes() + self.names.bytes() - before;
        self.names.truncate(count);
        Outcome::NoRoom { needed }
    }

    pub(super) fn remove(&mut self, path: &Path) {
        if let Some(entry) = self.files.remove(path) {
            let bytes = entry.bytes(path);
            self.bytes -= bytes;
            self.removed += bytes;
            if self.removed > self.bytes.max(WORTH_COMPACTING.min(self.capacity / 8)) {
                self.drop_unused_names();
            }
        }
    }

    /// Drops the names that no file has any more. As many bytes as there are have been removed since the last
    /// time, so that the walk over all files costs each of them no more than its parsing did.
    pub(super) fn drop_unused_names(&mut self) {
        let mut is_used = vec![false; self.names.len()];
        for entry in self.files.values() {
            if let Outcome::Parsed { content, .. } = &entry.outcome {
                content.each_name(|name| {
                    if let Some(used) = is_used.get_mut(name as usize) {
                        *used = true;
                    }
                });
            }
        }
        let new_ids = self.names.retain(&is_used);
        for entry in self.files.values_mut() {
            if let Outcome::Parsed { content, .. } = &mut entry.outcome {
                content.renumber(&new_ids);
            }
        }
        self.removed = 0;
    }

    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.memory() + bytes < self.capacity
    }

    /// Tells whether files are left out because the memory is used up.
    pub(super) fn is_full(&self) -> bool {
        self.files.values().any(|entry| matches!(entry.outcome, Outcome::NoRoom { .. }))
    }

    /// Returns the file at a place, or the files below it.
    pub(super) fn below(&self, place: &Path) -> impl Iterator<Item = &Path> {
        let from = (Bound::Included(place), Bound::Unbounded);
        let files = self.files.range::<Path, _>(from).map(|(path, _)| path.as_path());
        files.take_while(move |path| path.starts_with(place))
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes + self.names.bytes()
    }

    pub(super) fn definitions_in(&self, path: &Path) -> Option<FileDefinitions> {
        let entry = self.files.get(path)?;
        let Outcome::Parsed { content, has_error } = &entry.outcome else { return None };
        let file = (path, entry.language, content);
        let definitions = (0..content.symbols.len()).map(|index| self.definition(file, index));
        Some(FileDefinitions { definitions: definitions.collect(), has_error: *has_error })
    }

    /// Returns the names of the innermost symbol around a line of a file; none at its top level.
    pub(super) fn innermost_in(&self, path: &Path, line: usize) -> Option<Vec<String>> {
        let entry = self.files.get(path)?;
        let Outcome::Parsed { content, .. } = &entry.outcome else { return None };
        let contains = |index: &usize| {
            let symbol = &content.symbols[*index];
            (symbol.first as usize..=symbol.last as usize).contains(&line)
        };
        let innermost = (0..content.symbols.len()).rev().find(contains);
        let names = innermost.map_or_else(Vec::new, |index| content.path(index, &self.names));
        Some(names.into_iter().map(str::to_owned).collect())
    }

    /// Tells whether a file is in the index with this content.
    pub(super) fn knows(&self, file: &SourceFile, hash: impl FnOnce() -> u64) -> bool {
        self.files.get(&file.path).is_some_and(|entry| {
            entry.key == ChangeKey::of(&file.metadata)
                && entry.content.is_none_or(|known| known == hash())
                && matches!(entry.outcome, Outcome::Parsed { .. })
        })
    }

    /// Returns the parsed files in path order.
    pub(super) fn parsed(&self) -> impl Iterator<Item = (&Path, Language, &Indexed)> {
        self.files.iter().filter_map(|(path, entry)| match &entry.outcome {
            Outcome::Parsed { content, .. } => Some((path.as_path(), entry.language, content)),
            Outcome::NoRoom { .. } | Outcome::Skipped(_) => None,
        })
    }

    pub(super) fn definition(
        &self,
        (path, language, content): (&Path, Language, &Indexed),
        index: usize,
    ) -> Definition {
        let symbol = &content.symbols[index];
        let names = content.path(index, &self.names);
        Definition {
            file: path.to_owned(),
            language,
            path: names.into_iter().map(str::to_owned).collect(),
            kind: symbol.kind,
            line: symbol.line as usize,
            lines: (symbol.first as usize, symbol.last as usize),
            bytes: (symbol.start as usize, symbol.head as usize, symbol.signature_end as usize),
            has_body: symbol.has_body,
            depth: content.depth(index),
        }
    }
}

/// Tells whether a file changed so shortly before it was read that it may change again at the same time.
fn is_racy(key: &ChangeKey, as_of: SystemTime) -> bool {
    key.changed.checked_add(CLOCK_STEP).is_none_or(|settled| settled >= as_of)
}

impl FileEntry {
    pub(super) fn bytes(&self, path: &Path) -> usize {
        let content = match &self.outcome {
            Outcome::Parsed { content, .. } => content.bytes(),
            Outcome::NoRoom { .. } | Outcome::Skipped(_) => 0,
        };
        size_of::<Self>() + 2 * size_of::<PathBuf>() + path.as_os_str().len() + content
    }
}
