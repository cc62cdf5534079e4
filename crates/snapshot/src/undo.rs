//! Undo: what mutating calls changed, so that the last ones can be taken back.
//!
//! A call begins a checkpoint, gives it the paths that it is about to touch, and commits it when it succeeded. The
//! content before is appended to the segment with one write and is not synced: undo guards against mistakes, not
//! against power loss, and adds little to an edit. A checkpoint that is dropped leaves nothing.
//!
//! Taking back is all or nothing. Each file must still be what the call left: otherwise nothing is written, and the
//! answer lists the files with their reasons. It makes a checkpoint of its own, so it can be taken back too.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use carrel_domain::Timestamp;
use carrel_fsroot::{Durability, Error, FileKind, Problem};

use crate::bytes::{Reader, put_length, put_number, put_text};
use crate::change_key::ChangeKey;
use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::objects::Objects;
use crate::scan::read_if_unchanged;
use crate::store::{State, Store};
use crate::tree_writer::{Expected, Times, TreeWriter, open_strict, recorded_path};

/// The checkpoints of one owner that can be restored; older ones are garbage.
pub const MAX_CHECKPOINTS: usize = 50;

/// A larger file is not kept, since it is read into memory with every call.
const MAX_IMAGE_BYTES: u64 = 16 << 20;

/// Bounds the entries of a directory that is kept file by file.
const MAX_TREE_ENTRIES: usize = 2000;

/// Bounds their bytes.
const MAX_TREE_BYTES: u64 = 64 << 20;

/// The number of a checkpoint in its store, written `u12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(u64);

impl CheckpointId {
    /// Reads an id from its text, such as `u12`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('u')?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?.map(Self)
    }

    /// Returns the number, which grows by one with each checkpoint of a store.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("u{}", self.0))
    }
}

/// A committed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number.
    pub id: CheckpointId,
    /// The session or client whose call it was.
    pub owner: String,
    /// The name of the call.
    pub label: String,
    /// The time of the commit.
    pub created: Timestamp,
    /// The paths that were touched.
    pub paths: Vec<PathBuf>,
}

/// What came of taking a checkpoint back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The paths that were restored; empty if there are conflicts.
    pub restored: Vec<PathBuf>,
    /// The paths that could not be. Nothing was written then.
    pub conflicts: Vec<(PathBuf, Conflict)>,
    /// The checkpoint by which this can be taken back.
    pub checkpoint: Option<CheckpointId>,
}

/// The reason why a path cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It is not what the call left.
    Changed,
    /// What was there before was too large or could not be read, and is not kept.
    MissingBeforeSnapshot,
    /// What is or was there afterwards cannot be read, so it cannot be compared.
    Unverifiable,
}

impl Conflict {
    /// Returns the name used in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::MissingBeforeSnapshot => "missing_before_snapshot",
            Self::Unverifiable => "unverifiable",
        }
    }
}

/// Why a checkpoint could not be made or taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// A path is not one of the workspace.
    #[error("not a path of the workspace: {}; give it relative to the workspace, not below .git", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// There is no such checkpoint.
    #[error("checkpoint {asked} not found; the last {MAX_CHECKPOINTS} calls can be undone{}", newest.map(|newest| format!(", the newest is {newest}")).unwrap_or_default())]
    Unknown {
        /// The checkpoint that was asked for.
        asked: CheckpointId,
        /// The newest one of the owner.
        newest: Option<CheckpointId>,
    },
    /// The checkpoint does not have a path.
    #[error("checkpoint {id} did not touch {}; list it for its paths", path.display())]
    UnknownPath {
        /// The checkpoint.
        id: CheckpointId,
        /// The path.
        path: PathBuf,
    },
    /// An entry could not be written. Those before it are restored.
    #[error("could not restore {}", path.display())]
    Write {
        /// The entry.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Error,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What is under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Image {
    Missing,
    File {
        mode: u32,
        id: ObjectId,
    },
    Directory {
        mode: u32,
    },
    Link {
        target: PathBuf,
    },
    /// A move of the call put it there, and takes it back.
    MovedTo(PathBuf),
    /// It is too large, special or unreadable.
    Unknown,
}

/// What a call did to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Touched {
    path: PathBuf,
    before: Image,
    after: Image,
}

/// A checkpoint that is being made.
#[derive(Debug)]
pub struct PendingCheckpoint<'a> {
    store: &'a Store,
    owner: String,
    label: String,
    before: BTreeMap<PathBuf, (Image, Vec<u8>)>,
}

