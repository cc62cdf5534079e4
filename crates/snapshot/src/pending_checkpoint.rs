//! Making a checkpoint of a call.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use carrel_fsroot::{FileKind, Root};

use crate::error::StorageError;
use crate::object_id::ObjectId;
use crate::store::{State, Store};
use crate::tree_writer::open_strict;
use crate::undo::{CheckpointId, UndoError};
use crate::undo_record::{Image, MAX_IMAGE_BYTES, Record, Touched, image, recorded};

/// Bounds the entries of a directory that is kept file by file.
const MAX_TREE_ENTRIES: usize = 2000;

/// Bounds their bytes.
const MAX_TREE_BYTES: u64 = 64 << 20;

/// A checkpoint that is being made.
#[derive(Debug)]
pub struct PendingCheckpoint<'a> {
    store: &'a Store,
    owner: String,
    label: String,
    before: BTreeMap<PathBuf, (Image, Vec<u8>)>,
    /// What the call left, where that is known.
    after: BTreeMap<PathBuf, Image>,
    /// It is committed before anything is changed.
    is_ahead: bool,
}

/// What a call left under a path, looked at while nothing else could write there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftImage(Image);

impl LeftImage {
    /// Looks at a path of the workspace.
    pub fn of(workspace: &Root, path: &Path) -> Self {
        Self(image(workspace, path).0)
    }
}

impl<'a> PendingCheckpoint<'a> {
    pub(crate) fn new(store: &'a Store, owner: String, label: String) -> Self {
        Self {
            store,
            owner,
            label,
            before: BTreeMap::new(),
            after: BTreeMap::new(),
            is_ahead: false,
        }
    }

    /// Gives what the call left under a path, if that is known: what is there at the commit may be another call's.
    pub fn left(&mut self, path: &Path, image: LeftImage) -> Result<(), UndoError> {
        self.after.insert(recorded(path)?, image.0);
        Ok(())
    }

    /// Gives what will be under a path, for a checkpoint that is committed before anything is changed.
    pub(crate) fn expect(&mut self, path: PathBuf, image: Image) {
        self.is_ahead = true;
        self.after.insert(path, image);
    }

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

    pub(crate) fn add(&mut self, path: &Path) {
        if !self.before.contains_key(path) {
            self.before.insert(path.to_owned(), image(&self.store.workspace, path));
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

    pub(crate) fn commit_in(
        mut self,
        state: &mut State,
    ) -> Result<Option<CheckpointId>, StorageError> {
        let mut touched = Vec::new();
        for (path, (before, content)) in self.before {
            let (present, _) = image(&self.store.workspace, &path);
            let known = self.after.remove(&path).unwrap_or_else(|| present.clone());
            // Nothing to take back: what was there in between is gone.
            let is_as_before = before == if self.is_ahead { known.clone() } else { present };
            if is_as_before && before != Image::Unknown {
                continue;
            }
            let after = known;
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
        let record = Record {
            id: state.next_checkpoint(),
            owner: self.owner,
            label: self.label,
            created: self.store.clock.now(),
            touched,
        };
        state.objects.put_checkpoint(record.id.number(), &record.to_bytes())?;
        state.objects.flush()?;
        Ok(Some(record.id))
    }
}
