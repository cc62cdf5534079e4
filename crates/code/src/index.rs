//! The symbol index of a workspace: definitions, uses of names and words of comments of all its files.
//!
//! An answer is never older than the last write. Before each one the tree is walked, and a file whose change key
//! differs is parsed again; a walk of 6,500 files takes some milliseconds. The change key is inode, size and
//! the times of the last change, which only the kernel sets. A file that changed in the moment of its reading could
//! change again without a new time on kernels with coarse clocks, so its content is compared the next time.
//!
//! Parsing is divided among the cores and stops at a deadline. What is pending then is known, so that an answer
//! can say that it is incomplete, and the next call goes on from there.
//!
//! ```text
//! walk ──► changed files ──► parse (threads) ──► names get ids ──► entries
//!                                                                     │
//!                                   definitions · uses · search · map ┘
//! ```
//!
//! Names are stored once. A file has its symbols in 48 bytes each, and the lines of each name in one to two bytes
//! for each use. Texts, such as signatures, are read from the files when they are shown.

mod file_entry;
mod map;
mod missing;
mod names;
mod search;
mod stored;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock, RwLockReadGuard, mpsc};
use std::time::{Duration, Instant, SystemTime};

use carrel_domain::sync;
use carrel_fsroot::{Identity, Metadata, Root};
use carrel_search::{Cancel, FileList, Scope, SourceFile, source_files};

pub use map::{MapEntry, MapRequest};
pub use search::{MAX_HITS, SearchHit, SearchRequest};
pub use stored::StoredIndexError;

use file_entry::{Indexed, ParsedFile};
use names::Names;

use crate::language::Language;
use crate::symbol::{NamePath, SymbolKind};
use crate::syntax::{MAX_SOURCE_BYTES, SyntaxError};

/// The memory of one index. Beyond it files are left out, and answers say so.
pub const MAX_INDEX_BYTES: usize = 512 << 20;

/// The memory of removed files from which on their names are dropped. Below it they are not worth a walk over all
/// files.
const WORTH_COMPACTING: usize = 256 << 10;

/// The step of the coarsest clock for file times, with a margin. A file that changed this shortly before it was
/// read may have changed again at the same time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The threads that parse.
const MAX_WORKERS: usize = 8;

/// Why an index could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The tree could not be walked.
    #[error(transparent)]
    Walk(#[from] carrel_search::Error),
}

/// The symbol index of a workspace.
#[derive(Debug, Default)]
pub struct SymbolIndex {
    state: RwLock<State>,
    /// Held while the index is brought up to date, so that files are parsed once.
    refreshing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    names: Names,
    files: BTreeMap<PathBuf, FileEntry>,
    /// The memory of the entries.
    bytes: usize,
    /// The memory of entries that were removed since names without uses were dropped.
    removed: usize,
    /// The memory that entries and names may take.
    capacity: usize,
}

impl Default for State {
    fn default() -> Self {
        Self {
            names: Names::default(),
            files: BTreeMap::new(),
            bytes: 0,
            removed: 0,
            capacity: MAX_INDEX_BYTES,
        }
    }
}

#[derive(Debug)]
struct FileEntry {
    language: Language,
    key: ChangeKey,
    /// Its content is compared when it is looked at again, although its key is the same.
    content: Option<u64>,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
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

/// Why a file is not in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// It is not UTF-8.
    NotUtf8,
    /// It is larger than [`MAX_SOURCE_BYTES`].
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// The parser gave up.
    TimedOut,
    /// It is nested too deeply.
    TooDeep,
    /// The build lacks the grammar.
    NoGrammar,
    /// The index has used up its memory.
    NoRoom,
}

impl SkipReason {
    fn of(error: &SyntaxError) -> Self {
        match error {
            SyntaxError::Grammar(_) => Self::NoGrammar,
            SyntaxError::TooLarge { .. } => Self::TooLarge,
            SyntaxError::TimedOut => Self::TimedOut,
            SyntaxError::TooDeep { .. } => Self::TooDeep,
        }
    }

    /// Returns the reason in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not UTF-8",
            Self::TooLarge => "too large",
            Self::Unreadable => "could not be read",
            Self::TimedOut => "parsing took too long",
            Self::TooDeep => "nested too deeply",
            Self::NoGrammar => "this build has no grammar for it",
            Self::NoRoom => "the index is full",
        }
    }
}

/// The state of a file on disk, which changes with every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChangeKey {
    identity: Identity,
    size: u64,
    modified: SystemTime,
    changed: SystemTime,
}

impl ChangeKey {
    fn of(metadata: &Metadata) -> Self {
        Self {
            identity: metadata.identity,
            size: metadata.size,
            modified: metadata.modified,
            changed: metadata.changed,
        }
    }
}

