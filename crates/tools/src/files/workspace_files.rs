//! Files of a workspace as one session may see and change them.
//!
//! All tools that write go through [`WorkspaceFiles`], which applies the same rules to each: a file must have
//! been read by the session and be unchanged since ([`crate::read_tracker`]), masks are never written back,
//! files that would run later outside the sandbox are refused before the write, the quota has room, and the
//! new version replaces the old one in one rename after an fsync.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{Code, Failure};
use carrel_edit::diff::{Diff, LineChange, Options};
use carrel_edit::{Content, Document};
use carrel_fsroot::{
    AtomicFile, Collision, Durability, Error, Metadata, OpenedFile, Problem, Root, WriteOptions,
};
use carrel_runner::{Runner, WriteGuard};
use carrel_workspace::Amount;
use schemars::JsonSchema;
use serde::Serialize;

use crate::named_workspace::NamedWorkspace;
use crate::read_tracker::{
    ContentHash, FileChange, FileKey, ReadExtent, ReadRecord, RequiredExtent,
};
use crate::response::ToolContent;
use crate::session::{Session, SessionLifetime};
use crate::snapshots::{CallChanges, Change};
use crate::text::line;
use crate::tool_context::ToolContext;
use crate::toolbox::Toolbox;

/// Bounds the memory of one call; larger files can be read in parts with a command.
pub(crate) const MAX_FILE_BYTES: u64 = 32 << 20;

/// The mode of new parent directories, before the umask.
const DIRECTORY_MODE: u32 = 0o777;

/// The end of a refusal in a session for one request.
const HASH_HINT: &str = " and pass its hash as expected_hash";

/// The block size of common file systems, for quota estimates.
const BLOCK_BYTES: u64 = 4096;

/// `NAME_MAX` of Linux.
const MAX_NAME_BYTES: usize = 255;

/// The files of a workspace, with the session, the secrets and the trust policy that apply to them.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceFiles {
    pub(crate) workspace: Arc<NamedWorkspace>,
    pub(crate) session: Arc<Session>,
    redactor: Arc<crate::redaction::Redactor>,
    runner: Runner,
    changes: Arc<CallChanges>,
}

#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metadata: Metadata,
    pub(crate) key: FileKey,
    /// Kept open, so that a replacement cannot reuse the inode number.
    _file: File,
}

/// The facts about a changed file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeFacts {
    /// The file, relative to the workspace.
    pub(crate) path: String,
    pub(crate) created: bool,
    pub(crate) bytes: usize,
    pub(crate) hash: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

impl ChangeFacts {
    pub(crate) fn new(
        path: String,
        created: bool,
        bytes: usize,
        hash: String,
        diff: &Diff,
    ) -> Self {
        Self { path, created, bytes, hash, added: diff.added, removed: diff.removed }
    }
}

impl WorkspaceFiles {
    pub(crate) fn of(context: &ToolContext) -> Self {
        let (workspace, session) = (Arc::clone(context.workspace()), Arc::clone(&context.session));
        let changes = Arc::clone(&context.changes);
        Self { changes, ..Self::new(&context.toolbox, workspace, session) }
    }

    /// Makes the files of a caller that is no tool, and whose changes are not undone.
    pub(crate) fn new(
        toolbox: &Toolbox,
        workspace: Arc<NamedWorkspace>,
        session: Arc<Session>,
    ) -> Self {
        let redactor = toolbox.redactor();
        let runner = toolbox.runner.clone();
        Self { workspace, session, redactor, runner, changes: Arc::default() }
    }

    pub(crate) fn root(&self) -> &Root {
        self.workspace.files()
    }