impl Store {
    /// Begins a checkpoint of a call. The owner is the session or client that may take it back.
    pub fn begin_checkpoint(
        &self,
        owner: impl Into<String>,
        label: impl Into<String>,
    ) -> PendingCheckpoint<'_> {
        let (owner, label) = (owner.into(), label.into());
        PendingCheckpoint { store: self, owner, label, before: BTreeMap::new() }
    }

    /// Returns the checkpoints of an owner that can be restored, the newest first.
    pub fn checkpoints(&self, owner: &str) -> Result<Vec<Checkpoint>, StorageError> {
        self.locked(|state| {
            let records = records_of(state, |record| record.owner == owner)?;
            Ok(records.into_iter().take(MAX_CHECKPOINTS).map(Record::summary).collect())
        })
    }

    /// Takes a checkpoint back: whole, or these paths of it.
    pub fn undo(
        &self,
        owner: &str,
        id: CheckpointId,
        paths: &[PathBuf],
    ) -> Result<Undone, UndoError> {
        self.locked(|state| {
            let mut records = records_of(state, |record| record.owner == owner)?;
            records.truncate(MAX_CHECKPOINTS);
            let newest = records.first().map(|record| record.id);
            let record = records.into_iter().find(|record| record.id == id);
            let mut record = record.ok_or(UndoError::Unknown { asked: id, newest })?;
            record.select(paths)?;
            self.take_back(state, &record)
        })
    }

    fn take_back(&self, state: &mut State, record: &Record) -> Result<Undone, UndoError> {
        let mut conflicts = Vec::new();
        let mut wanted = Vec::new();
        let mut opposite = PendingCheckpoint {
            store: self,
            owner: record.owner.clone(),
            label: format!("undo {}", record.id),
            before: BTreeMap::new(),
        };
        for touched in &record.touched {
            let is_vacated = record.vacates(&touched.path);
            match self.verify(touched, is_vacated, &mut state.objects)? {
                Verdict::Restore(content) => {
                    match &touched.before {
                        Image::MovedTo(to) => opposite.moved(to, &touched.path)?,
                        _ => opposite.add(&touched.path),
                    }
                    wanted.push((touched, content));
                }
                Verdict::IsDone => {}
                Verdict::Conflict(conflict) => conflicts.push((touched.path.clone(), conflict)),
            }
        }
        if !conflicts.is_empty() {
            return Ok(Undone { restored: Vec::new(), conflicts, checkpoint: None });
        }
        let mut writer = TreeWriter::new(&self.workspace, Durability::Buffered, Times::Now);
        // What goes, the deepest first, makes room for what comes, the highest first.
        let goes = wanted.iter().rev().map(|(touched, _)| (*touched, remove(&mut writer, touched)));
        for (touched, removed) in goes.collect::<Vec<_>>() {
            removed.map_err(|source| UndoError::Write { path: touched.path.clone(), source })?;
        }
        // What lies in the place of another one goes back first.
        let targets: Vec<_> = wanted.iter().filter_map(|(touched, _)| touched.moved_to()).collect();
        let (second, first): (Vec<_>, Vec<_>) =
            wanted.iter().partition(|(touched, _)| targets.contains(&&*touched.path));
        for (touched, content) in first.into_iter().chain(second) {
            put(&mut writer, touched, content)
                .map_err(|source| UndoError::Write { path: touched.path.clone(), source })?;
        }
        let finished = writer.finish();
        finished.map_err(|source| UndoError::Write { path: PathBuf::from("."), source })?;
        let restored = wanted.iter().map(|(touched, _)| touched.path.clone()).collect();
        let checkpoint = opposite.commit_in(state)?;
        Ok(Undone { restored, conflicts, checkpoint })
    }

    /// Decides whether a path can be restored, and returns the content that it gets.
    /// `is_vacated` says that another path of the checkpoint is moved away from this one.
    fn verify(
        &self,
        touched: &Touched,
        is_vacated: bool,
        objects: &mut Objects,
    ) -> Result<Verdict, StorageError> {
        let (present, _) = self.image(&touched.path);
        let content = match &touched.before {
            Image::Unknown => return Ok(Verdict::Conflict(Conflict::MissingBeforeSnapshot)),
            Image::File { id, .. } => match objects.get(*id) {
                Ok(content) => content,
                // A power loss took it, since nothing of undo is synced.
                Err(StorageError::Damaged { .. }) => {
                    return Ok(Verdict::Conflict(Conflict::MissingBeforeSnapshot));
                }
                Err(error) => return Err(error),
            },
            Image::MovedTo(to) => {
                let is_there = !matches!(self.image(to).0, Image::Missing);
                let is_free = present == Image::Missing || is_vacated;
                return Ok(match (is_free, is_there) {
                    (true, true) => Verdict::Restore(Vec::new()),
                    (false, false) => Verdict::IsDone,
                    _ => Verdict::Conflict(Conflict::Changed),
                });
            }
            Image::Missing | Image::Directory { .. } | Image::Link { .. } => Vec::new(),
        };
        Ok(if present == Image::Unknown || touched.after == Image::Unknown {
            Verdict::Conflict(Conflict::Unverifiable)
        } else if present == touched.before {
            Verdict::IsDone
        } else if present == touched.after {
            Verdict::Restore(content)
        } else {
            Verdict::Conflict(Conflict::Changed)
        })
    }

    /// Returns what is under a path, with the content of a file.
    fn image(&self, path: &Path) -> (Image, Vec<u8>) {
        let parent = path.parent().unwrap_or(Path::new(""));
        let found = open_strict(&self.workspace, parent).and_then(|parent| {
            let name = Path::new(path.file_name().unwrap_or_default());
            let metadata = parent.link_metadata(name)?;
            Ok(match metadata.kind {
                FileKind::Directory => {
                    (Image::Directory { mode: metadata.mode & 0o3777 }, Vec::new())
                }
                FileKind::Link => (Image::Link { target: parent.read_link(name)? }, Vec::new()),
                FileKind::File if metadata.size <= MAX_IMAGE_BYTES => {
                    let file = parent.open_entry_file(name)?;
                    let key = ChangeKey::of(&metadata);
                    match read_if_unchanged(&file, &key) {
                        Ok(Some(content)) => {
                            let id = ObjectId::of(&content);
                            (Image::File { mode: metadata.mode & 0o777, id }, content)
                        }
                        Ok(None) | Err(_) => (Image::Unknown, Vec::new()),
                    }
                }
                FileKind::File
                | FileKind::Fifo
                | FileKind::Socket
                | FileKind::Device
                | FileKind::Unknown => (Image::Unknown, Vec::new()),
            })
        });
        match found {
            Ok(found) => found,
            Err(error) => match error.problem() {
                Problem::NotFound | Problem::NotADirectory => (Image::Missing, Vec::new()),
                _ => (Image::Unknown, Vec::new()),
            },
        }
    }
}

