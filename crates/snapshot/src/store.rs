//! The store of one workspace: its files, its lock, and what of it is in memory.
//!
//! One process at a time uses a store, by an advisory lock (`flock`) on its file `lock`, and one thread at a time
//! within it. That file also holds a counter that every change of records and segments raises, so that a
//! process sees when another one changed something, and reads everything again. Records of undo that another
//! process appended are found at the ends of the segments.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrel_domain::{Clock, SystemClock, sync};
use carrel_fsroot::Root;
use tracing::warn;

use crate::change_key::ChangeKey;
use crate::disk::{self, Disk, ServerDisk, UNFINISHED, Watched};
use crate::error::StorageError;
use crate::journal;
use crate::name::{SnapshotId, SnapshotName};
use crate::objects::Objects;
use crate::restore::{Recovery, RestoreError};
use crate::scan::scan;
use crate::scan_cache::ScanCache;
use crate::scan_options::{ScanError, ScanOptions, Scanned};
use crate::snapshot::{RecordError, Snapshot, number_of};
use crate::undo::{self, CheckpointId};

const LOCK: &str = "lock";
const SCAN_CACHE: &str = "scan.index";

/// An empty file whose time is the end of the last restore or undo: whoever remembers something about the workspace's
/// files can tell whether they were put back since.
const RESTORED: &str = "restored";

/// Writing the last scan costs as much as the tree is large, so it is not written for a few changes. The next process
/// reads the changed files again.
const MAX_UNSAVED_CHANGES: u64 = 64;

/// The part of a small tree that may change until its scan is written.
const UNSAVED_PART: u64 = 16;

const LOCK_MODE: u32 = 0o600;

/// The time after which another process that holds the lock is not waited for any longer. A first snapshot of
/// a large tree takes seconds.
const LOCK_TIME: Duration = Duration::from_mins(1);
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// The snapshots and checkpoints of one workspace.
#[derive(Debug)]
pub struct Store {
    pub(crate) disk: Arc<dyn Disk>,
    server: Arc<ServerDisk>,
    watched: Arc<Watched>,
    lock: File,
    pub(crate) workspace: Root,
    pub(crate) clock: Arc<dyn Clock>,
    state: Mutex<Option<State>>,
    recovery: Mutex<Option<Recovery>>,
}

/// What of a store is in memory.
#[derive(Debug)]
pub(crate) struct State {
    epoch: u64,
    /// The number of the next snapshot.
    next: u64,
    pub(crate) objects: Objects,
    /// In the order of their numbers.
    pub(crate) snapshots: Vec<Snapshot>,
    /// Names of records that cannot be read.
    pub(crate) damaged_records: Vec<String>,
    cache: Option<ScanCache>,
    /// The changes of the cache since it was written.
    unsaved_changes: u64,
    /// The files have to be read again.
    is_discarded: bool,
    /// The records that were removed.
    pub(crate) removed: u64,
    /// The bytes that were stored and the records that had been removed when garbage was last looked for.
    pub(crate) looked: Option<(u64, u64)>,
}

/// The name or the id of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// By its id.
    Id(SnapshotId),
    /// By its name.
    Name(SnapshotName),
}