    /// Takes the write lock of the workspace, which other processes take too. It blocks, and must not be
    /// held across an await.
    pub(crate) fn writing(&self) -> Result<WriteGuard<'_>, Failure> {
        Ok(self.workspace.handle().lock_for_writing()?)
    }

    pub(crate) fn load(&self, path: &Path) -> Result<LoadedFile, Failure> {
        let OpenedFile { bytes, metadata, file } = self.root().read_opened(path, MAX_FILE_BYTES)?;
        Ok(LoadedFile { bytes, metadata, key: self.key(path)?, _file: file })
    }

    /// Returns the key of a file, which is the same for every path that leads to it.
    pub(crate) fn key(&self, path: &Path) -> Result<FileKey, Failure> {
        let found = match self.root().locate(path) {
            // A new file gets the key of its future path.
            Err(error) if error.is_not_found() => self.key_of_new(path)?,
            found => found?,
        };
        Ok(FileKey::new(self.workspace.name(), &found))
    }

    fn key_of_new(&self, path: &Path) -> Result<PathBuf, Error> {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = match self.root().locate(above.unwrap_or(Path::new("."))) {
            Err(error) if error.is_not_found() => return Ok(path.to_owned()),
            above => above?,
        };
        Ok(path.file_name().map_or(above.clone(), |name| above.join(name)))
    }

    pub(crate) fn record_read(&self, key: FileKey, hash: ContentHash, seen: &ReadExtent) {
        self.session.state().tracker.record_read(key, hash, seen);
    }

    /// Refuses to change a file that the session has not read, or that has changed since. `expected` is the
    /// hash that the caller named instead of reading it.
    pub(crate) fn check(
        &self,
        loaded: &LoadedFile,
        expected: Option<&str>,
        need: RequiredExtent,
        (doing, shown): (&str, &str),
    ) -> Result<(), Failure> {
        self.read_before(&loaded.key, expected, (doing, shown))?.check(loaded.hash(), need)
    }

    /// Returns the record of a file that the session has read or whose hash the caller named, and refuses
    /// another one.
    pub(crate) fn read_before<'a>(
        &self,
        key: &FileKey,
        expected: Option<&str>,
        (doing, shown): (&'a str, &'a str),
    ) -> Result<ReadRecord<'a>, Failure> {
        if let Some(hash) = expected {
            return Ok(ReadRecord::expected(hash, doing, shown));
        }
        let read = self.session.state().tracker.read_before(key, doing, shown);
        read.map_err(|failure| match self.session.lifetime() {
            SessionLifetime::Lasting => failure,
            // Reading it again would not help: the next request does not know of it.
            SessionLifetime::OneRequest => {
                Failure { message: failure.message + HASH_HINT, ..failure }
            }
        })
    }

    /// Refuses a hash that the caller named for a file that does not exist.
    pub(crate) fn check_not_expected(
        expected: Option<&str>,
        doing: &str,
        shown: &str,
    ) -> Result<(), Failure> {
        if expected.is_none() {
            return Ok(());
        }
        let message = format!(
            "refusing to {doing} {shown}: it no longer exists; leave out expected_hash to create it"
        );
        Err(Failure::new(Code::ChangedSinceRead, message).with("path", shown))
    }

    pub(crate) fn check_masks(&self, text: &str, shown: &str) -> Result<(), Failure> {
        self.redactor.check_write(text, shown)
    }

    /// Refuses a file that would run later outside the sandbox, before it is written.
    pub(crate) fn check_runs_later(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        self.check_runs_later_unread(path, Some(bytes))
    }

    /// Does the same for a file whose content may be unknown; then its path decides.
    pub(crate) fn check_runs_later_unread(
        &self,
        path: &Path,
        bytes: Option<&[u8]>,
    ) -> Result<(), Failure> {
        let forbidden = self.runner.denies_write(self.workspace.handle(), path, bytes);
        forbidden.map_or(Ok(()), |what| Err(runs_later(path, &what)))
    }

    /// Refuses a move after which a file would run later outside the sandbox.
    pub(crate) fn check_move(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        let forbidden = self.runner.denies_move(self.workspace.handle(), from, to)?;
        forbidden.map_or(Ok(()), |what| Err(runs_later(to, &what)))
    }

    /// Replaces a file, unless it has changed since it was loaded.
    pub(crate) fn replace(
        &self,
        path: &Path,
        loaded: &LoadedFile,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        self.check_room(bytes.len(), Some(&loaded.metadata))?;
        let file = self.stage(path, bytes)?;
        if !self.is_unchanged(path, &loaded.metadata)? {
            return Err(concurrent_change(path));
        }
        file.commit()?;
        self.note_replaced(&loaded.key, &loaded.metadata, || loaded.bytes.clone());
        Ok(())
    }

    /// Notes for undo that a file was replaced.
    pub(crate) fn note_replaced(
        &self,
        key: &FileKey,
        before: &Metadata,
        bytes: impl FnOnce() -> Vec<u8>,
    ) {
        let path = key.path.clone();
        let change = Change::Replaced { path, bytes: bytes(), mode: before.mode };
        self.changes.note(self.root(), change);
    }

    /// Notes for undo that a file was made.
    pub(crate) fn note_made(&self, path: &Path) {
        // A file that cannot be located is gone again.
        if let Ok(path) = self.root().locate(path) {
            self.changes.note(self.root(), Change::Made { path });
        }
    }

    /// Notes for undo that a file, link or directory was moved from a path of [`Self::place`].
    pub(crate) fn note_moved(&self, from: PathBuf, to: &Path) {
        let change = match self.place(to) {
            Ok(to) => Change::Moved { from, to },
            Err(_) => Change::Deleted { path: from },
        };
        self.changes.note(self.root(), change);
    }

    /// Notes for undo that a file, link or directory was deleted for good.
    pub(crate) fn note_deleted(&self, path: PathBuf) {
        self.changes.note(self.root(), Change::Deleted { path });
    }

    /// Returns whether a file is as the call left it.
    pub(crate) fn is_as_left(&self, key: &FileKey) -> bool {
        self.changes.is_as_left(self.root(), &key.path)
    }

    /// Notes for undo what a command of the call has made of a file.
    pub(crate) fn note_left(&self, key: &FileKey) {
        self.changes.look(self.root(), &key.path);
    }

    /// Returns the path of a name in the directory that holds it. A link at the end is not followed.
    pub(crate) fn place(&self, path: &Path) -> Result<PathBuf, Failure> {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = self.root().locate(above.unwrap_or(Path::new(".")))?;
        Ok(path.file_name().map_or(above.clone(), |name| above.join(name)))
    }

    /// Writes the new version to a temporary file and syncs it; it is not visible before the commit.
    pub(crate) fn stage(&self, path: &Path, bytes: &[u8]) -> Result<AtomicFile, Failure> {
        self.check_runs_later(path, bytes)?;
        let mut file = self.root().begin_write(path, options())?;
        file.append(bytes)?;
        file.sync_contents()?;
        Ok(file)
    }

    /// Compares inode and change time of a file with those at its reading.
    pub(crate) fn is_unchanged(&self, path: &Path, then: &Metadata) -> Result<bool, Failure> {
        let now = self.root().metadata(path)?;
        Ok((now.identity, now.changed) == (then.identity, then.changed))
    }

    pub(crate) fn create(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        self.check_runs_later(path, bytes)?;
        self.check_room(bytes.len(), None)?;
        self.create_parents(path)?;
        let options = WriteOptions { collision: Collision::Refuse, ..options() };
        self.root().write(path, bytes, options)?;
        self.note_made(path);
        Ok(())
    }

    /// Refuses a file that exceeds the quota. One that takes no more than the file it replaces is always
    /// allowed.
    pub(crate) fn check_room(
        &self,
        bytes: usize,
        replaced: Option<&Metadata>,
    ) -> Result<(), Failure> {
        Ok(self.workspace.handle().check_room(growth(bytes, replaced))?)
    }

    /// Creates the parent directories of a file, unless one of them is a sensitive path.
    pub(crate) fn create_visible_parents(&self, path: &Path) -> Result<(), Failure> {
        let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) else {
            return Ok(());
        };
        match self.root().browse().metadata(above) {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => self.create_parents(path),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn create_parents(&self, path: &Path) -> Result<(), Failure> {
        check_name(path)?;
        let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) else {
            return Ok(());
        };
        let is_missing =
            |path: &&Path| self.root().metadata(path).is_err_and(|error| error.is_not_found());
        let missing: Vec<_> = above.ancestors().take_while(is_missing).collect();
        self.root().create_directories(above, DIRECTORY_MODE)?;
        missing.iter().rev().for_each(|made| self.note_made(made));
        Ok(())
    }

    /// Records a file that the session wrote as read, and returns its short hash.
    pub(crate) fn record_write(&self, path: &Path, bytes: &[u8]) -> Result<String, Failure> {
        let key = self.key(path)?;
        let hash = ContentHash::of(bytes);
        self.session.state().note_change(&key);
        self.record_read(key, hash, &ReadExtent::Whole);
        Ok(hash.short())
    }

    /// Records a file that the session changed after its caller had named the hash, and returns the new hash
    /// shortened. The caller knows the old content and the change, so it knows the new content.
    pub(crate) fn record_expected(&self, key: &FileKey, hash: ContentHash) -> String {
        self.record_read(key.clone(), hash, &ReadExtent::Whole);
        hash.short()
    }

    /// Records the new hash of a file that a formatter changed, if the session knew the version before, and
    /// returns it shortened.
    pub(crate) fn record_reformat(
        &self,
        key: &FileKey,
        before: ContentHash,
        after: ContentHash,
    ) -> String {
        self.session.state().tracker.record_reformat(key, before, after);
        after.short()
    }

    /// Records a change by the session, with so many unchanged lines on each side as the reply shows, and
    /// returns the new hash shortened.
    pub(crate) fn record_change(
        &self,
        key: &FileKey,
        (before, after): (ContentHash, ContentHash),
        diff: &Diff,
        (lines, context): (usize, usize),
    ) -> String {
        let mut state = self.session.state();
        state.note_change(key);
        let tracker = &mut state.tracker;
        tracker.record_change(key, &FileChange { before, after, changes: &diff.changes, lines });
        for LineChange { new, .. } in &diff.changes {
            let first = (new.start + 1).saturating_sub(context).max(1);
            let last = (new.end + context).min(lines);
            if first <= last {
                tracker.record_read(key.clone(), after, &ReadExtent::Lines(first, last, lines));
            }
        }
        after.short()
    }
}