/// The result of bringing an index up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refreshed {
    /// The time before the walk: every write before it is in the index, unless files are pending.
    pub as_of: SystemTime,
    /// Files that were parsed.
    pub parsed: usize,
    /// Files that are known and were not parsed before the deadline.
    pub pending: usize,
    /// Files that are in the index.
    pub files: usize,
    /// Directories and files that could not be read, or a tree with too many files.
    pub is_cut: bool,
}

/// A definition in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The file, relative to the workspace.
    pub file: PathBuf,
    /// The language of the file.
    pub language: Language,
    /// The names from the outermost symbol to this one.
    pub path: Vec<String>,
    /// The kind.
    pub kind: SymbolKind,
    /// The line of the name, counted from 1.
    pub line: usize,
    /// The lines, with the comments above.
    pub lines: (usize, usize),
    /// The bytes of the comments above, of the signature, and where that ends.
    pub bytes: (usize, usize, usize),
    /// It has a body.
    pub has_body: bool,
    /// The number of symbols around it.
    pub depth: usize,
}

/// The definitions of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDefinitions {
    /// The definitions in the order of the source.
    pub definitions: Vec<Definition>,
    /// A part of the file was not understood, so that definitions may be missing.
    pub has_error: bool,
}

/// The lines of a file that use a name, each with the path of the symbol around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUses {
    /// The file, relative to the workspace.
    pub file: PathBuf,
    /// The lines, counted from 1, each once.
    pub lines: Vec<UseLine>,
}

/// A line that uses a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseLine {
    /// The line, counted from 1.
    pub line: usize,
    /// The names from the outermost symbol around the line to the innermost.
    pub symbol: Vec<String>,
    /// The name is defined here.
    pub is_definition: bool,
}

/// The number and size of the parts of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Files that were parsed.
    pub files: usize,
    /// Parsed files with a part that was not understood.
    pub files_with_errors: usize,
    /// Symbols.
    pub symbols: usize,
    /// Distinct names and words.
    pub names: usize,
    /// Uses of names, definitions included.
    pub uses: usize,
    /// The memory in use, about.
    pub bytes: usize,
}

impl SymbolIndex {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty index that takes at most so much memory, in place of [`MAX_INDEX_BYTES`].
    pub fn with_capacity(bytes: usize) -> Self {
        let state = State { capacity: bytes, ..State::default() };
        Self { state: state.into(), ..Self::default() }
    }