/// What becomes of a path.
enum Verdict {
    Restore(Vec<u8>),
    IsDone,
    Conflict(Conflict),
}

fn remove(writer: &mut TreeWriter<'_>, touched: &Touched) -> Result<(), Error> {
    let is_replaced = matches!(
        (&touched.before, &touched.after),
        (Image::File { .. } | Image::Link { .. }, Image::File { .. } | Image::Link { .. })
            | (Image::Directory { .. }, Image::Directory { .. })
            | (Image::MovedTo(_) | Image::Unknown, _)
    );
    if is_replaced || touched.after == Image::Missing {
        return Ok(());
    }
    let is_directory = matches!(touched.after, Image::Directory { .. });
    // A directory in which something else was made stays.
    writer.remove(&touched.path, is_directory).map(drop)
}

fn put(writer: &mut TreeWriter<'_>, touched: &Touched, content: &[u8]) -> Result<(), Error> {
    let path = &touched.path;
    match &touched.before {
        Image::Missing | Image::Unknown => Ok(()),
        Image::File { mode, .. } => {
            writer.put_file(path, (*mode, None), content, Expected::Anything)
        }
        Image::Directory { mode } => writer.put_directory(path, *mode),
        Image::Link { target } => writer.put_link(path, target),
        Image::MovedTo(to) => writer.rename(to, path),
    }
}

