//! Undo: what mutating calls changed, so that the last ones can be taken back.
//!
//! A call begins a checkpoint, gives it the paths that it is about to touch, and commits it when it succeeded. The
//! content before is appended to the segment with one write and is not synced: undo guards against mistakes, not
//! against power loss, and adds little to an edit. A checkpoint that is dropped leaves nothing.
//!
//! A call that is under way keeps other calls from writing the same files, but not after its last write: so a caller
//! gives what the call left as it saw it then, and an edit that comes in between is not taken for its own.
//!
//! Taking back is all or nothing. Each file must still be what the call left: otherwise nothing is written, and the
//! answer lists the files with their reasons. It makes a checkpoint of its own, so it can be taken back too.

use std::fmt;
use std::path::PathBuf;

use carrel_domain::Timestamp;
use carrel_domain::encoding::put_number;
use carrel_fsroot::{Durability, Error};
use tracing::{info, warn};

use crate::disk;
use crate::error::StorageError;
use crate::journal::{put_granted, read_granted};
use crate::objects::Objects;
use crate::pending_checkpoint::PendingCheckpoint;
use crate::sealed;
use crate::store::{State, Store};
use crate::tree_writer::{Expected, Times, TreeWriter};
use crate::undo_record::{Image, Record, Touched, image, kept, kept_of};

/// The file that says which checkpoint is being taken back.
pub(crate) const JOURNAL: &str = "undo.journal";

/// The journal of undo begins with the process.
const NO_MAGIC: &[u8] = b"";

/// The checkpoints of one owner that can be restored; older ones are garbage.
pub const MAX_CHECKPOINTS: usize = 50;

/// The number of a checkpoint in its store, written `u12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(u64);