    /// Brings the index up to date with the files of a workspace, by the ignore rules of a search, and stops
    /// parsing at the deadline. Blocks the calling thread, which takes part.
    pub fn refresh(
        &self,
        root: &Root,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<Refreshed, IndexError> {
        let _refreshing = sync::lock(&self.refreshing);
        let as_of = SystemTime::now();
        let scope = Scope::whole(root);
        let list = source_files(&scope, |path| Language::of_path(path).is_some(), cancel)?;
        let is_cut = list.is_cut || list.unreadable.total > 0;
        let stale = self.stale(&list);
        self.remove_missing(root, &list);
        let (parsed, pending) = self.parse_all(root, &stale, as_of, deadline, cancel);
        let files = sync::read(&self.state).files.len();
        Ok(Refreshed { as_of, parsed, pending, files, is_cut })
    }

    fn stale<'l>(&self, list: &'l FileList) -> Vec<&'l SourceFile> {
        let state = sync::read(&self.state);
        let is_stale = |file: &&SourceFile| match state.files.get(&file.path) {
            Some(entry) => {
                let is_known = entry.key == ChangeKey::of(&file.metadata);
                match entry.outcome {
                    Outcome::NoRoom { needed } => !is_known || state.has_room_for(needed),
                    Outcome::Parsed { .. } | Outcome::Skipped(_) => {
                        !is_known || entry.content.is_some()
                    }
                }
            }
            None => true,
        };
        list.files.iter().filter(is_stale).collect()
    }

    fn remove_missing(&self, root: &Root, list: &FileList) {
        let gone: Vec<PathBuf> = {
            let state = sync::read(&self.state);
            let files = state.files.keys();
            files.filter(|path| missing::has_gone(root, list, path)).cloned().collect()
        };
        if !gone.is_empty() {
            let mut state = sync::write(&self.state);
            for path in gone {
                state.remove(&path);
            }
        }
    }

    /// Parses files on all cores until the deadline, and returns how many were done and how many were not.
    fn parse_all(
        &self,
        root: &Root,
        stale: &[&SourceFile],
        as_of: SystemTime,
        deadline: Instant,
        cancel: &Cancel,
    ) -> (usize, usize) {
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = mpsc::sync_channel::<(&SourceFile, ReadFile)>(64);
        let work = |sender: mpsc::SyncSender<_>| {
            while !stop.load(Ordering::Relaxed)
                && !cancel.is_cancelled()
                && Instant::now() < deadline
            {
                let Some(file) = stale.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let (known, has_room) = {
                    let now = sync::read(&self.state);
                    let known = now.files.get(&file.path).and_then(|entry| entry.content);
                    (known, now.has_room_for(0))
                };
                let read = if has_room {
                    ReadFile::read(root, file, known)
                } else {
                    ReadFile::skipped(file, SkipReason::NoRoom)
                };
                if sender.send((*file, read)).is_err() {
                    break;
                }
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut done = 0;
        std::thread::scope(|threads| {
            for _ in 0..cores.min(MAX_WORKERS).min(stale.len()) {
                let sender = sender.clone();
                threads.spawn(|| work(sender));
            }
            drop(sender);
            for (file, read) in receiver {
                done += 1;
                sync::write(&self.state).insert(file, read, as_of);
            }
        });
        (done, stale.len() - done)
    }

    /// Returns the definitions of a file that the caller has just read. It is parsed only if the index does not know it in this state. The caller may hold a view: an index that is in use is
    /// neither waited for nor changed.
    pub fn definitions_of(
        &self,
        path: &Path,
        metadata: &Metadata,
        source: &str,
    ) -> Result<FileDefinitions, SkipReason> {
        let as_of = SystemTime::now();
        let file = SourceFile { path: path.to_owned(), metadata: *metadata };
        let hash = content_hash(source.as_bytes());
        if let Ok(state) = self.state.try_read()
            && state.knows(&file, hash)
        {
            return state.definitions_in(path).ok_or(SkipReason::Unreadable);
        }
        let language = Language::of_path(path).ok_or(SkipReason::NoGrammar)?;
        let parse = || ParsedFile::of(language, source).map_err(|error| SkipReason::of(&error));
        let insert = |state: &mut State, parsed: ParsedFile| {
            let key = ChangeKey::of(metadata);
            state.insert(
                &file,
                ReadFile::Parsed { key, language, hash, parsed: Ok(parsed) },
                as_of,
            );
            state.definitions_in(path)
        };
        let parsed = parse()?;
        let unused = match self.state.try_write() {
            Ok(mut state) => match insert(&mut state, parsed) {
                Some(found) => return Ok(found),
                // The index is full.
                None => parse()?,
            },
            Err(_) => parsed,
        };
        insert(&mut State::default(), unused).ok_or(SkipReason::NoRoom)
    }

    /// Returns the memory in use, about.
    pub fn memory(&self) -> usize {
        sync::read(&self.state).memory()
    }

    /// Returns the index for questions. A refresh waits meanwhile.
    pub fn view(&self) -> IndexView<'_> {
        IndexView { state: sync::read(&self.state) }
    }
}

/// A file that a worker has read.
enum ReadFile {
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
    fn skipped(file: &SourceFile, reason: SkipReason) -> Self {
        let Some(language) = Language::of_path(&file.path) else { return Self::Same };
        let key = ChangeKey::of(&file.metadata);
        Self::Parsed { key, language, hash: 0, parsed: Err(reason) }
    }

