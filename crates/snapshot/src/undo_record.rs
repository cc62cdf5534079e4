//! The records of checkpoints: what a call did to each path.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrel_domain::Timestamp;
use carrel_domain::encoding::{Reader, put_length, put_number, put_text};
use carrel_fsroot::{FileKind, Problem, Root};

use crate::change_key::ChangeKey;
use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::scan::read_if_unchanged;
use crate::store::State;
use crate::tree_writer::{open_strict, recorded_path};
use crate::undo::{Checkpoint, CheckpointId, MAX_CHECKPOINTS, UndoError};

/// A larger file is not kept, since it is read into memory with every call.
pub(crate) const MAX_IMAGE_BYTES: u64 = 16 << 20;

/// The age beyond which a checkpoint is garbage.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// The owners that have checkpoints. Sessions end without a word, so the ones that were inactive for longest lose theirs.
const MAX_OWNERS: usize = 64;

/// The bytes of all images together, as they are stored.
const MAX_BYTES: u64 = if cfg!(test) { 100_000 } else { 256 << 20 };

/// What is under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image {
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
pub(crate) struct Touched {
    pub(crate) path: PathBuf,
    pub(crate) before: Image,
    pub(crate) after: Image,
}

/// Returns what is under a path, with the content of a file.
pub(crate) fn image(root: &Root, path: &Path) -> (Image, Vec<u8>) {
    let parent = path.parent().unwrap_or(Path::new(""));
    let found = open_strict(root, parent).and_then(|parent| {
        let name = Path::new(path.file_name().unwrap_or_default());
        let metadata = parent.link_metadata(name)?;
        Ok(match metadata.kind {
            FileKind::Directory => (Image::Directory { mode: metadata.mode & 0o3777 }, Vec::new()),
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

pub(crate) fn recorded(path: &Path) -> Result<PathBuf, UndoError> {
    let recorded = recorded_path(path).filter(|path| !path.as_os_str().is_empty());
    recorded.ok_or_else(|| UndoError::Path { path: path.to_owned() })
}

/// A checkpoint with everything that it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) id: CheckpointId,
    pub(crate) owner: String,
    pub(crate) label: String,
    pub(crate) created: Timestamp,
    pub(crate) touched: Vec<Touched>,
}

/// Returns the checkpoints that are kept, the newest first: the last ones of each owner, of the owners that were active
/// last, up to an age and to the bytes of their images. Damaged ones are left out.
pub(crate) fn kept(state: &mut State, now: Timestamp) -> Result<Vec<Record>, StorageError> {
    let mut kept = Vec::new();
    visit_kept(state, now, |record, _| {
        kept.push(record);
        Visit::Further
    })?;
    Ok(kept)
}

/// Returns those of one owner, the newest first, up to the one that is asked for or all. What is older is not read.
pub(crate) fn kept_of(
    state: &mut State,
    now: Timestamp,
    owner: &str,
    until: Option<CheckpointId>,
) -> Result<Vec<Record>, StorageError> {
    let mut kept = Vec::new();
    visit_kept(state, now, |record, count| {
        if record.owner != owner {
            return Visit::Further;
        }
        let is_last = count >= MAX_CHECKPOINTS || until == Some(record.id);
        kept.push(record);
        if is_last { Visit::Enough } else { Visit::Further }
    })?;
    Ok(kept)
}

/// Whether older checkpoints are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    Further,
    Enough,
}

/// Visits the checkpoints that are kept, the newest first, each with the number of its owner's so far.
fn visit_kept(
    state: &mut State,
    now: Timestamp,
    mut visit: impl FnMut(Record, usize) -> Visit,
) -> Result<(), StorageError> {
    let ids: Vec<_> = state.objects.checkpoints().values().rev().copied().collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut images, mut bytes, mut is_first) = (BTreeSet::new(), 0, true);
    for id in ids {
        let record = match state.objects.get(id) {
            Ok(content) => Record::of_bytes(&content),
            Err(StorageError::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        let Some(record) = record else { continue };
        if record.created.age(now) > MAX_AGE
            || (counts.len() >= MAX_OWNERS && !counts.contains_key(&record.owner))
        {
            continue;
        }
        let new = record.images().filter(|id| images.insert(*id));
        bytes += new.map(|id| state.objects.length_of(&id)).sum::<u64>();
        let count = counts.entry(record.owner.clone()).or_default();
        *count += 1;
        // The newest one of all is kept, however large it is.
        if *count > MAX_CHECKPOINTS || (bytes > MAX_BYTES && !is_first) {
            continue;
        }
        is_first = false;
        if visit(record, *count) == Visit::Enough {
            break;
        }
    }
    Ok(())
}

/// Returns the content that the kept checkpoints need, and their own records.
pub(crate) fn live(state: &mut State, now: Timestamp) -> Result<Vec<ObjectId>, StorageError> {
    let mut live = Vec::new();
    for record in kept(state, now)? {
        live.extend(state.objects.checkpoints().get(&record.id.number()));
        live.extend(record.images().filter(|id| state.objects.contains(id)));
    }
    Ok(live)
}

impl Touched {
    /// Returns where the call moved it.
    pub(crate) fn moved_to(&self) -> Option<&Path> {
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
    /// Returns the content that was there before.
    fn images(&self) -> impl Iterator<Item = ObjectId> {
        self.touched.iter().filter_map(|touched| match &touched.before {
            Image::File { id, .. } => Some(*id),
            Image::Missing
            | Image::Directory { .. }
            | Image::Link { .. }
            | Image::MovedTo(_)
            | Image::Unknown => None,
        })
    }

    /// Returns whether taking it back moves away what lies under a path.
    pub(crate) fn vacates(&self, path: &Path) -> bool {
        self.touched.iter().any(|touched| touched.moved_to() == Some(path))
    }

    pub(crate) fn summary(self) -> Checkpoint {
        Checkpoint {
            id: self.id,
            owner: self.owner,
            label: self.label,
            created: self.created,
            paths: self.touched.into_iter().map(|touched| touched.path).collect(),
        }
    }

    /// Keeps what is at or below these paths; everything if there are none.
    pub(crate) fn select(&mut self, paths: &[PathBuf]) -> Result<(), UndoError> {
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
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_number(&mut bytes, self.id.number());
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

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let id = CheckpointId::of(reader.number()?);
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
    let path = PathBuf::from(reader.os()?);
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
            1 => Self::File { mode: reader.small()?, id: ObjectId::read(reader)? },
            2 => Self::Directory { mode: reader.small()? },
            3 => Self::Link { target: OsString::from_vec(reader.text()?.to_vec()).into() },
            4 => Self::MovedTo(path(reader)?),
            5 => Self::Unknown,
            _ => return None,
        })
    }
}
