//! What reading and writing files have in common.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::Code;
use carrel_edit::diff::{Diff, Options};
use carrel_edit::{Content, Document};
use carrel_fsroot::{
    AtomicFile, Durability, Error, Metadata, OpenedFile, Problem, Root, WriteOptions,
};
use carrel_runner::{Runner, WriteGuard};
use carrel_workspace::Amount;
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::Failure;
use crate::named_workspace::NamedWorkspace;
use crate::read_tracker::{ContentHash, FileKey, Need, ReadBefore, Seen};
use crate::session::Session;
use crate::tool_context::ToolContext;
use crate::toolbox::Toolbox;

/// A larger file is read in parts by a command, not as one text in memory.
pub(crate) const MAX_FILE_BYTES: u64 = 32 << 20;

/// The mode of directories on the way to a new file, before the umask.
const DIRECTORY_MODE: u32 = 0o777;

/// What file systems give out at once.
const BLOCK_BYTES: u64 = 4096;

/// The longest name that file systems take.
const MAX_NAME_BYTES: usize = 255;

/// The files of a call: its workspace, what the session has read, and what is masked.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceFiles {
    pub(crate) workspace: Arc<NamedWorkspace>,
    pub(crate) session: Arc<Session>,
    redactor: Arc<crate::redaction::Redactor>,
    runner: Runner,
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metadata: Metadata,
    pub(crate) hash: ContentHash,
    pub(crate) key: FileKey,
    /// OpenedFile, so that no file that takes its place can have its identity.
    _file: File,
}

/// A file that was read and is not yet told apart from others by its contents.
#[derive(Debug)]
pub(crate) struct Unhashed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metadata: Metadata,
    pub(crate) key: FileKey,
    file: File,
}

/// The facts about a file that was changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeFacts {
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// It was not there before.
    pub(crate) created: bool,
    /// How large it is.
    pub(crate) bytes: usize,
    /// Stands for its contents: it changes when they do.
    pub(crate) hash: String,
    /// Lines that are new.
    pub(crate) added: usize,
    /// Lines that are gone.
    pub(crate) removed: usize,
}

impl WorkspaceFiles {
    pub(crate) fn of(context: &ToolContext) -> Self {
        Self::new(&context.toolbox, Arc::clone(context.workspace()), Arc::clone(&context.session))
    }

    pub(crate) fn new(
        toolbox: &Toolbox,
        workspace: Arc<NamedWorkspace>,
        session: Arc<Session>,
    ) -> Self {
        let (redactor, runner) = (toolbox.redactor(), toolbox.runner.clone());
        Self { workspace, session, redactor, runner }
    }

    pub(crate) fn root(&self) -> &Root {
        self.workspace.files()
    }