    fn read(root: &Root, file: &SourceFile, known: Option<u64>) -> Self {
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
fn content_hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl State {
    fn insert(&mut self, file: &SourceFile, read: ReadFile, as_of: SystemTime) {
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
    fn take_in(&mut self, parsed: ParsedFile) -> Outcome {
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

    fn remove(&mut self, path: &Path) {
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
    fn drop_unused_names(&mut self) {
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

    fn has_room_for(&self, bytes: usize) -> bool {
        self.memory() + bytes < self.capacity
    }

    fn memory(&self) -> usize {
        self.bytes + self.names.bytes()
    }

    fn definitions_in(&self, path: &Path) -> Option<FileDefinitions> {
        let entry = self.files.get(path)?;
        let Outcome::Parsed { content, has_error } = &entry.outcome else { return None };
        let file = (path, entry.language, content);
        let definitions = (0..content.symbols.len()).map(|index| self.definition(file, index));
        Some(FileDefinitions { definitions: definitions.collect(), has_error: *has_error })
    }

    /// Tells whether a file is in the index with this content.
    fn knows(&self, file: &SourceFile, hash: u64) -> bool {
        self.files.get(&file.path).is_some_and(|entry| {
            entry.key == ChangeKey::of(&file.metadata)
                && entry.content.is_none_or(|known| known == hash)
                && matches!(entry.outcome, Outcome::Parsed { .. })
        })
    }

    /// Returns the parsed files in path order.
    fn parsed(&self) -> impl Iterator<Item = (&Path, Language, &Indexed)> {
        self.files.iter().filter_map(|(path, entry)| match &entry.outcome {
            Outcome::Parsed { content, .. } => Some((path.as_path(), entry.language, content)),
            Outcome::NoRoom { .. } | Outcome::Skipped(_) => None,
        })
    }

    fn definition(
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
    fn bytes(&self, path: &Path) -> usize {
        let content = match &self.outcome {
            Outcome::Parsed { content, .. } => content.bytes(),
            Outcome::NoRoom { .. } | Outcome::Skipped(_) => 0,
        };
        size_of::<Self>() + 2 * size_of::<PathBuf>() + path.as_os_str().len() + content
    }
}

/// An index for questions.
#[derive(Debug)]
pub struct IndexView<'a> {
    state: RwLockReadGuard<'a, State>,
}

impl IndexView<'_> {
    /// Returns the definitions that a name path matches, in path and line order.
    pub fn definitions(&self, path: &NamePath) -> Vec<Definition> {
        let state = &*self.state;
        let Some(name) = state.names.id(path.last()) else { return Vec::new() };
        let mut found = Vec::new();
        for file in state.parsed() {
            for (index, symbol) in file.2.symbols.iter().enumerate() {
                if symbol.name == name && path.matches_in(&file.2.path(index, &state.names), file.0)
                {
                    found.push(state.definition(file, index));
                }
            }
        }
        found
    }

    /// Returns the definitions of a file in the order of the source; none if it is not in the index.
    pub fn of_file(&self, path: &Path) -> Option<Vec<Definition>> {
        self.state.definitions_in(path).map(|found| found.definitions)
    }

    /// Returns the parsed files below a directory in path order, with the number of their symbols.
    pub fn files(&self, below: &Path) -> Vec<(PathBuf, usize)> {
        let below = |(path, _, content): (&Path, Language, &Indexed)| {
            path.starts_with(below).then(|| (path.to_owned(), content.symbols.len()))
        };
        self.state.parsed().filter_map(below).collect()
    }

    /// Returns the lines that use a name, by file in path order.
    pub fn uses(&self, name: &str) -> Vec<FileUses> {
        let state = &*self.state;
        let Some(id) = state.names.id(name) else { return Vec::new() };
        let mut found = Vec::new();
        for (path, _, content) in state.parsed() {
            let mut lines: Vec<u32> = content.uses.lines(id).collect();
            lines.dedup();
            if lines.is_empty() {
                continue;
            }
            let is_defined = |line: u32| {
                content.symbols.iter().any(|symbol| symbol.name == id && symbol.line == line)
            };
            let of_line = |line: u32| UseLine {
                line: line as usize,
                symbol: content.enclosing(line).map_or(Vec::new(), |index| {
                    content.path(index, &state.names).into_iter().map(str::to_owned).collect()
                }),
                is_definition: is_defined(line),
            };
            let lines = lines.into_iter().map(of_line).collect();
            found.push(FileUses { file: path.to_owned(), lines });
        }
        found
    }

    /// Returns names of symbols that are close to one that is not there, the closest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        search::near(&self.state, name)
    }

    /// Finds the symbols that fit a query best.
    pub fn search(&self, request: &SearchRequest) -> Vec<SearchHit> {
        search::search(&self.state, request)
    }

    /// Ranks the symbols of the workspace by the files that use them.
    pub fn map(&self, request: &MapRequest) -> Vec<MapEntry> {
        map::rank(&self.state, request)
    }

    /// Returns the files that are not in the index, with the reason, in path order.
    pub fn skipped(&self) -> Vec<(PathBuf, SkipReason)> {
        let skipped = self.state.files.iter().filter_map(|(path, entry)| match &entry.outcome {
            Outcome::Skipped(reason) => Some((path.clone(), *reason)),
            Outcome::NoRoom { .. } => Some((path.clone(), SkipReason::NoRoom)),
            Outcome::Parsed { .. } => None,
        });
        skipped.collect()
    }

    /// Returns the files below a directory of which a part was not understood, in path order.
    pub fn with_errors(&self, below: &Path) -> Vec<PathBuf> {
        let is_one = |(path, entry): &(&PathBuf, &FileEntry)| {
            path.starts_with(below)
                && matches!(entry.outcome, Outcome::Parsed { has_error: true, .. })
        };
        self.state.files.iter().filter(is_one).map(|(path, _)| path.clone()).collect()
    }

    /// Returns the number and size of the parts.
    pub fn statistics(&self) -> IndexStatistics {
        let state = &*self.state;
        let mut all = IndexStatistics {
            names: state.names.len(),
            bytes: state.memory(),
            ..IndexStatistics::default()
        };
        for entry in state.files.values() {
            let Outcome::Parsed { content, has_error } = &entry.outcome else { continue };
            all.files += 1;
            all.files_with_errors += usize::from(*has_error);
            all.symbols += content.symbols.len();
            let places = 0..content.uses.names.len();
            all.uses += places.map(|place| content.uses.lines_at(place).count()).sum::<usize>();
        }
        all
    }
}
