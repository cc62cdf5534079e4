//! Snapshots in the format that `git fast-import` reads.
//!
//! Each content is sent once, before the first commit that has it, and each commit lists its whole tree. Names are
//! quoted always, so that no byte of one is taken for anything else.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use carrel_domain::{Code, Failure};
use carrel_snapshot::{Node, ObjectId, Snapshot, StorageError, Store};

use super::git_names;

const AUTHOR: &str = "Carrel <carrel@localhost>";

/// The bit of a mode that git records.
const EXECUTABLE: u32 = 0o100;

/// The modes that git's own stand for, with the usual umasks.
const USUAL_FILE_MODES: [u32; 4] = [0o644, 0o664, 0o755, 0o775];
const USUAL_DIRECTORY_MODES: [u32; 2] = [0o755, 0o775];

/// Why a stream could not be written.
#[derive(Debug)]
pub(super) enum Error {
    /// A snapshot cannot be read.
    Store(StorageError),
    /// Git reads no further.
    Broken(io::Error),
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error.into(),
            Error::Broken(error) => Self::new(Code::Io, format!("git reads no further: {error}")),
        }
    }
}

pub(super) struct ImportStream<'a, W> {
    store: &'a Store,
    out: W,
    /// The marks of what was sent.
    marks: HashMap<ObjectId, u64>,
    last_mark: u64,
    left_out: BTreeMap<PathBuf, &'static str>,
}

/// An entry of a commit.
struct Entry {
    path: PathBuf,
    content: Content,
}

enum Content {
    File { mark: u64, is_executable: bool },
    Link(PathBuf),
}

impl<'a, W: Write> ImportStream<'a, W> {
    pub(super) fn new(store: &'a Store, out: W) -> Self {
        Self { store, out, marks: HashMap::new(), last_mark: 0, left_out: BTreeMap::new() }
    }

    /// Returns what git cannot have, with the reasons.
    pub(super) fn into_left_out(self) -> BTreeMap<PathBuf, &'static str> {
        self.left_out
    }

    /// Writes a branch with a commit for each snapshot, and asks for their ids.
    pub(super) fn write_all(
        &mut self,
        reference: &str,
        snapshots: &[Snapshot],
    ) -> Result<(), Error> {
        writeln!(self.out, "feature done")?;
        let mut parent = None;
        for snapshot in snapshots {
            let commit = self.write_snapshot(reference, snapshot, parent)?;
            writeln!(self.out, "get-mark :{commit}")?;
            parent = Some(commit);
        }
        writeln!(self.out, "done")?;
        Ok(self.out.flush()?)
    }

    fn write_snapshot(
        &mut self,
        reference: &str,
        snapshot: &Snapshot,
        parent: Option<u64>,
    ) -> Result<u64, Error> {
        let mut entries = Vec::new();
        self.collect(Path::new(""), snapshot.top, &mut entries)?;
        let mark = self.next_mark();
        let seconds = snapshot.created.as_millis().max(0) / 1000;
        writeln!(self.out, "commit {reference}\nmark :{mark}")?;
        writeln!(self.out, "committer {AUTHOR} {seconds} +0000")?;
        self.data(message(snapshot).as_bytes())?;
        match parent {
            Some(parent) => writeln!(self.out, "from :{parent}\ndeleteall")?,
            // Nothing of a branch that is there already.
            None => writeln!(self.out, "deleteall")?,
        }
        for Entry { path, content } in entries {
            match content {
                Content::File { mark, is_executable } => {
                    let mode = if is_executable { "100755" } else { "100644" };
                    write!(self.out, "M {mode} :{mark} ")?;
                    self.path(&path)?;
                }
                Content::Link(target) => {
                    write!(self.out, "M 120000 inline ")?;
                    self.path(&path)?;
                    self.data(target.as_os_str().as_bytes())?;
                }
            }
        }
        writeln!(self.out)?;
        Ok(mark)
    }

    /// Sends the content of a directory, and collects its entries. Returns whether git has any of it.
    fn collect(
        &mut self,
        directory: &Path,
        list: ObjectId,
        entries: &mut Vec<Entry>,
    ) -> Result<bool, Error> {
        let before = entries.len();
        for entry in self.store.entries(list)? {
            let path = directory.join(&entry.name);
            if git_names::is_refused(&entry.name) && !matches!(entry.node, Node::LeftOut(_)) {
                self.left_out.insert(path, "name");
                continue;
            }
            match entry.node {
                Node::File { mode, id, .. } => {
                    if !USUAL_FILE_MODES.contains(&mode) {
                        self.left_out.insert(path.clone(), "mode");
                    }
                    let (mark, is_executable) = (self.blob(id)?, mode & EXECUTABLE != 0);
                    entries.push(Entry { path, content: Content::File { mark, is_executable } });
                }
                Node::Link { .. } if git_names::is_refused_link(&entry.name) => {
                    self.left_out.insert(path, "name");
                }
                Node::Link { target } => {
                    entries.push(Entry { path, content: Content::Link(target) });
                }
                Node::Directory { mode, id } => {
                    if !self.collect(&path, id, entries)? {
                        // One with nothing but such ones is named for all of them.
                        self.left_out.retain(|other, reason| {
                            *reason != "empty_directory" || !other.starts_with(&path)
                        });
                        self.left_out.insert(path, "empty_directory");
                    } else if !USUAL_DIRECTORY_MODES.contains(&mode) {
                        self.left_out.insert(path, "mode");
                    }
                }
                Node::LeftOut(omission) => drop(self.left_out.insert(path, omission.as_str())),
            }
        }
        Ok(entries.len() > before)
    }

    /// Returns the mark of a content, which is sent if it was not.
    fn blob(&mut self, id: ObjectId) -> Result<u64, Error> {
        if let Some(mark) = self.marks.get(&id) {
            return Ok(*mark);
        }
        let content = self.store.content(id)?;
        let mark = self.next_mark();
        writeln!(self.out, "blob\nmark :{mark}")?;
        self.data(&content)?;
        self.marks.insert(id, mark);
        Ok(mark)
    }

    fn next_mark(&mut self) -> u64 {
        self.last_mark += 1;
        self.last_mark
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        writeln!(self.out, "data {}", bytes.len())?;
        self.out.write_all(bytes)?;
        Ok(writeln!(self.out)?)
    }

    /// Writes a path in quotes, and ends the line.
    fn path(&mut self, path: &Path) -> Result<(), Error> {
        self.out.write_all(b"\"")?;
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'"' | b'\\' => self.out.write_all(&[b'\\', *byte])?,
                b' '..=b'~' => self.out.write_all(&[*byte])?,
                other => write!(self.out, "\\{other:03o}")?,
            }
        }
        Ok(self.out.write_all(b"\"\n")?)
    }
}

fn message(snapshot: &Snapshot) -> String {
    let name = match &snapshot.name {
        Some(name) => name.to_string(),
        None => snapshot.id.to_string(),
    };
    // Git takes a message up to its first NUL.
    let description = snapshot.description.replace('\0', "");
    match description.trim() {
        "" => format!("{name}\n"),
        description => format!("{name}\n\n{description}\n"),
    }
}
