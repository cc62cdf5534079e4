//! A cache of detected profiles, validated by file stamps on every use.
//!
//! Detection reads some dozen files and is needed after every edit, for formatting and linting. An
//! entry keeps the stamp (device, inode, size, times) of every file that was looked at, and the
//! absence of every file that was missing. It is used only if all of them are unchanged: one `stat`
//! for each instead of reads and parses. A file that changes during detection is noticed by the
//! next use, because its stamp is taken before its contents are read.
//!
//! There is no watcher and no time-to-live, so there is nothing to lose on a crash and no window in
//! which a stale profile is used. The locks are held only while a map is changed, never during file
//! access; two callers may detect the same project at once, and the later result stays.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use carrel_fsroot::{Error, Identity, Root};
use serde::Serialize;

use crate::detect::{self, Detection, FileProject, WorkspaceProjects};
use crate::paths;
use crate::project_reader::FileStamps;

/// Bounds the entries of each map; the least recently used one is evicted.
const MAX_ENTRIES: usize = 1_024;

/// The result of a cache lookup: a valid entry, no entry, or an entry that was invalidated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "cache")]
#[expect(missing_docs, reason = "the summary defines the variants")]
pub enum CacheStatus {
    Hit,
    Miss,
    /// A file appeared, vanished or changed, and detection ran again.
    Changed {
        file: String,
    },
}

/// Detected profiles by workspace and directory, shared by all sessions of a server.
#[derive(Debug, Default)]
pub struct ProfileCache {
    nearest: Entries<(Identity, Option<String>), Detection>,
    all: Entries<Identity, WorkspaceProjects>,
    files: Entries<(Identity, String, String), FileProject>,
}

type Entries<K, T> = Mutex<HashMap<K, CachedValue<T>>>;

#[derive(Debug)]
struct CachedValue<T> {
    value: Arc<T>,
    stamps: Arc<FileStamps>,
    used: Instant,
}

impl ProfileCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the projects of a file or directory, as [`crate::detect`] does.
    pub fn detect(&self, root: &Root, from: &Path) -> Result<(Arc<Detection>, CacheStatus), Error> {
        let key = (root.identity()?, detect::directory_of(root, from));
        Ok(get_or_detect(&self.nearest, root, key, || detect::detect_stamped(root, from)))
    }

    /// Returns all projects of a workspace, as [`crate::detect_all`] does.
    pub fn detect_all(&self, root: &Root) -> Result<(Arc<WorkspaceProjects>, CacheStatus), Error> {
        Ok(get_or_detect(&self.all, root, root.identity()?, || detect::detect_all_stamped(root)))
    }

    /// Returns the project of a file, as [`crate::detect_for_file`] does.
    pub fn detect_for_file(
        &self,
        root: &Root,
        file: &Path,
    ) -> Result<(Arc<FileProject>, CacheStatus), Error> {
        let Some(path) = paths::normal(file) else {
            return Ok((Arc::default(), CacheStatus::Miss));
        };
        let directory = paths::parent(&path).unwrap_or(paths::TOP).to_owned();
        let key = (root.identity()?, directory, paths::extension(&path).to_owned());
        Ok(get_or_detect(&self.files, root, key, || detect::detect_for_file_stamped(root, &path)))
    }
}

fn get_or_detect<K: Clone + Eq + Hash, T>(
    entries: &Entries<K, T>,
    root: &Root,
    key: K,
    detect: impl FnOnce() -> (T, FileStamps),
) -> (Arc<T>, CacheStatus) {
    // The lock is not held during file access.
    let cached = lock(entries).get_mut(&key).map(|entry| {
        entry.used = Instant::now();
        (Arc::clone(&entry.value), Arc::clone(&entry.stamps))
    });
    let status = match cached {
        None => CacheStatus::Miss,
        Some((value, stamps)) => match stamps.changed(root) {
            None => return (value, CacheStatus::Hit),
            Some(file) => CacheStatus::Changed { file },
        },
    };
    let (value, stamps) = detect();
    let value = Arc::new(value);
    let stamps = Arc::new(stamps);
    let entry = CachedValue { value: Arc::clone(&value), stamps, used: Instant::now() };
    put(&mut lock(entries), key, entry);
    (value, status)
}

fn put<K: Clone + Eq + Hash, T>(
    entries: &mut HashMap<K, CachedValue<T>>,
    key: K,
    entry: CachedValue<T>,
) {
    if entries.len() >= MAX_ENTRIES && !entries.contains_key(&key) {
        let oldest = entries.iter().min_by_key(|(_, entry)| entry.used);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            entries.remove(&oldest);
        }
    }
    entries.insert(key, entry);
}

/// Ignores poisoning: every change of the map is a single call.
fn lock<T>(entries: &Mutex<T>) -> MutexGuard<'_, T> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}