impl LoadedFile {
    pub(crate) fn hash(&self) -> ContentHash {
        ContentHash::of(&self.bytes)
    }

    pub(crate) fn document(&self, shown: &str) -> Result<Document, Failure> {
        check_is_text(&self.bytes, shown)?;
        Ok(Document::decode(self.bytes.clone()))
    }
}

/// Adds the hash of a file to the text of a reply if the next request has to name it. A client of MCP may hide
/// the facts from its model; a program that calls over REST has them, and a session that lasts has no need of
/// the hash.
pub(crate) fn show_hash(context: &ToolContext, blocks: &mut [ToolContent], hash: &str) {
    if context.session.lifetime() == SessionLifetime::OneRequest
        && !context.options.interface.wants_data()
        && let Some(ToolContent::Text(text)) = blocks.last_mut()
    {
        line(text, &format!("[hash {hash}]"));
    }
}

pub(crate) fn check_is_text(bytes: &[u8], shown: &str) -> Result<(), Failure> {
    match Content::of(bytes) {
        Content::Text => Ok(()),
        Content::Image(format) => Err(not_text(shown, format.mime_type())),
        Content::Binary => Err(not_text(shown, "binary")),
    }
}

fn runs_later(path: &Path, what: &str) -> Failure {
    let message = format!(
        "{} ({what}) would run later, outside the sandbox, so nothing was written. The operator can \
         write it, or allow it with `trust = \"report\"` in policy.toml",
        shown(path)
    );
    Failure::new(Code::RunsLater, message).with("path", shown(path)).with("what", what)
}

