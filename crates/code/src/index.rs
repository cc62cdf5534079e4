//! The symbol index of a workspace: definitions, uses of names and words of comments of all its files.
//!
//! An answer is never older than the last write. Before each one the files that may have changed are looked at
//! ([`carrel_search::TreeWatch`]), or the tree is walked, and a file whose change key differs is parsed again. The
//! change key is inode, size and the times of the last change, which only the kernel sets. A file that changed in the
//! moment of its reading could change again without a new time on kernels with coarse clocks, so its content is compared
//! the next time.
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
mod state;
mod stored;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock, RwLockReadGuard, mpsc};
use std::time::{Instant, SystemTime};

use carrel_domain::sync;
use carrel_fsroot::{Metadata, Root};
use carrel_search::{Cancel, FileChanges, Scope, SourceFile, TreeCursor, TreeWatch, source_files};

pub use map::{MapEntry, MapRequest};
pub use search::{MAX_HITS, SearchHit, SearchRequest};
pub use stored::StoredIndexError;

use file_entry::{Indexed, ParsedFile};
use state::{ChangeKey, FileEntry, Outcome, ReadFile, State, content_hash};

use crate::language::Language;
use crate::symbol::{NamePath, SymbolKind};
use crate::syntax::SyntaxError;

/// The memory of one index. Beyond it files are left out, and answers say so.
pub const MAX_INDEX_BYTES: usize = 512 << 20;

/// The threads that parse.
const MAX_WORKERS: usize = 8;

/// Why an index could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The tree could not be walked.
    #[error(transparent)]
    Walk(#[from] carrel_search::Error),
}

fn is_source(path: &Path) -> bool {
    Language::of_path(path).is_some()
}

/// The symbol index of a workspace.
#[derive(Debug, Default)]
pub struct SymbolIndex {
    state: RwLock<State>,
    /// Held while the index is brought up to date, so that files are parsed once.
    progress: Mutex<Progress>,
}

/// The point that an index has been brought to.
#[derive(Debug, Default)]
struct Progress {
    cursor: TreeCursor,
    /// Files that were found and not parsed before the deadline.
    pending: Vec<SourceFile>,
    /// Files were left out because the memory is used up; there may be room for them when another one has gone.
    is_full: bool,
}

