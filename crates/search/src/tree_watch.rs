//! The files of a tree, looked at again only where the kernel says that something has happened.
//!
//! The directories that a walk lists are watched. Each is watched before it is listed, and the kernel queues an event
//! before the call that caused it returns, so that a list which was brought up to date with the queue is no older than
//! the last write, of any process. Several lists of different files follow one watch, each from a cursor of its own.
//!
//! ```text
//! queue ──► events ──► paths in a log, numbered ──► looked at again by each list ──► FileChanges
//!                └───► directories that are new, moved or under other rules: walked, and watched again
//! ```
//!
//! A list is walked as a whole where events cannot tell: at first; after the queue was full; where too much has happened;
//! where directories could not be read; on file systems to which others can write ([`carrel_fsroot::has_events`]); where
//! the system allows no further watch; and [`TRUSTED`] after the last walk, which bounds the age of what has no event.
//! That is a write through a memory mapping that is still in place, and a write through a hard link that was made
//! outside of the tree, or where it is ignored, since the file was last looked at. Files that have several links are
//! looked at each time, and one that gets a further link costs a walk.

mod watched_tree;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use carrel_domain::sync;
use carrel_fsroot::{Directory, FileKind, Identity, Root, has_events};
use tracing::debug;

use crate::budget::Cancel;
use crate::error::Error;
use crate::node::{includes, vanished};
use crate::scope::{Scope, last_name};
use crate::source_files::{FileList, SourceFile, files_below};
pub(crate) use watched_tree::WatchedTree;

/// The time after a whole walk for which events alone are relied on.
const TRUSTED: Duration = Duration::from_mins(1);

/// The time for which a watch that could not be had is not tried again.
const RETRY: Duration = Duration::from_mins(5);

/// Changed paths that are kept for lists that have not seen them.
const MAX_LOG: usize = 8192;

/// Changed paths that are looked at one by one. A walk takes less time for more.
const MAX_CHANGED: usize = 512;

/// Files with several links that are looked at each time.
const MAX_LINKED: usize = 256;

/// The number of the next change. It never repeats in a process, so that a cursor belongs to one watch.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A watch of the directories of a tree.
#[derive(Debug)]
pub struct TreeWatch(Mutex<State>);

#[derive(Debug)]
struct State {
    watched: Option<WatchedTree>,
    /// The directory at the top of the tree; another one may take its place.
    top: Option<Identity>,
    /// The last change.
    last: u64,
    /// The change after which the log has all.
    since: u64,
    log: VecDeque<(u64, PathBuf)>,
    /// The time before which no watch is tried.
    not_before: Option<Instant>,
    used: Instant,
}

/// The changes that a list of files has seen; by default none, so that all files are new to it.
#[derive(Clone, Debug, Default)]
pub struct TreeCursor(Option<Position>);

#[derive(Clone, Debug)]
struct Position {
    seen: u64,
    /// The time of the last whole walk.
    walked: Instant,
    /// The files with several links.
    linked: BTreeSet<PathBuf>,
    /// Further paths to look at the next time.
    again: BTreeSet<PathBuf>,
}

/// Files that were looked at since the last time.
#[derive(Clone, Debug)]
pub struct FileChanges {
    /// The files, in path order. A path that [was looked at](Self::covers) and is not among them has gone, or is ignored.
    pub list: FileList,
    /// The places that were looked at; none if all were.
    places: Option<BTreeSet<PathBuf>>,
}

impl TreeCursor {
    /// Has files looked at the next time, changed or not.
    pub fn look_again(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        if let Some(position) = &mut self.0 {
            position.again.extend(paths);
        }
    }
}

impl FileChanges {
    /// Returns the changes after a look at all files.
    pub fn whole(list: FileList) -> Self {
        Self { list, places: None }
    }

    /// Returns whether all files were looked at.
    pub fn is_whole(&self) -> bool {
        self.places.is_none()
    }

    /// Returns the places that were looked at, each a file or a directory with all below it.
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        let top = self.places.is_none().then_some(Path::new(""));
        top.into_iter().chain(self.places.iter().flatten().map(PathBuf::as_path))
    }

    /// Returns whether a path was looked at.
    pub fn covers(&self, path: &Path) -> bool {
        let places = self.places.as_ref();
        places.is_none_or(|places| path.ancestors().any(|above| places.contains(above)))
    }
}

impl Default for TreeWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl TreeWatch {
    /// Creates a watch that begins with the first list.
    pub fn new() -> Self {
        let last = NEXT.fetch_add(1, Ordering::Relaxed);
        let log = VecDeque::new();
        let used = Instant::now();
        Self(
            State { watched: None, top: None, last, since: last, log, not_before: None, used }
                .into(),
        )
    }

