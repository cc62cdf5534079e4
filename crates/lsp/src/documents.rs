//! The documents that a server has open, and their agreement with the files on disk.
//!
//! Files change by tools, commands, `git checkout` and other sessions alike, so nothing is told about changes: before
//! each query the files that may have changed are looked at, and what differs from the last look is sent. Notifications are handled by a server
//! in their order, before the query that follows; what it would read from disk by itself comes at a time of its own.
//! Therefore a file that has changed since the server started is opened with its new text, and stays open until
//! [`MAX_OPEN`] others were used since. When it is closed, disk and server agree.
//!
//! ```text
//! look (blocking) ──► Look ──► plan ──► room in the queue ──► apply: notifications, and the state with them
//! ```
//!
//! Between plan and apply nothing is changed, and applying does not wait: a query that is cancelled leaves state and
//! server in agreement.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use carrel_fsroot::Root;
use carrel_search::{Cancel, FileChanges, TreeCursor, TreeWatch};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::Batch;
use crate::definition::{ChangeRule, ServerDefinition, language_id};
use crate::position::{Position, PositionEncoding, Range, TextIndex};
use crate::stamp::{ContentHash, ReadFile, Stamp};
use crate::uri;

/// Documents that a server has open at a time. A change of more files than this makes a new server cheaper.
const MAX_OPEN: usize = 100;

/// The kinds of events about files, as the protocol numbers them.
const CREATED: u8 = 1;
const CHANGED: u8 = 2;
const DELETED: u8 = 3;

/// The files and open documents of a server.
#[derive(Debug)]
pub(crate) struct Documents {
    definition: &'static ServerDefinition,
    /// The workspace's path, of which URIs are made.
    top: PathBuf,
    encoding: PositionEncoding,
    known: Arc<KnownFiles>,
    /// The changes of files that the last look has seen.
    cursor: TreeCursor,
    open: BTreeMap<PathBuf, OpenDocument>,
    /// The last version of a document, and the time of its use.
    clock: i64,
    /// The time of the last change that was sent.
    changed: Instant,
    /// A file has changed since the server started.
    is_changed: bool,
}

/// The files at the last look.
pub(crate) type KnownFiles = BTreeMap<PathBuf, KnownFile>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownFile {
    pub(crate) stamp: Stamp,
    /// The content of a file whose stamp is doubtful.
    pub(crate) content: Option<ContentHash>,
}

/// A document that a server has open.
#[derive(Clone, Debug)]
pub(crate) struct OpenDocument {
    pub(crate) version: i64,
    pub(crate) hash: ContentHash,
    pub(crate) text: Arc<str>,
    /// The time at which the text was sent.
    pub(crate) sent: Instant,
    last_used: i64,
}

/// The tree compared with the last look at it.
#[derive(Debug)]
pub(crate) struct Look {
    /// The time before the files were looked at: every write before it is seen.
    pub(crate) as_of: SystemTime,
    cursor: TreeCursor,
    /// The files about which something else is known now; nothing about deleted ones.
    known: Vec<(PathBuf, Option<KnownFile>)>,
    changes: Vec<FileChange>,
    /// The files of the query, and open documents that ignore rules hide.
    read: Vec<(PathBuf, Option<ReadFile>)>,
    /// There are more files, or some directories could not be read.
    pub(crate) is_cut: bool,
}

#[derive(Debug)]
struct FileChange {
    path: PathBuf,
    kind: u8,
    /// None if it was deleted, or could not be read.
    read: Option<ReadFile>,
}

/// Notifications that bring a server up to date.
#[derive(Debug, Default)]
pub(crate) struct SyncPlan {
    events: Vec<Value>,
    deleted: Vec<PathBuf>,
    steps: Vec<Step>,
    known: Vec<(PathBuf, Option<KnownFile>)>,
    cursor: TreeCursor,
}

#[derive(Debug)]
enum Step {
    /// Opens a document, or changes the text of an open one.
    Text(PathBuf, ReadFile),
    Close(PathBuf),
    Touch(PathBuf),
}