/// Why there is no such snapshot.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The text is neither a name nor an id.
    #[error(transparent)]
    Name(#[from] crate::name::InvalidName),
    /// There is none.
    #[error("snapshot {asked:?} not found; {}", known_names(known))]
    Unknown {
        /// The name or id that was asked for.
        asked: String,
        /// Names and ids of the newest ones.
        known: Vec<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Bounds the names that an error lists.
const MAX_LISTED: usize = 10;

fn known_names(known: &[String]) -> String {
    if known.is_empty() {
        "there are no snapshots".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    }
}

impl Reference {
    /// Reads a name, or an id such as `@12`.
    pub fn parse(text: &str) -> Result<Self, crate::name::InvalidName> {
        match SnapshotId::parse(text) {
            Some(id) => Ok(Self::Id(id)),
            None => SnapshotName::new(text).map(Self::Name),
        }
    }
}

impl From<SnapshotId> for Reference {
    fn from(id: SnapshotId) -> Self {
        Self::Id(id)
    }
}

impl From<SnapshotName> for Reference {
    fn from(name: SnapshotName) -> Self {
        Self::Name(name)
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Store {
    /// Opens the store of a workspace in a directory of the server that is for nothing else. Repairs what a
    /// crash left, and finishes a restore that was interrupted; see [`Store::recovery`].
    pub fn open(directory: Root, workspace: Root) -> Result<Self, RestoreError> {
        Self::with_clock(directory, workspace, Arc::new(SystemClock))
    }

    /// Opens a store with another source of time.
    pub fn with_clock(
        directory: Root,
        workspace: Root,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RestoreError> {
        Self::on(directory, workspace, clock, |disk| disk)
    }

    pub(crate) fn on(
        directory: Root,
        workspace: Root,
        clock: Arc<dyn Clock>,
        wrap: impl FnOnce(Arc<dyn Disk>) -> Arc<dyn Disk>,
    ) -> Result<Self, RestoreError> {
        let lock = directory.open_or_create(Path::new(LOCK), LOCK_MODE);
        let lock = lock.map_err(StorageError::from)?;
        let server = Arc::new(ServerDisk::new(directory));
        let watched = Arc::new(Watched::new(wrap(Arc::clone(&server) as Arc<dyn Disk>)));
        let store = Self {
            disk: Arc::clone(&watched) as Arc<dyn Disk>,
            server,
            watched,
            lock,
            workspace,
            clock,
            state: Mutex::default(),
            recovery: Mutex::default(),
        };
        store.locked(|state| state.objects.cover())?;
        Ok(store)
    }

    /// Returns what became of the last restore that was interrupted and that this store finished; `None` if none was.
    pub fn recovery(&self) -> Option<Recovery> {
        sync::lock(&self.recovery).clone()
    }

    /// Finishes a restore or undo that was interrupted, if there is one. The caller holds the workspace's write lock.
    pub fn finish_interrupted(&self) -> Result<(), StorageError> {
        self.locked(|state| {
            if let Some(recovery) = self.recover(state)? {
                *sync::lock(&self.recovery) = Some(recovery);
            }
            self.recover_undo(state)
        })
    }

    /// Returns whether a process that ended was writing to the workspace, so that opening the store in a directory
    /// would finish that.
    pub fn is_interrupted(directory: &Root) -> bool {
        let is_there = |journal: &str| directory.link_metadata(Path::new(journal)).is_ok();
        [journal::FILE, undo::JOURNAL].into_iter().any(is_there)
    }

    /// Returns all snapshots, the newest first.
    pub fn list(&self) -> Result<Vec<Snapshot>, StorageError> {
        self.locked(|state| Ok(state.snapshots.iter().rev().cloned().collect()))
    }

    /// Returns a snapshot by its name or id.
    pub fn find(&self, reference: &Reference) -> Result<Snapshot, FindError> {
        self.locked(|state| state.find(reference).cloned())
    }

    /// Returns the names of files of the store that are damaged. The snapshots in them are not listed.
    pub fn damaged(&self) -> Result<Vec<String>, StorageError> {
        self.locked(|state| Ok(state.damaged_records.clone()))
    }

    /// Does something while no other thread or process uses the store.
    ///
    /// After a failure that may have left the state different from the files, in this or another process, the next use
    /// reads the files again.
    pub(crate) fn locked<T, E: From<StorageError>>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut slot = sync::lock(&self.state);
        let _guard = self.lock_file()?;
        // Taken, so that nothing is left of it after a failure or a panic.
        let mut state = self.current(slot.take())?;
        let acted = act(&mut state);
        if self.watched.take_failure() {
            if let Err(error) = self.announce(&mut state) {
                warn!(%error, "could not tell other processes that the snapshot store failed");
            }
        } else if !state.objects.has_pending() && !state.is_discarded {
            *slot = Some(state);
        }
        acted
    }

    /// Returns the state as the files have it now.
    fn current(&self, state: Option<State>) -> Result<State, StorageError> {
        let (epoch, next) = self.counters()?;
        match state {
            Some(mut state) if state.epoch == epoch => {
                state.objects.scan_ends()?;
                Ok(state)
            }
            _ => {
                self.server.forget();
                let mut state = self.load(epoch, next)?;
                if let Some(recovery) = self.recover(&mut state)? {
                    *sync::lock(&self.recovery) = Some(recovery);
                }
                self.recover_undo(&mut state)?;
                Ok(state)
            }
        }
    }

    fn lock_file(&self) -> Result<FileGuard<'_>, StorageError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match self.lock.try_lock() {
                Ok(()) => return Ok(FileGuard { lock: &self.lock }),
                Err(TryLockError::Error(error)) => return Err(StorageError::io(LOCK)(error)),
                Err(TryLockError::WouldBlock) if begun.elapsed() > LOCK_TIME => {
                    return Err(StorageError::Busy);
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    /// Reads the counter of changes and the number of the next snapshot.
    fn counters(&self) -> Result<(u64, u64), StorageError> {
        let mut bytes = [0; 16];
        match self.lock.read_exact_at(&mut bytes, 0) {
            // A new store.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok((0, 1)),
            read => read.map_err(StorageError::io(LOCK))?,
        }
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        Ok((number(&bytes[..8]), number(&bytes[8..])))
    }

    fn load(&self, epoch: u64, next: u64) -> Result<State, StorageError> {
        let names = self.disk.list()?;
        for name in names.iter().filter(|name| name.ends_with(UNFINISHED)) {
            self.disk.remove(name)?;
        }
        let objects = Objects::open(Arc::clone(&self.disk))?;
        let mut snapshots = Vec::new();
        let mut damaged_records = Vec::new();
        for name in names.iter().filter(|name| number_of(name).is_some()) {
            let bytes = disk::read(&*self.disk, name)?.unwrap_or_default();
            match Snapshot::of_bytes(&bytes) {
                Ok(snapshot) if objects.contains(&snapshot.top) => snapshots.push(snapshot),
                Ok(_) | Err(RecordError::Damaged) => {
                    warn!(name, "the record of a snapshot is damaged");
                    damaged_records.push(name.clone());
                }
                Err(RecordError::NewerVersion) => {
                    return Err(StorageError::NewerVersion { file: name.clone() });
                }
            }
        }
        snapshots.sort_unstable_by_key(|snapshot| snapshot.id);
        let newest = names.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
        let next = next.max(newest + 1);
        Ok(State {
            epoch,
            next,
            objects,
            snapshots,
            damaged_records,
            cache: None,
            unsaved_changes: 0,
            is_discarded: false,
            removed: 0,
            looked: None,
        })
    }

    /// Ends a restore or undo. The journal is removed rather than kept, so that the disk need not see one that was
    /// not synced.
    pub(crate) fn end_journal(&self, journal: &str) -> Result<(), StorageError> {
        // Before the journal goes: who finds none has to find the time. Setting the same length sets it.
        self.disk.truncate(RESTORED, 0)?;
        self.disk.remove(journal)
    }

    /// Tells other processes that records or segments changed.
    pub(crate) fn announce(&self, state: &mut State) -> Result<(), StorageError> {
        state.epoch = state.epoch.wrapping_add(1);
        let mut bytes = state.epoch.to_le_bytes().to_vec();
        bytes.extend_from_slice(&state.next.to_le_bytes());
        self.lock.write_all_at(&bytes, 0).map_err(StorageError::io(LOCK))
    }

    /// Scans the workspace and stores what is new, unsynced. What is `held` is taken although ignore rules exclude it.
    pub(crate) fn scan(
        &self,
        state: &mut State,
        options: &ScanOptions,
        held: &BTreeSet<PathBuf>,
    ) -> Result<Scanned, ScanError> {
        if state.objects.take_loss() {
            state.forget_missing();
            state.objects.sync()?;
            state.objects.save_index()?;
        }
        let State { objects, cache, .. } = state;
        let cache = match cache {
            Some(cache) => cache,
            none => {
                let bytes = disk::read(&*self.disk, SCAN_CACHE)?.unwrap_or_default();
                let mut stored = ScanCache::of_bytes(&bytes).unwrap_or_default();
                stored.top.retain_stored(objects);
                none.insert(stored)
            }
        };
        let scanned = scan(&self.workspace, options, held, cache, objects)?;
        objects.flush()?;
        Ok(scanned)
    }

    /// Writes the last scan for the next process, unless that has little to do with the one that is kept. A failure
    /// only makes it slower.
    pub(crate) fn save_cache(&self, state: &mut State, scanned: &Scanned) {
        state.unsaved_changes += scanned.cache_changes;
        let few = MAX_UNSAVED_CHANGES.min(scanned.totals.files / UNSAVED_PART);
        let Some(cache) = state.cache.as_ref().filter(|_| state.unsaved_changes > few) else {
            return;
        };
        match disk::replace_cache(&*self.disk, SCAN_CACHE, &cache.to_bytes()) {
            Ok(()) => state.unsaved_changes = 0,
            Err(error) => warn!(
                %error,
                "could not keep the last scan; the next process reads all files again"
            ),
        }
    }
}

impl State {
    /// Makes the next use read the files again, and finish what is in a journal.
    pub(crate) fn discard(&mut self) {
        self.is_discarded = true;
    }

    /// Returns the change key of a file or link as the last scan found it.
    pub(crate) fn key_of(&self, path: &Path) -> Option<ChangeKey> {
        self.cache.as_ref()?.key_of(path)
    }

    /// Forgets content of the last scan that is not stored any more.
    pub(crate) fn forget_missing(&mut self) {
        let Self { objects, cache, .. } = self;
        if let Some(cache) = cache {
            cache.top.retain_stored(objects);
        }
    }

    pub(crate) fn next_checkpoint(&self) -> CheckpointId {
        let newest = self.objects.checkpoints().last_key_value();
        CheckpointId::of(newest.map_or(0, |(number, _)| *number) + 1)
    }

    pub(crate) fn take_number(&mut self) -> SnapshotId {
        let id = SnapshotId(self.next);
        self.next += 1;
        id
    }

    pub(crate) fn find(&self, reference: &Reference) -> Result<&Snapshot, FindError> {
        let found = self.snapshots.iter().rev().find(|snapshot| match reference {
            Reference::Id(id) => snapshot.id == *id,
            Reference::Name(name) => snapshot.name.as_ref() == Some(name),
        });
        found.ok_or_else(|| {
            let name = |snapshot: &Snapshot| match &snapshot.name {
                Some(name) => name.to_string(),
                None => snapshot.id.to_string(),
            };
            let known = self.snapshots.iter().rev().take(MAX_LISTED).map(name).collect();
            FindError::Unknown { asked: reference.to_string(), known }
        })
    }
}

/// Holds the lock of the store's file.
struct FileGuard<'a> {
    lock: &'a File,
}

impl Drop for FileGuard<'_> {
    fn drop(&mut self) {
        // Cannot fail for an open file; the lock would end with the process otherwise.
        let _ = self.lock.unlock();
    }
}