/// Why a file is not in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// It is not UTF-8.
    NotUtf8,
    /// It is larger than [`crate::MAX_SOURCE_BYTES`].
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
    /// parsing at the deadline. All files are looked at. Blocks the calling thread, which takes part.
    pub fn refresh(
        &self,
        root: &Root,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<Refreshed, IndexError> {
        let mut progress = sync::lock(&self.progress);
        progress.cursor = TreeCursor::default();
        self.take_unconfirmed();
        let as_of = SystemTime::now();
        let list = source_files(&Scope::whole(root), is_source, cancel)?;
        let changes = FileChanges::whole(list);
        Ok(self.take_in(root, &mut progress, &changes, (as_of, deadline), cancel))
    }

    /// Does the same, and looks only at files that may have changed since the last time. The watch is the same each
    /// time, or a later one of the same tree.
    pub fn refresh_watched(
        &self,
        root: &Root,
        watch: &TreeWatch,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<Refreshed, IndexError> {
        let mut progress = sync::lock(&self.progress);
        if progress.is_full {
            progress.cursor = TreeCursor::default();
        }
        progress.cursor.look_again(self.take_unconfirmed());
        let as_of = SystemTime::now();
        let (changes, cursor) = watch.changes(root, &progress.cursor, is_source, cancel)?;
        let refreshed = self.take_in(root, &mut progress, &changes, (as_of, deadline), cancel);
        progress.cursor = cursor;
        Ok(refreshed)
    }

    fn take_unconfirmed(&self) -> BTreeSet<PathBuf> {
        if sync::read(&self.state).unconfirmed.is_empty() {
            return BTreeSet::new();
        }
        std::mem::take(&mut sync::write(&self.state).unconfirmed)
    }

    /// Takes in changes of files. Files that are not parsed before the deadline are kept for the next time.
    fn take_in(
        &self,
        root: &Root,
        progress: &mut Progress,
        changes: &FileChanges,
        (as_of, deadline): (SystemTime, Instant),
        cancel: &Cancel,
    ) -> Refreshed {
        let list = &changes.list;
        let is_cut = list.is_cut || list.unreadable.total > 0;
        let mut stale = self.stale(changes);
        stale.extend(progress.pending.extract_if(.., |file| !changes.covers(&file.path)));
        let has_lost = self.remove_missing(root, changes);
        let is_same = stale.is_empty() && !has_lost;
        let parsed = self.parse_all(root, &stale, as_of, deadline, cancel);
        progress.pending = stale.split_off(parsed);
        let now = sync::read(&self.state);
        progress.is_full = if is_same { progress.is_full } else { now.is_full() };
        let (pending, files) = (progress.pending.len(), now.files.len());
        Refreshed { as_of, parsed, pending, files, is_cut }
    }

    fn stale(&self, changes: &FileChanges) -> Vec<SourceFile> {
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
        changes.list.files.iter().filter(is_stale).cloned().collect()
    }

    /// Removes the files that have gone. Returns whether there were any.
    fn remove_missing(&self, root: &Root, changes: &FileChanges) -> bool {
        let gone: Vec<PathBuf> = {
            let state = sync::read(&self.state);
            let looked_at = changes.places().flat_map(|place| state.below(place));
            looked_at
                .filter(|path| missing::has_gone(root, &changes.list, path))
                .map(Path::to_owned)
                .collect()
        };
        if gone.is_empty() {
            return false;
        }
        let mut state = sync::write(&self.state);
        for path in gone {
            state.remove(&path);
        }
        true
    }

    /// Parses files in their order, on all cores and until the deadline, and returns how many were done.
    fn parse_all(
        &self,
        root: &Root,
        stale: &[SourceFile],
        as_of: SystemTime,
        deadline: Instant,
        cancel: &Cancel,
    ) -> usize {
        if stale.is_empty() {
            return 0;
        }
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
                if sender.send((file, read)).is_err() {
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
        done
    }

    /// Returns the definitions of a file that the caller has just read. It is parsed only if the index does not know
    /// it in this state. The caller may hold a view: an index that is in use is neither waited for nor changed.
    pub fn definitions_of(
        &self,
        path: &Path,
        metadata: &Metadata,
        source: &str,
    ) -> Result<FileDefinitions, SkipReason> {
        self.of_file((path, metadata, source), |state| state.definitions_in(path))
    }

    /// Returns the names of the innermost symbol around a line of a file that the caller has just read, under the same
    /// terms; none at its top level.
    pub fn innermost_of(
        &self,
        path: &Path,
        metadata: &Metadata,
        source: &str,
        line: usize,
    ) -> Result<Vec<String>, SkipReason> {
        self.of_file((path, metadata, source), |state| state.innermost_in(path, line))
    }

    fn of_file<T>(
        &self,
        (path, metadata, source): (&Path, &Metadata, &str),
        find: impl Fn(&State) -> Option<T>,
    ) -> Result<T, SkipReason> {
        let as_of = SystemTime::now();
        let file = SourceFile { path: path.to_owned(), metadata: *metadata };
        if let Ok(state) = self.state.try_read()
            && state.knows(&file, || content_hash(source.as_bytes()))
        {
            return find(&state).ok_or(SkipReason::Unreadable);
        }
        let hash = content_hash(source.as_bytes());
        let language = Language::of_path(path).ok_or(SkipReason::NoGrammar)?;
        let parse = || ParsedFile::of(language, source).map_err(|error| SkipReason::of(&error));
        let insert = |state: &mut State, parsed: ParsedFile| {
            let key = ChangeKey::of(metadata);
            state.unconfirmed.insert(path.to_owned());
            state.insert(
                &file,
                ReadFile::Parsed { key, language, hash, parsed: Ok(parsed) },
                as_of,
            );
            find(state)
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