/// The decision about a look.
#[derive(Debug)]
pub(crate) enum SyncDecision {
    Proceed(SyncPlan),
    /// A new server has to take the place of this one, for this reason.
    Restart(&'static str),
}

/// The files of a project, and how changes of them are found.
#[derive(Debug)]
pub(crate) struct ProjectFiles {
    pub(crate) files: Root,
    pub(crate) watch: Arc<TreeWatch>,
}

impl ProjectFiles {
    /// Looks at the tree for the first time, before a server starts. Blocks.
    pub(crate) fn first_look(
        &self,
        definition: &ServerDefinition,
        cancel: &Cancel,
    ) -> Result<(KnownFiles, TreeCursor), carrel_search::Error> {
        let as_of = SystemTime::now();
        let (changes, cursor) = self.changes(definition, &TreeCursor::default(), cancel)?;
        let known = changes.list.files.into_iter().map(|file| {
            let stamp = Stamp::of(&file.metadata);
            let doubtful = stamp.is_doubtful(as_of);
            let read = || ReadFile::read(&self.files, &file.path).ok();
            let content = doubtful.then(read).flatten().map(|read| read.hash());
            (file.path, KnownFile { stamp, content })
        });
        Ok((known.collect(), cursor))
    }

    /// Compares the tree with the last look. Reads what has changed, the files of a query, and open documents that
    /// are not listed. Blocks.
    pub(crate) fn look(
        &self,
        definition: &ServerDefinition,
        (before, cursor): (&KnownFiles, &TreeCursor),
        wanted: &BTreeSet<PathBuf>,
        cancel: &Cancel,
    ) -> Result<Look, carrel_search::Error> {
        let as_of = SystemTime::now();
        let (changes, cursor) = self.changes(definition, cursor, cancel)?;
        let list = &changes.list;
        let is_cut = list.is_cut || list.unreadable.total > 0;
        let (known, read) = (Vec::new(), Vec::new());
        let mut look = Look { as_of, cursor, known, changes: Vec::new(), read, is_cut };
        if !is_cut {
            look.delete_missing(before, &changes);
        }
        for file in changes.list.files {
            let stamp = Stamp::of(&file.metadata);
            let known = look.compare(&self.files, before.get(&file.path), &file.path, stamp);
            if before.get(&file.path) != Some(&known) {
                look.known.push((file.path, Some(known)));
            }
        }
        for path in wanted {
            look.read.push((path.clone(), ReadFile::read(&self.files, path).ok()));
        }
        Ok(look)
    }

    fn changes(
        &self,
        definition: &ServerDefinition,
        cursor: &TreeCursor,
        cancel: &Cancel,
    ) -> Result<(FileChanges, TreeCursor), carrel_search::Error> {
        self.watch.changes(&self.files, cursor, |path| definition.concerns(path), cancel)
    }
}

impl Look {
    /// Notes the files that were known and are not found any more.
    fn delete_missing(&mut self, before: &KnownFiles, changes: &FileChanges) {
        let found: BTreeSet<_> =
            changes.list.files.iter().map(|file| file.path.as_path()).collect();
        let is_gone = |path: &&PathBuf| !found.contains(path.as_path());
        let gone: BTreeSet<_> = changes
            .places()
            .flat_map(|place| {
                let from = (Bound::Included(place), Bound::Unbounded);
                let files = before.range::<Path, _>(from).map(|(path, _)| path);
                files.take_while(move |path| path.starts_with(place))
            })
            .filter(is_gone)
            .collect();
        for path in gone {
            self.known.push((path.clone(), None));
            self.changes.push(FileChange { path: path.clone(), kind: DELETED, read: None });
        }
    }

    /// Notes a file that is new or differs, and returns what is known of it now.
    fn compare(
        &mut self,
        files: &Root,
        before: Option<&KnownFile>,
        path: &Path,
        stamp: Stamp,
    ) -> KnownFile {
        let is_same =
            before.is_some_and(|before| before.stamp == stamp && before.content.is_none());
        if is_same {
            return KnownFile { stamp, content: None };
        }
        let read = ReadFile::read(files, path).ok();
        let stamp = read.as_ref().map_or(stamp, |read| read.stamp);
        let hash = read.as_ref().map(ReadFile::hash);
        let is_same =
            before.is_some_and(|before| before.content.is_some() && before.content == hash);
        let content = hash.filter(|_| stamp.is_doubtful(self.as_of));
        if !is_same {
            let kind = if before.is_some() { CHANGED } else { CREATED };
            self.changes.push(FileChange { path: path.to_owned(), kind, read });
        }
        KnownFile { stamp, content }
    }
}

impl Documents {
    pub(crate) fn new(
        definition: &'static ServerDefinition,
        top: PathBuf,
        encoding: PositionEncoding,
        (known, cursor): (KnownFiles, TreeCursor),
    ) -> Self {
        Self {
            definition,
            top,
            encoding,
            known: Arc::new(known),
            cursor,
            open: BTreeMap::new(),
            clock: 0,
            changed: Instant::now(),
            is_changed: false,
        }
    }