impl PendingCheckpoint<'_> {
    /// Keeps what is under a path before the call touches it: a file, a link, nothing, or a directory with
    /// everything in it. The first image of a path counts.
    pub fn before_image(&mut self, path: &Path) -> Result<(), UndoError> {
        let path = recorded(path)?;
        self.add(&path);
        if matches!(self.before.get(&path), Some((Image::Directory { .. }, _))) {
            self.add_below(&path);
        }
        Ok(())
    }

    /// Gives the content and mode that a file had, for a call that knows them when it has written.
    pub fn was_file(&mut self, path: &Path, mode: u32, content: Vec<u8>) -> Result<(), UndoError> {
        let path = recorded(path)?;
        let image = if content.len() as u64 > MAX_IMAGE_BYTES {
            (Image::Unknown, Vec::new())
        } else {
            (Image::File { mode: mode & 0o777, id: ObjectId::of(&content) }, content)
        };
        self.before.entry(path).or_insert(image);
        Ok(())
    }

    /// Notes that nothing was under a path.
    pub fn was_missing(&mut self, path: &Path) -> Result<(), UndoError> {
        self.before.entry(recorded(path)?).or_insert((Image::Missing, Vec::new()));
        Ok(())
    }

    /// Notes that what was under a path is lost, so that it cannot be restored.
    pub fn was_lost(&mut self, path: &Path) -> Result<(), UndoError> {
        self.before.entry(recorded(path)?).or_insert((Image::Unknown, Vec::new()));
        Ok(())
    }

    /// Notes that the call is about to move an entry with everything in it, which needs no content.
    pub fn moved(&mut self, from: &Path, to: &Path) -> Result<(), UndoError> {
        let (from, to) = (recorded(from)?, recorded(to)?);
        match self.before.entry(from) {
            Entry::Vacant(vacant) => drop(vacant.insert((Image::MovedTo(to), Vec::new()))),
            // The call has changed it before, so moving it back would not be enough.
            Entry::Occupied(_) => self.add(&to),
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) {
        if !self.before.contains_key(path) {
            self.before.insert(path.to_owned(), self.store.image(path));
        }
    }

    /// Adds the entries of a directory. If they are too many the directory counts as not kept.
    fn add_below(&mut self, top: &Path) {
        let mut pending = vec![top.to_owned()];
        let (mut entries, mut bytes) = (0, 0);
        while let Some(directory) = pending.pop() {
            let listed = open_strict(&self.store.workspace, &directory).and_then(|opened| {
                opened.list_at_most(Path::new("."), MAX_TREE_ENTRIES.saturating_sub(entries))
            });
            let Ok(Some(listed)) = listed else { return self.give_up(top) };
            for entry in listed {
                let path = directory.join(&entry.name);
                if entry.kind == FileKind::Directory {
                    pending.push(path.clone());
                }
                self.add(&path);
                entries += 1;
                bytes += self.before.get(&path).map_or(0, |(_, content)| content.len() as u64);
                if bytes > MAX_TREE_BYTES {
                    return self.give_up(top);
                }
            }
        }
    }

    fn give_up(&mut self, top: &Path) {
        self.before.retain(|path, _| !path.starts_with(top));
        self.before.insert(top.to_owned(), (Image::Unknown, Vec::new()));
    }

    /// Ends the checkpoint after the call succeeded, formatters included. `None` if nothing was changed.
    pub fn commit(self) -> Result<Option<CheckpointId>, UndoError> {
        let store = self.store;
        store.locked(|state| Ok(self.commit_in(state)?))
    }

    fn commit_in(self, state: &mut State) -> Result<Option<CheckpointId>, StorageError> {
        let mut touched = Vec::new();
        for (path, (before, content)) in self.before {
            let (after, _) = self.store.image(&path);
            if before == after && before != Image::Unknown {
                continue;
            }
            if let Image::File { id, .. } = &before {
                state.objects.put_as(*id, &content)?;
            }
            touched.push(Touched { path, before, after });
        }
        if touched.is_empty() {
            return Ok(None);
        }
        let newest = state.objects.checkpoints().last_key_value().map_or(0, |(number, _)| *number);
        let record = Record {
            id: CheckpointId(newest + 1),
            owner: self.owner,
            label: self.label,
            created: self.store.clock.now(),
            touched,
        };
        state.objects.put_checkpoint(record.id.0, &record.to_bytes())?;
        state.objects.flush()?;
        Ok(Some(record.id))
    }
}

fn recorded(path: &Path) -> Result<PathBuf, UndoError> {
    let recorded = recorded_path(path).filter(|path| !path.as_os_str().is_empty());
    recorded.ok_or_else(|| UndoError::Path { path: path.to_owned() })
}

/// A checkpoint with everything that it has.
#[derive(Debug, PartialEq)]
struct Record {
    id: CheckpointId,
    owner: String,
    label: String,
    created: Timestamp,
    touched: Vec<Touched>,
}