impl CheckpointId {
    /// Reads an id from its text, such as `u12`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('u')?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?.map(Self)
    }

    pub(crate) fn of(number: u64) -> Self {
        Self(number)
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
    /// An entry could not be written. Those before it are as they were.
    #[error("could not restore {}; nothing was taken back", path.display())]
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

impl Store {
    /// Begins a checkpoint of a call. The owner is the session or client that may take it back.
    pub fn begin_checkpoint(
        &self,
        owner: impl Into<String>,
        label: impl Into<String>,
    ) -> PendingCheckpoint<'_> {
        let (owner, label) = (owner.into(), label.into());
        PendingCheckpoint::new(self, owner, label)
    }

    /// Returns the checkpoints of an owner that can be restored, the newest first.
    pub fn checkpoints(&self, owner: &str) -> Result<Vec<Checkpoint>, StorageError> {
        self.locked(|state| {
            let records = kept_of(state, self.clock.now(), owner, None)?;
            Ok(records.into_iter().map(Record::summary).collect())
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
            let records = kept_of(state, self.clock.now(), owner, Some(id))?;
            let newest = records.first().map(|record| record.id);
            let record = records.into_iter().find(|record| record.id == id);
            let mut record = record.ok_or(UndoError::Unknown { asked: id, newest })?;
            record.select(paths)?;
            self.take_back(state, &record)
        })
    }

    /// The opposite checkpoint is committed before anything is written, and a journal says that it is being carried
    /// out: so a process that is killed leaves a state that the next use of the store finishes.
    fn take_back(&self, state: &mut State, record: &Record) -> Result<Undone, UndoError> {
        let (wanted, conflicts) = self.verify_all(state, record, Progress::None)?;
        if !conflicts.is_empty() || wanted.is_empty() {
            return Ok(Undone { restored: Vec::new(), conflicts, checkpoint: None });
        }
        let opposite = self.opposite(record, &wanted)?;
        let writer = TreeWriter::new(&self.workspace, Durability::Buffered, Times::Now);
        let journal = UndoJournal {
            process: std::process::id(),
            opposite: state.next_checkpoint(),
            granted: writer.restricted(wanted.iter().map(|one| &one.touched.path)),
            record: record.clone(),
        };
        disk::replace_cache(&*self.disk, JOURNAL, &journal.to_bytes())?;
        let Some(checkpoint) = opposite.commit_in(state)? else {
            self.disk.remove(JOURNAL)?;
            return Ok(Undone { restored: Vec::new(), conflicts, checkpoint: None });
        };
        if let Err((path, source)) = self.write_back(&wanted, &[]) {
            self.revert(state, checkpoint)?;
            self.disk.remove(JOURNAL)?;
            return Err(UndoError::Write { path, source });
        }
        self.end_journal(JOURNAL)?;
        let restored = wanted.iter().map(|one| one.touched.path.clone()).collect();
        Ok(Undone { restored, conflicts, checkpoint: Some(checkpoint) })
    }

    /// Returns what is to be written to take a record back, with its content, and what cannot be.
    fn verify_all<'r>(
        &self,
        state: &mut State,
        record: &'r Record,
        progress: Progress,
    ) -> Result<Verified<'r>, StorageError> {
        let (mut wanted, mut conflicts) = (Vec::new(), Vec::new());
        for touched in &record.touched {
            let is_vacated = record.vacates(&touched.path);
            match self.verify(touched, is_vacated, progress, &mut state.objects)? {
                Verdict::Restore(content, room) => wanted.push(Wanted { touched, content, room }),
                Verdict::IsDone => {}
                Verdict::Conflict(conflict) => conflicts.push((touched.path.clone(), conflict)),
            }
        }
        Ok((wanted, conflicts))
    }

    /// Makes the checkpoint that takes the taking back back, with what will be there.
    fn opposite(
        &self,
        record: &Record,
        wanted: &[Wanted<'_>],
    ) -> Result<PendingCheckpoint<'_>, UndoError> {
        let label = format!("undo {}", record.id);
        let mut opposite = PendingCheckpoint::new(self, record.owner.clone(), label);
        let moves = wanted.iter().filter_map(|one| Some((one.touched, one.touched.moved_to()?)));
        for (touched, to) in moves {
            opposite.expect(to.to_owned(), Image::Missing);
            opposite.expect(touched.path.clone(), image(&self.workspace, to).0);
        }
        for Wanted { touched, .. } in wanted {
            match &touched.before {
                Image::MovedTo(to) => opposite.moved(to, &touched.path)?,
                before => {
                    opposite.add(&touched.path);
                    opposite.expect(touched.path.clone(), before.clone());
                }
            }
        }
        Ok(opposite)
    }

    fn write_back(
        &self,
        wanted: &[Wanted<'_>],
        granted: &[(PathBuf, u32)],
    ) -> Result<(), (PathBuf, Error)> {
        let mut writer = TreeWriter::new(&self.workspace, Durability::Buffered, Times::Now);
        writer.take_back_access(granted);
        let failed = |touched: &Touched| {
            let path = touched.path.clone();
            move |source| (path, source)
        };
        // What goes, the deepest first, makes room for what comes, the highest first.
        for one in wanted.iter().rev().filter(|one| one.room == Room::Occupied) {
            remove(&mut writer, one.touched).map_err(failed(one.touched))?;
        }
        // What lies in the place of another one goes back first.
        let targets: Vec<_> = wanted.iter().filter_map(|one| one.touched.moved_to()).collect();
        let (second, first): (Vec<_>, Vec<_>) =
            wanted.iter().partition(|one| targets.contains(&&*one.touched.path));
        for Wanted { touched, content, .. } in first.into_iter().chain(second) {
            put(&mut writer, touched, content).map_err(failed(touched))?;
        }
        writer.finish().map_err(|source| (PathBuf::from("."), source))
    }

    /// Puts back what a taking back wrote before it failed, and cancels its checkpoint by another one.
    fn revert(&self, state: &mut State, opposite: CheckpointId) -> Result<(), StorageError> {
        let records = kept(state, self.clock.now())?;
        let Some(record) = records.into_iter().find(|record| record.id == opposite) else {
            return Ok(());
        };
        let (wanted, conflicts) = self.verify_all(state, &record, Progress::Some)?;
        if !conflicts.is_empty() {
            warn!(?conflicts, "a part of an undo that failed could not be put back");
        }
        if let Err((path, error)) = self.write_back(&wanted, &[]) {
            warn!(%error, ?path, "a part of an undo that failed could not be put back");
        }
        let swapped = |touched: Touched| Touched {
            before: touched.after,
            after: touched.before,
            path: touched.path,
        };
        let cancelling = Record {
            id: state.next_checkpoint(),
            label: format!("undo {opposite}"),
            touched: record.touched.into_iter().map(swapped).collect(),
            ..record
        };
        state.objects.put_checkpoint(cancelling.id.number(), &cancelling.to_bytes())?;
        state.objects.flush()
    }

    /// Finishes an undo that was interrupted.
    pub(crate) fn recover_undo(&self, state: &mut State) -> Result<(), StorageError> {
        let Some(bytes) = disk::read(&*self.disk, JOURNAL)? else { return Ok(()) };
        let journal = UndoJournal::of_bytes(&bytes);
        // Without the opposite checkpoint nothing was written.
        let begun = journal
            .filter(|journal| state.objects.checkpoints().contains_key(&journal.opposite.number()));
        if let Some(journal) = begun {
            let mut writer = TreeWriter::new(&self.workspace, Durability::Buffered, Times::Now);
            for touched in &journal.record.touched {
                if let Err(error) = writer.remove_leftovers(&touched.path, journal.process) {
                    warn!(%error, "could not remove what an interrupted undo was writing");
                }
            }
            let (wanted, conflicts) = self.verify_all(state, &journal.record, Progress::Some)?;
            if let Err((path, error)) = self.write_back(&wanted, &journal.granted) {
                warn!(%error, ?path, "an interrupted undo could not be finished");
            }
            let (checkpoint, finished) = (journal.record.id, wanted.len());
            info!(%checkpoint, finished, conflicts = conflicts.len(), "finished an interrupted undo");
            return self.end_journal(JOURNAL);
        }
        self.disk.remove(JOURNAL)
    }

    /// Decides whether a path can be restored, and returns the content that it gets.
    /// `is_vacated` says that another path of the checkpoint is moved away from this one.
    fn verify(
        &self,
        touched: &Touched,
        is_vacated: bool,
        progress: Progress,
        objects: &mut Objects,
    ) -> Result<Verdict, StorageError> {
        let (present, _) = image(&self.workspace, &touched.path);
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
                let is_there = !matches!(image(&self.workspace, to).0, Image::Missing);
                let is_free = present == Image::Missing || is_vacated;
                return Ok(match (is_free, is_there) {
                    (true, true) => Verdict::Restore(Vec::new(), Room::Occupied),
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
            Verdict::Restore(content, Room::Occupied)
        } else if progress == Progress::Some && is_between(&present, &touched.before) {
            Verdict::Restore(content, Room::Made)
        } else {
            Verdict::Conflict(Conflict::Changed)
        })
    }
}