    /// Returns the files at the last look, and the changes that it has seen.
    pub(crate) fn known(&self) -> (Arc<KnownFiles>, TreeCursor) {
        (Arc::clone(&self.known), self.cursor.clone())
    }

    /// Returns whether the last look found a file.
    pub(crate) fn is_known(&self, path: &Path) -> bool {
        self.known.contains_key(path)
    }

    pub(crate) fn open(&self, path: &Path) -> Option<&OpenDocument> {
        self.open.get(path)
    }

    /// Returns the time of the last change that was sent.
    pub(crate) fn changed(&self) -> Instant {
        self.changed
    }

    /// Returns whether a file has changed since the server started.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns the absolute path of a file, as text.
    pub(crate) fn absolute(&self, path: &Path) -> String {
        self.top.join(path).to_string_lossy().into_owned()
    }

    pub(crate) fn uri(&self, path: &Path) -> String {
        uri::of_path(&self.top.join(path))
    }

    /// Returns the open documents that the last walk did not see.
    pub(crate) fn unlisted(&self) -> impl Iterator<Item = &PathBuf> {
        self.open.keys().filter(|path| !self.known.contains_key(*path))
    }

    /// Returns whether a file is still as the server has it. A file that is neither known nor open is taken as it is.
    pub(crate) fn agrees(&self, path: &Path, read: &ReadFile) -> bool {
        match (self.open.get(path), self.known.get(path)) {
            (Some(open), _) => open.is(read),
            (None, Some(known)) => match known.content {
                Some(content) => content == read.hash(),
                None => known.stamp == read.stamp,
            },
            (None, None) => true,
        }
    }

    /// Decides about a look. Changes nothing.
    pub(crate) fn plan(&self, look: Look) -> SyncDecision {
        let mut plan = SyncPlan { known: look.known, cursor: look.cursor, ..SyncPlan::default() };
        for change in look.changes {
            let rules = self.definition.changes;
            let is_project = self.definition.is_project_file(&change.path);
            if is_project && rules.project == ChangeRule::Restart {
                return SyncDecision::Restart("a project file has changed");
            }
            if change.kind != CHANGED && self.definition.is_target(&change.path) {
                return SyncDecision::Restart("a target has come or gone");
            }
            if change.kind == DELETED && rules.deleted == ChangeRule::Restart {
                return SyncDecision::Restart("a source file has gone");
            }
            plan.events.push(json!({ "uri": self.uri(&change.path), "type": change.kind }));
            if change.kind == DELETED {
                plan.deleted.push(change.path.clone());
            }
            let is_open = self.open.contains_key(&change.path);
            match change.read.filter(|read| read.text().is_some() && !is_project) {
                Some(read) if self.differs(&change.path, &read) => {
                    plan.steps.push(Step::Text(change.path, read));
                }
                None if is_open => plan.steps.push(Step::Close(change.path)),
                Some(_) | None => {}
            }
        }
        for (path, read) in look.read {
            let is_planned = plan.steps.iter().any(|step| step.path() == path);
            match read.filter(|read| read.text().is_some()) {
                _ if is_planned => {}
                Some(read) if self.differs(&path, &read) => plan.steps.push(Step::Text(path, read)),
                Some(_) => plan.steps.push(Step::Touch(path)),
                None if self.open.contains_key(&path) => plan.steps.push(Step::Close(path)),
                None => {}
            }
        }
        if plan.steps.len() > MAX_OPEN {
            return SyncDecision::Restart("many files have changed");
        }
        self.close_unused(&mut plan);
        SyncDecision::Proceed(plan)
    }

    /// Returns whether the server would have to be sent the text of a file.
    fn differs(&self, path: &Path, read: &ReadFile) -> bool {
        self.open.get(path).is_none_or(|open| !open.is(read))
    }

    /// Adds the closing of documents that were used least recently.
    fn close_unused(&self, plan: &mut SyncPlan) {
        let planned: BTreeSet<PathBuf> =
            plan.steps.iter().map(|step| step.path().to_owned()).collect();
        let opened = planned.iter().filter(|path| !self.open.contains_key(*path)).count();
        let surplus = (self.open.len() + opened).saturating_sub(MAX_OPEN);
        let mut unused: Vec<_> =
            self.open.iter().filter(|(path, _)| !planned.contains(*path)).collect();
        unused.sort_by_key(|(_, document)| document.last_used);
        let closed = unused.into_iter().take(surplus).map(|(path, _)| Step::Close(path.clone()));
        plan.steps.extend(closed);
    }