    /// Lets one call at a time write files.
    pub(crate) fn writing(&self) -> Result<WriteGuard<'_>, Failure> {
        self.workspace.writing()
    }

    /// Reads a whole file.
    pub(crate) fn load(&self, path: &Path) -> Result<Loaded, Failure> {
        let Unhashed { bytes, metadata, key, file } = self.open(path)?;
        Ok(Loaded { hash: ContentHash::of(&bytes), metadata, key, bytes, _file: file })
    }

    /// Reads a whole file, for those who look at its contents later.
    pub(crate) fn open(&self, path: &Path) -> Result<Unhashed, Failure> {
        let OpenedFile { bytes, metadata, file } = self.root().read_opened(path, MAX_FILE_BYTES)?;
        Ok(Unhashed { bytes, metadata, key: self.key(path)?, file })
    }

    /// Returns the one name of a file, whatever leads to it.
    pub(crate) fn key(&self, path: &Path) -> Result<FileKey, Failure> {
        let found = match self.root().locate(path) {
            // A new file has the name that it will get.
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

    /// Remembers that a file was shown.
    pub(crate) fn saw(&self, loaded: &Loaded, seen: &Seen) {
        self.session.state().tracker.saw(loaded.key.clone(), loaded.hash, seen);
    }

    /// Refuses to change a file that was not read, or has changed since.
    pub(crate) fn check(
        &self,
        loaded: &Loaded,
        need: Need,
        doing: &str,
        shown: &str,
    ) -> Result<(), Failure> {
        self.read_before(&loaded.key, doing, shown)?.must_be(loaded.hash, need)
    }

    /// Returns what the session has read of a file, and refuses to change one that it has not read.
    pub(crate) fn read_before<'a>(
        &self,
        key: &FileKey,
        doing: &'a str,
        shown: &'a str,
    ) -> Result<ReadBefore<'a>, Failure> {
        self.session.state().tracker.read_before(key, doing, shown)
    }

    /// Refuses text in which a secret was masked.
    pub(crate) fn check_masks(&self, text: &str, shown: &str) -> Result<(), Failure> {
        self.redactor.check_write(text, shown)
    }

    /// Refuses a file that would run later, outside the sandbox, before any of it is there.
    pub(crate) fn check_later(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        self.check_unread_later(path, Some(bytes))
    }

    /// Does the same where nobody may have looked at the contents.
    pub(crate) fn check_unread_later(
        &self,
        path: &Path,
        bytes: Option<&[u8]>,
    ) -> Result<(), Failure> {
        let forbidden = self.runner.denies_write(self.workspace.handle(), path, bytes);
        forbidden.map_or(Ok(()), |what| Err(runs_later(path, &what)))
    }

    /// Refuses to move something to where it would run later.
    pub(crate) fn check_move(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        let forbidden = self.runner.denies_move(self.workspace.handle(), from, to)?;
        forbidden.map_or(Ok(()), |what| Err(runs_later(to, &what)))
    }

    /// Replaces a file that was read, unless somebody else has changed it in this moment.
    pub(crate) fn replace(
        &self,
        path: &Path,
        loaded: &Loaded,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        self.check_room(bytes.len(), Some(&loaded.metadata))?;
        let file = self.stage(path, bytes)?;
        if !self.is_as_read(path, &loaded.metadata)? {
            return Err(changes_now(path));
        }
        Ok(file.commit()?)
    }

    /// Writes what is to replace a file beside it. That takes longest, and nobody can see it.
    pub(crate) fn stage(&self, path: &Path, bytes: &[u8]) -> Result<AtomicFile, Failure> {
        self.check_later(path, bytes)?;
        let mut file = self.root().begin_write(path, options())?;
        file.append(bytes)?;
        file.sync_contents()?;
        Ok(file)
    }

    /// Tells whether a file is still the one that was read.
    pub(crate) fn is_as_read(&self, path: &Path, then: &Metadata) -> Result<bool, Failure> {
        let now = self.root().metadata(path)?;
        Ok((now.identity, now.changed) == (then.identity, then.changed))
    }

    /// Makes a file, and the directories on the way to it.
    pub(crate) fn create(
        &self,
        path: &Path,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<(), Failure> {
        self.check_later(path, bytes)?;
        self.check_room(bytes.len(), None)?;
        self.make_room(path)?;
        let options = WriteOptions {
            collision: carrel_fsroot::Collision::Refuse,
            new_mode: mode,
            ..options()
        };
        Ok(self.root().write(path, bytes, options)?)
    }

    /// Refuses to write a file that the quota has no room for. One that takes no more than the file it
    /// replaces can always be written.
    pub(crate) fn check_room(
        &self,
        bytes: usize,
        replaced: Option<&Metadata>,
    ) -> Result<(), Failure> {
        Ok(self.workspace.handle().check_room(growth(bytes, replaced))?)
    }

    /// Makes the directories on the way to a file, none of which may hold credentials.
    pub(crate) fn make_way(&self, path: &Path) -> Result<(), Failure> {
        let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) else {
            return Ok(());
        };
        match self.root().browse().metadata(above) {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => self.make_room(path),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the directories on the way to a file.
    pub(crate) fn make_room(&self, path: &Path) -> Result<(), Failure> {
        check_name(path)?;
        match path.parent() {
            Some(above) if !above.as_os_str().is_empty() => {
                Ok(self.root().create_directories(above, DIRECTORY_MODE)?)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Remembers what the session itself wrote: it has seen that.
    pub(crate) fn wrote(&self, path: &Path, bytes: &[u8]) -> Result<String, Failure> {
        let (key, hash) = (self.key(path)?, ContentHash::of(bytes));
        self.session.state().tracker.saw(key, hash, &Seen::Whole);
        Ok(hash.short())
    }

    /// Remembers what the session itself changed: what it had seen of the rest, it still has.
    pub(crate) fn changed(&self, key: &FileKey, hash: ContentHash) -> String {
        self.session.state().tracker.changed(key, hash);
        hash.short()
    }
}

impl Loaded {
    /// Takes the file as text.
    pub(crate) fn document(&self, shown: &str) -> Result<Document, Failure> {
        must_be_text(&self.bytes, shown)?;
        Ok(Document::decode(self.bytes.clone()))
    }

    /// Takes the file as text where nobody needs the bytes any more: they go into the text.
    pub(crate) fn take_document(&mut self, shown: &str) -> Result<Document, Failure> {
        must_be_text(&self.bytes, shown)?;
        Ok(Document::decode(std::mem::take(&mut self.bytes)))
    }
}

/// Refuses bytes that are no text.
pub(crate) fn must_be_text(bytes: &[u8], shown: &str) -> Result<(), Failure> {
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

/// Says that somebody else writes the same file.
pub(crate) fn changes_now(path: &Path) -> Failure {
    let shown = shown(path);
    let message = format!("refusing to replace {shown}: it changes at this moment; Read it again");
    Failure::new(Code::ChangedSinceRead, message).with("path", shown)
}

/// Returns how much more of the disk a file takes up than the one it replaces.
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

/// Returns a path as agents see it: relative to the workspace, with forward slashes.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).to_string_lossy().into_owned()
}

/// Refuses a path that is not there to be used.
pub(crate) fn path_of(files: &WorkspaceFiles, name: &str, given: &str) -> Result<PathBuf, Failure> {
    if given.is_empty() {
        return Err(Failure::argument(name, format!("{name} is required")));
    }
    Ok(files.workspace.relative(given))
}

/// Refuses a path whose last name cannot be one, before anything is made on the way to it.
pub(crate) fn check_name(path: &Path) -> Result<(), Failure> {
    let (code, reason) = match path.file_name() {
        None => (Code::InvalidPath, "it does not end in a name"),
        Some(name) if name.len() > MAX_NAME_BYTES => (Code::NameTooLong, "its name is too long"),
        Some(_) => return Ok(()),
    };
    // A path that is too long is not repeated as a whole.
    let start: String = shown(path).chars().take(200).collect();
    Err(Failure::new(code, format!("cannot make {start}: {reason}")).with("path", start))
}

/// Tells whether nothing is at a path.
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

/// Compares two versions of a text, shortly.
pub(crate) fn compared(old: Option<&str>, new: &str, path: &str) -> (Diff, String) {
    let diff = Diff::between(old.unwrap_or_default(), new, Options::default());
    let text = diff.with_names(old.map(|_| path), Some(path));
    (diff, text)
}