    /// Looks at the files of a tree that may have changed since a cursor, and returns the cursor for the next time.
    /// `accepts` has to be the same each time. Blocks.
    pub fn changes(
        &self,
        root: &Root,
        cursor: &TreeCursor,
        accepts: impl Fn(&Path) -> bool + Sync,
        cancel: &Cancel,
    ) -> Result<(FileChanges, TreeCursor), Error> {
        let mut state = sync::lock(&self.0);
        state.used = Instant::now();
        state.take_events(root);
        let seen = state.last;
        let known = cursor.0.as_ref().and_then(|position| {
            let places = state.changed_since(position)?;
            Some((position, places))
        });
        if let Some((position, places)) = known
            && let Some(list) = state.look_at(root, &places, &accepts, cancel)?
            && position.knows_links(&list)
        {
            let linked = position.linked.iter();
            let changes = FileChanges { list, places: Some(places) };
            let linked = linked.filter(|path| !changes.covers(path)).cloned().collect();
            let position = Position { seen, linked, ..Position::at(position.walked) };
            let cursor = state.cursor(position, &changes.list);
            return Ok((changes, cursor));
        }
        state.begin(root);
        let walked = Instant::now();
        let top = (PathBuf::new(), root.directory(Path::new(""))?);
        let scope = Scope::whole(root);
        let list = files_below(&scope, top, accepts, state.watched.as_ref(), cancel)?;
        state.note_walk();
        let cursor = state.cursor(Position { seen, ..Position::at(walked) }, &list);
        Ok((FileChanges::whole(list), cursor))
    }

    /// Returns the number of the last change, if it is known to be the last one: as long as it stays the same, nothing
    /// has happened to files that are listed. Does not block.
    pub fn last_change(&self, root: &Root) -> Option<u64> {
        let state = self.0.try_lock().ok()?;
        let is_quiet = state.watched.as_ref()?.is_quiet() && state.top == root.identity().ok();
        is_quiet.then_some(state.last)
    }

    /// Returns whether directories are watched.
    pub fn is_watching(&self) -> bool {
        sync::lock(&self.0).watched.is_some()
    }

    /// Ends the watch, unless it was used within this time. Returns whether nothing is watched any more.
    pub fn end_if_unused_for(&self, time: Duration) -> bool {
        let mut state = sync::lock(&self.0);
        if state.used.elapsed() >= time {
            state.end();
        }
        state.watched.is_none()
    }
}

impl Position {
    fn at(walked: Instant) -> Self {
        Self { seen: 0, walked, linked: BTreeSet::new(), again: BTreeSet::new() }
    }

    /// Returns whether no file of a list has got a further link. Its other names may be files of the tree too.
    fn knows_links(&self, list: &FileList) -> bool {
        let mut linked = list.files.iter().filter(|file| file.metadata.links > 1);
        linked.all(|file| self.linked.contains(&file.path))
    }
}

impl State {
    /// Ends the watch. Every cursor knows nothing then.
    fn end(&mut self) {
        self.watched = None;
        self.log.clear();
        self.last = NEXT.fetch_add(1, Ordering::Relaxed);
        self.since = self.last;
    }

    /// Begins to watch, where that is possible.
    fn begin(&mut self, root: &Root) {
        if self.watched.is_some() || self.not_before.is_some_and(|time| Instant::now() < time) {
            return;
        }
        let begun = if has_events(root) {
            WatchedTree::new()
        } else {
            Err("others may write to its file system".to_owned())
        };
        match begun {
            Ok(watched) => self.watched = Some(watched),
            Err(reason) => self.refuse(root, &reason),
        }
    }

    fn refuse(&mut self, root: &Root, reason: &str) {
        debug!(tree = %root.path().display(), reason, "a tree cannot be watched and is walked each time");
        self.end();
        self.not_before = Some(Instant::now() + RETRY);
    }

    /// Adds what has happened to the log.
    fn take_events(&mut self, root: &Root) {
        let top = root.identity().ok();
        if top != self.top {
            self.end();
            self.top = top;
        }
        let Some(watched) = &self.watched else { return };
        match watched.take_changes(root) {
            Ok(Some(changed)) => self.add(changed),
            Ok(None) => {
                debug!(tree = %root.path().display(), "events were lost; the tree is walked");
                self.end();
            }
            Err(error) => self.refuse(root, &error.to_string()),
        }
    }