pub(crate) fn concurrent_change(path: &Path) -> Failure {
    let shown = shown(path);
    let message = format!("refusing to replace {shown}: it is being changed; Read it again");
    Failure::new(Code::ChangedSinceRead, message).with("path", shown)
}

/// Returns the additional space and files of a write.
pub(crate) fn growth(bytes: usize, replaced: Option<&Metadata>) -> Amount {
    let allocated = replaced.map_or(0, |metadata| metadata.allocated);
    Amount {
        bytes: (bytes as u64).next_multiple_of(BLOCK_BYTES).saturating_sub(allocated),
        files: u64::from(replaced.is_none()),
    }
}

fn options() -> WriteOptions {
    WriteOptions { durability: Durability::Synced, ..WriteOptions::default() }
}

fn not_text(shown: &str, kind: &str) -> Failure {
    let message = format!("{shown} is no text but {kind}");
    Failure::new(Code::BinaryFile, message).with("path", shown).with("kind", kind)
}

/// Returns a path for replies, relative to the workspace.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).to_string_lossy().into_owned()
}

/// Returns a path argument relative to the workspace; an empty one is refused.
pub(crate) fn required_path(
    files: &WorkspaceFiles,
    name: &str,
    given: &str,
) -> Result<PathBuf, Failure> {
    check_given(name, given)?;
    Ok(files.workspace.relative(given))
}

pub(crate) fn check_given(name: &str, given: &str) -> Result<(), Failure> {
    if given.is_empty() {
        return Err(Failure::argument(name, format!("{name} is required")));
    }
    Ok(())
}

/// Refuses a path without a valid file name, or below a directory without one, before parent directories are created.
pub(crate) fn check_name(path: &Path) -> Result<(), Failure> {
    let is_too_long = path.components().any(|one| one.as_os_str().len() > MAX_NAME_BYTES);
    let (code, reason) = match path.file_name() {
        None => (Code::InvalidPath, "it does not end in a name"),
        Some(_) if is_too_long => (Code::NameTooLong, "its name is too long"),
        Some(_) => return Ok(()),
    };
    // The message does not repeat a long path.
    let start: String = shown(path).chars().take(200).collect();
    Err(Failure::new(code, format!("cannot make {start}: {reason}")).with("path", start))
}

/// Tells whether a path does not exist; a directory is refused.
pub(crate) fn is_missing(files: &Root, path: &Path) -> Result<bool, Failure> {
    match files.metadata(path) {
        Ok(metadata) if metadata.kind == carrel_fsroot::FileKind::Directory => {
            let message = format!("path is a directory: {}", shown(path));
            Err(Failure::new(Code::IsADirectory, message).with("path", shown(path)))
        }
        Ok(_) => Ok(false),
        Err(error) if error.problem() == Problem::NotFound => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Returns the number of unchanged lines that the text of a diff certainly shows on each side of a change.
pub(crate) fn shown_context(diff: &Diff) -> usize {
    if diff.lines_left_out == 0 { Options::default().context } else { 0 }
}

/// Returns the diff of two versions, also as unified text.
pub(crate) fn diff_text(old: Option<&str>, new: &str, path: &str) -> (Diff, String) {
    let diff = Diff::between(old.unwrap_or_default(), new, Options::default());
    let text = diff.with_names(old.map(|_| path), Some(path));
    (diff, text)
}