    /// Sends the notifications of a plan, and returns the files that were opened, changed or deleted.
    pub(crate) fn apply(&mut self, plan: SyncPlan, batch: &mut Batch<'_>) -> Vec<PathBuf> {
        let now = Instant::now();
        if plan.len() > 0 {
            self.changed = now;
        }
        if !plan.events.is_empty() {
            self.is_changed = true;
            let params = json!({ "changes": plan.events });
            batch.notify("workspace/didChangeWatchedFiles", &params);
        }
        let mut changed = plan.deleted;
        for step in plan.steps {
            match step {
                Step::Text(path, read) => {
                    self.set_text(&path, read, now, batch);
                    changed.push(path);
                }
                Step::Close(path) => {
                    self.open.remove(&path);
                    let document = json!({ "textDocument": { "uri": self.uri(&path) } });
                    batch.notify("textDocument/didClose", &document);
                }
                Step::Touch(path) => {
                    self.clock += 1;
                    if let Some(open) = self.open.get_mut(&path) {
                        open.last_used = self.clock;
                    }
                }
            }
        }
        let known = Arc::make_mut(&mut self.known);
        for (path, now) in plan.known {
            match now {
                Some(now) => known.insert(path, now),
                None => known.remove(&path),
            };
        }
        self.cursor = plan.cursor;
        changed
    }

    /// Sends the text of an open document again under a new version, so that the server looks at it anew. Returns the
    /// version.
    pub(crate) fn send_again(&mut self, path: &Path, batch: &mut Batch<'_>) -> Option<i64> {
        let uri = self.uri(path);
        let open = self.open.get_mut(path)?;
        self.clock += 1;
        open.version = self.clock;
        open.sent = Instant::now();
        let range = replaced_range(self.definition, self.encoding, &open.text);
        batch.notify("textDocument/didChange", &changed_text(&uri, open, range));
        Some(open.version)
    }

    fn set_text(&mut self, path: &Path, read: ReadFile, now: Instant, batch: &mut Batch<'_>) {
        self.clock += 1;
        let (version, last_used) = (self.clock, self.clock);
        let hash = read.hash();
        let text = read.into_text().unwrap_or_default().into();
        let document = OpenDocument { version, hash, text, sent: now, last_used };
        let uri = self.uri(path);
        if let Some(before) = self.open.get(path) {
            let range = replaced_range(self.definition, self.encoding, &before.text);
            batch.notify("textDocument/didChange", &changed_text(&uri, &document, range));
        } else {
            let item = json!({
                "uri": uri,
                "languageId": language_id(path),
                "version": version,
                "text": document.text.as_ref(),
            });
            batch.notify("textDocument/didOpen", &json!({ "textDocument": item }));
        }
        self.open.insert(path.to_owned(), document);
    }
}

/// Returns the range of all of a text, for a server that replaces no text without it.
fn replaced_range(
    definition: &ServerDefinition,
    encoding: PositionEncoding,
    text: &str,
) -> Option<Range> {
    let index = || TextIndex::new(text, encoding, definition.line_breaks);
    let range = || Range { start: Position::default(), end: index().position(text.len()) };
    definition.changes.is_replaced_by_range.then(range)
}

fn changed_text(uri: &str, document: &OpenDocument, range: Option<Range>) -> Value {
    let text = document.text.as_ref();
    let change = match range {
        Some(range) => json!({ "range": range, "text": text }),
        None => json!({ "text": text }),
    };
    json!({
        "textDocument": { "uri": uri, "version": document.version },
        "contentChanges": [change],
        // An extension of clangd, which would take the same text for no change.
        "forceRebuild": true,
    })
}

impl OpenDocument {
    /// Tells whether a file has the text that the server has.
    fn is(&self, read: &ReadFile) -> bool {
        read.text().is_some_and(|text| text == self.text.as_ref())
    }
}

impl SyncPlan {
    /// Returns the number of notifications.
    pub(crate) fn len(&self) -> usize {
        let sent = |step: &&Step| !matches!(step, Step::Touch(_));
        usize::from(!self.events.is_empty()) + self.steps.iter().filter(sent).count()
    }
}

impl Step {
    fn path(&self) -> &Path {
        match self {
            Self::Text(path, _) | Self::Close(path) | Self::Touch(path) => path,
        }
    }
}