/// Returns the records of checkpoints that a filter takes, the newest first. Damaged ones are left out.
fn records_of(
    state: &mut State,
    takes: impl Fn(&Record) -> bool,
) -> Result<Vec<Record>, StorageError> {
    let ids: Vec<_> = state.objects.checkpoints().values().rev().copied().collect();
    let mut records = Vec::new();
    for id in ids {
        match state.objects.get(id) {
            Ok(content) => records.extend(Record::of_bytes(&content).filter(&takes)),
            Err(StorageError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(records)
}

/// Returns the content that the checkpoints of all owners need, and their own records.
pub(crate) fn live(state: &mut State) -> Result<Vec<ObjectId>, StorageError> {
    let mut kept: BTreeMap<String, usize> = BTreeMap::new();
    let mut live = Vec::new();
    let ids: Vec<_> = state.objects.checkpoints().values().rev().copied().collect();
    for id in ids {
        let record = match state.objects.get(id) {
            Ok(content) => Record::of_bytes(&content),
            Err(StorageError::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        let Some(record) = record else { continue };
        let count = kept.entry(record.owner).or_default();
        *count += 1;
        if *count > MAX_CHECKPOINTS {
            continue;
        }
        live.push(id);
        live.extend(record.touched.iter().filter_map(|touched| match &touched.before {
            Image::File { id, .. } if state.objects.contains(id) => Some(*id),
            _ => None,
        }));
    }
    Ok(live)
}

impl Touched {
    /// Returns where the call moved it.
    fn moved_to(&self) -> Option<&Path> {
        match &self.before {
            Image::MovedTo(to) => Some(to),
            Image::Missing
            | Image::File { .. }
            | Image::Directory { .. }
            | Image::Link { .. }
            | Image::Unknown => None,
        }
    }
}

impl Record {
    /// Returns whether taking it back moves away what lies under a path.
    fn vacates(&self, path: &Path) -> bool {
        self.touched.iter().any(|touched| touched.moved_to() == Some(path))
    }

    fn summary(self) -> Checkpoint {
        Checkpoint {
            id: self.id,
            owner: self.owner,
            label: self.label,
            created: self.created,
            paths: self.touched.into_iter().map(|touched| touched.path).collect(),
        }
    }

    /// Keeps what is at or below these paths; everything if there are none.
    fn select(&mut self, paths: &[PathBuf]) -> Result<(), UndoError> {
        let id = self.id;
        let wanted = paths.iter().map(|path| recorded(path)).collect::<Result<Vec<_>, _>>()?;
        let is_below = |touched: &Touched, path: &PathBuf| touched.path.starts_with(path);
        let unknown =
            wanted.iter().find(|path| !self.touched.iter().any(|touched| is_below(touched, path)));
        if let Some(path) = unknown {
            return Err(UndoError::UnknownPath { id, path: path.clone() });
        }
        if !wanted.is_empty() {
            self.touched.retain(|touched| wanted.iter().any(|path| is_below(touched, path)));
        }
        Ok(())
    }

    /// The bytes begin with the number, which the index of the store reads.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_number(&mut bytes, self.id.0);
        put_text(&mut bytes, self.owner.as_bytes());
        put_text(&mut bytes, self.label.as_bytes());
        put_number(&mut bytes, u64::try_from(self.created.as_millis()).unwrap_or(0));
        put_length(&mut bytes, self.touched.len());
        for touched in &self.touched {
            put_text(&mut bytes, touched.path.as_os_str().as_bytes());
            touched.before.put(&mut bytes);
            touched.after.put(&mut bytes);
        }
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let id = CheckpointId(reader.number()?);
        let (owner, label) = (reader.string()?, reader.string()?);
        let created = Timestamp::from_millis(i64::try_from(reader.number()?).ok()?);
        let touched = (0..reader.count()?)
            .map(|_| {
                let path = path(&mut reader)?;
                Some(Touched {
                    path,
                    before: Image::read(&mut reader)?,
                    after: Image::read(&mut reader)?,
                })
            })
            .collect::<Option<_>>()?;
        reader.is_empty().then_some(Self { id, owner, label, created, touched })
    }
}

fn path(reader: &mut Reader<'_>) -> Option<PathBuf> {
    let path = PathBuf::from(reader.os_text()?);
    recorded(&path).ok().filter(|recorded| *recorded == path)
}

impl Image {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Missing => bytes.push(0),
            Self::File { mode, id } => {
                bytes.push(1);
                put_number(bytes, u64::from(*mode));
                bytes.extend_from_slice(id.as_bytes());
            }
            Self::Directory { mode } => {
                bytes.push(2);
                put_number(bytes, u64::from(*mode));
            }
            Self::Link { target } => {
                bytes.push(3);
                put_text(bytes, target.as_os_str().as_bytes());
            }
            Self::MovedTo(to) => {
                bytes.push(4);
                put_text(bytes, to.as_os_str().as_bytes());
            }
            Self::Unknown => bytes.push(5),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.byte()? {
            0 => Self::Missing,
            1 => Self::File { mode: reader.small()?, id: reader.id()? },
            2 => Self::Directory { mode: reader.small()? },
            3 => Self::Link { target: OsString::from_vec(reader.text()?.to_vec()).into() },
            4 => Self::MovedTo(path(reader)?),
            5 => Self::Unknown,
            _ => return None,
        })
    }
}