    fn add(&mut self, changed: impl IntoIterator<Item = PathBuf>) {
        let mut changed = changed.into_iter().peekable();
        if changed.peek().is_some() {
            self.last = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        self.log.extend(changed.map(|path| (self.last, path)));
        while self.log.len() > MAX_LOG
            && let Some((dropped, _)) = self.log.pop_front()
        {
            self.since = dropped;
        }
    }

    /// Returns the paths to look at again; none if the tree has to be walked.
    fn changed_since(&self, position: &Position) -> Option<BTreeSet<PathBuf>> {
        let is_known = self.watched.is_some()
            && position.seen >= self.since
            && position.walked.elapsed() < TRUSTED;
        if !is_known {
            return None;
        }
        let changed = self.log.iter().rev().take_while(|(number, _)| *number > position.seen);
        let changed: BTreeSet<_> = changed.map(|(_, path)| path.clone()).collect();
        let changed = &changed | &position.again;
        (changed.len() <= MAX_CHANGED).then(|| &changed | &position.linked)
    }

    /// Looks at paths. Returns nothing if the tree has to be walked.
    fn look_at(
        &mut self,
        root: &Root,
        places: &BTreeSet<PathBuf>,
        accepts: &(impl Fn(&Path) -> bool + Sync),
        cancel: &Cancel,
    ) -> Result<Option<FileList>, Error> {
        let Some(watched) = &self.watched else { return Ok(None) };
        let mut list = FileList::default();
        if places.is_empty() {
            return Ok(Some(list));
        }
        let scope = &Scope::whole(root);
        let top = root.directory(Path::new(""))?;
        let mut seen: Option<&Path> = None;
        for place in places {
            if seen.is_some_and(|seen| place.starts_with(seen)) {
                continue;
            }
            seen = Some(place);
            let Some((above, rules)) = place.parent().and_then(|above| watched.rules(above)) else {
                return Ok(None);
            };
            let is_included = |is_directory| includes(scope, rules.as_deref(), place, is_directory);
            match look(&top, &above, place) {
                Ok(Found::Directory(directory)) if is_included(true) => {
                    let top = (place.clone(), directory);
                    list.append(files_below(scope, top, accepts, Some(watched), cancel)?);
                }
                Ok(Found::File(file)) if is_included(false) => {
                    if accepts(place) {
                        list.files.push(file);
                    } else if file.metadata.links > 1 {
                        // Its other names may be files of the list.
                        return Ok(None);
                    }
                }
                Ok(Found::Directory(_) | Found::File(_) | Found::Other) => {}
                Err(error) => list.unreadable.add_error(place.clone(), &error),
            }
        }
        let is_sure = !list.is_cut && list.unreadable.total == 0;
        self.note_walk();
        Ok(is_sure.then_some(list))
    }

    /// Takes in what a walk has found out about the watch.
    fn note_walk(&mut self) {
        let Some(watched) = &self.watched else { return };
        let (moved, failure) = watched.take_walk();
        self.add(moved);
        if let Some(reason) = failure {
            debug!(reason, "a tree cannot be watched and is walked each time");
            self.end();
            self.not_before = Some(Instant::now() + RETRY);
        }
    }

    /// Returns the cursor behind a list; one that knows nothing if the list is not all there is.
    fn cursor(&self, position: Position, list: &FileList) -> TreeCursor {
        let is_sure = self.watched.is_some() && !list.is_cut && list.unreadable.total == 0;
        let mut position = position;
        let linked = list.files.iter().filter(|file| file.metadata.links > 1);
        position.linked.extend(linked.map(|file| file.path.clone()).take(MAX_LINKED + 1));
        let is_bounded = position.linked.len() <= MAX_LINKED;
        TreeCursor(Some(position).filter(|_| is_sure && is_bounded))
    }
}

/// The present entry of a path.
enum Found {
    File(SourceFile),
    Directory(Directory),
    /// Nothing, or something that is not listed.
    Other,
}

/// Looks at a path, without following links.
fn look(top: &Directory, above: &Path, path: &Path) -> Result<Found, carrel_fsroot::Error> {
    let found = top.look_up(above).and_then(|directory| {
        let name = Path::new(last_name(path));
        let metadata = directory.link_metadata(name)?;
        Ok(match metadata.kind {
            FileKind::File => Found::File(SourceFile { path: path.to_owned(), metadata }),
            FileKind::Directory => Found::Directory(directory.directory(name)?),
            FileKind::Link
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Device
            | FileKind::Unknown => Found::Other,
        })
    });
    match found {
        Err(error) if vanished(error.problem()) => Ok(Found::Other),
        found => found,
    }
}
