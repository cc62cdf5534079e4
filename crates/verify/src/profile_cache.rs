//! Profiles that are kept until one of the files they come from changes.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carrel_fsroot::{Error, Identity, Root};
use serde::Serialize;

use crate::detect::{self, Detection, FileProject, WorkspaceProjects};
use crate::paths;
use crate::project_reader::FileStamps;

/// Bounds memory: the least recently used entry makes room for a new one.
const MAX_ENTRIES: usize = 1_024;

/// Whether an answer was kept, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "cache")]
pub enum CacheStatus {
    /// Nothing that it depends on has changed.
    Hit,
    /// Nobody asked before.
    Miss,
    /// A file appeared, vanished or was changed.
    Changed {
        /// The file, relative to the workspace.
        file: String,
    },
}

/// Keeps detections by workspace and directory.
///
/// An entry counts as long as every file that was looked at has the same device, inode,
/// size and times, and every file that was missing is still missing.
#[derive(Debug, Default)]
pub struct ProfileCache {
    nearest: Mutex<Entries<(Identity, Option<String>), Detection>>,
    all: Mutex<Entries<Identity, WorkspaceProjects>>,
    /// By directory and kind of file.
    files: Mutex<Entries<(Identity, String, String), FileProject>>,
}

#[derive(Debug)]
struct Entries<K, T> {
    map: HashMap<K, CachedValue<T>>,
    /// Counts questions, to tell which entry was used last.
    clock: u64,
}

#[derive(Debug)]
struct CachedValue<T> {
    value: Arc<T>,
    stamps: Arc<FileStamps>,
    used: u64,
}

impl ProfileCache {
    /// Makes an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the project of a file or directory, as [`crate::detect`] does.
    pub fn detect(&self, root: &Root, from: &Path) -> Result<(Arc<Detection>, CacheStatus), Error> {
        let key = (root.identity()?, detect::directory_of(root, from));
        Ok(get_or_detect(&self.nearest, root, key, || detect::detect_stamped(root, from)))
    }

    /// Finds every project of a workspace, as [`crate::detect_all`] does.
    pub fn detect_all(&self, root: &Root) -> Result<(Arc<WorkspaceProjects>, CacheStatus), Error> {
        Ok(get_or_detect(&self.all, root, root.identity()?, || detect::detect_all_stamped(root)))
    }

    /// Finds what a file belongs to, as [`crate::detect_for_file`] does.
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

    /// Forgets everything.
    pub fn clear(&self) {
        lock(&self.nearest).map.clear();
        lock(&self.all).map.clear();
        lock(&self.files).map.clear();
    }
}

fn get_or_detect<K: Clone + Eq + Hash, T>(
    entries: &Mutex<Entries<K, T>>,
    root: &Root,
    key: K,
    detect: impl FnOnce() -> (T, FileStamps),
) -> (Arc<T>, CacheStatus) {
    // The lock is not held while files are looked at.
    let kept = lock(entries).get(&key);
    let freshness = match kept {
        None => CacheStatus::Miss,
        Some((value, stamps)) => match stamps.changed(root) {
            None => return (value, CacheStatus::Hit),
            Some(file) => CacheStatus::Changed { file },
        },
    };
    let (value, stamps) = detect();
    let value = Arc::new(value);
    lock(entries).put(key, Arc::clone(&value), stamps);
    (value, freshness)
}

/// A panic elsewhere leaves whole entries behind, so they stay usable.
fn lock<T>(entries: &Mutex<T>) -> MutexGuard<'_, T> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K, T> Default for Entries<K, T> {
    fn default() -> Self {
        Self { map: HashMap::new(), clock: 0 }
    }
}

impl<K: Clone + Eq + Hash, T> Entries<K, T> {
    fn get(&mut self, key: &K) -> Option<(Arc<T>, Arc<FileStamps>)> {
        self.clock += 1;
        let entry = self.map.get_mut(key)?;
        entry.used = self.clock;
        Some((Arc::clone(&entry.value), Arc::clone(&entry.stamps)))
    }

    fn put(&mut self, key: K, value: Arc<T>, stamps: FileStamps) {
        self.clock += 1;
        if self.map.len() >= MAX_ENTRIES && !self.map.contains_key(&key) {
            let oldest = self.map.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.map.remove(&oldest);
            }
        }
        let entry = CachedValue { value, stamps: Arc::new(stamps), used: self.clock };
        self.map.insert(key, entry);
    }
}