/// What was done of an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    None,
    /// It was interrupted: entries may be removed and not yet replaced, and directories have their modes last.
    Some,
}

/// Returns whether an interrupted undo leaves an entry so that has to become another one.
fn is_between(present: &Image, before: &Image) -> bool {
    *present == Image::Missing
        || matches!((present, before), (Image::Directory { .. }, Image::Directory { .. }))
}

/// A path that is to be restored, with the content that it gets.
struct Wanted<'r> {
    touched: &'r Touched,
    content: Vec<u8>,
    room: Room,
}

/// What is to be restored, and what cannot be.
type Verified<'r> = (Vec<Wanted<'r>>, Vec<(PathBuf, Conflict)>);

/// What is under a path that is to be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// What the call left.
    Occupied,
    /// Nothing, or the directory that is wanted: an undo that was interrupted got that far.
    Made,
}

/// What becomes of a path.
enum Verdict {
    Restore(Vec<u8>, Room),
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

/// A checkpoint that is being taken back, and the one that takes that back.
#[derive(Debug, PartialEq)]
pub(crate) struct UndoJournal {
    process: u32,
    opposite: CheckpointId,
    granted: Vec<(PathBuf, u32)>,
    record: Record,
}

impl UndoJournal {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_number(&mut bytes, u64::from(self.process));
        put_number(&mut bytes, self.opposite.0);
        put_granted(&mut bytes, &self.granted);
        bytes.extend_from_slice(&self.record.to_bytes());
        sealed::seal(bytes)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = sealed::open(bytes, NO_MAGIC)?;
        let (process, opposite) = (reader.small()?, CheckpointId(reader.number()?));
        let granted = read_granted(&mut reader)?;
        let record = Record::of_bytes(reader.rest())?;
        Some(Self { process, opposite, granted, record })
    }
}
