//! Recordings of coverage of all workspaces of a server.
//!
//! A recording belongs to a project of a workspace and replaces the one before. All sessions that may use the workspace
//! share it, like the files that it is about. It has the content hashes of its files, by which a later answer tells
//! whether the lines are still the ones that ran. `carrel tool` saves recordings between processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use carrel_domain::sync;
use carrel_verify::Ecosystem;
use carrel_verify::coverage::Recording;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::read_tracker::ContentHash;

/// Bounds the projects with a recording; the oldest one is dropped first.
const MAX_PROJECTS: usize = 64;

/// Bounds the saved text of all recordings. Recordings that do not fit, the newest last, are not saved.
const MAX_SAVED_BYTES: usize = 8 << 20;

/// The recordings of a server, by the path of the workspace and by project.
#[derive(Debug, Default)]
pub(crate) struct CoverageStore(Mutex<BTreeMap<ProjectKey, Arc<ProjectCoverage>>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ProjectKey {
    pub(super) workspace: PathBuf,
    /// The project, relative to the workspace.
    pub(super) directory: String,
    pub(super) ecosystem: Ecosystem,
}

/// The recording of one project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProjectCoverage {
    pub(super) recording: Recording,
    /// The files as they were after the run.
    pub(super) hashes: BTreeMap<String, ContentHash>,
    /// True if the run was limited to a part of the project.
    pub(super) is_part: bool,
    /// Seconds since 1970.
    pub(super) at: u64,
}

impl CoverageStore {
    pub(super) fn set(&self, key: ProjectKey, coverage: ProjectCoverage) {
        let mut all = sync::lock(&self.0);
        all.insert(key, Arc::new(coverage));
        while all.len() > MAX_PROJECTS {
            let oldest = all.iter().min_by_key(|(_, known)| known.at).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            all.remove(&oldest);
        }
    }

    /// Returns the recordings of the projects of a workspace.
    pub(super) fn of(&self, workspace: &Path) -> Vec<Arc<ProjectCoverage>> {
        let all = sync::lock(&self.0);
        let own = all.iter().filter(|(key, _)| key.workspace == workspace);
        own.map(|(_, coverage)| Arc::clone(coverage)).collect()
    }

    /// Returns the recordings for [`CoverageStore::restore`] in another process; `None` if there are none.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let all = sync::lock(&self.0);
        let mut newest: Vec<_> = all.iter().collect();
        newest.sort_by_key(|(_, coverage)| std::cmp::Reverse(coverage.at));
        let mut room = MAX_SAVED_BYTES;
        let fitting = newest.into_iter().filter_map(|(key, coverage)| {
            let value = serde_json::to_value((key, &**coverage)).ok()?;
            room = room.checked_sub(value.to_string().len())?;
            Some(value)
        });
        (!all.is_empty()).then(|| Value::Array(fitting.collect()))
    }

    /// Adds saved recordings of projects that have none. A text that cannot be read has none.
    pub(super) fn restore(&self, saved: &str) {
        let saved: Vec<(ProjectKey, ProjectCoverage)> =
            serde_json::from_str(saved).unwrap_or_default();
        let mut all = sync::lock(&self.0);
        for (key, coverage) in saved.into_iter().take(MAX_PROJECTS) {
            all.entry(key).or_insert_with(|| Arc::new(coverage));
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn key(workspace: &str, directory: &str) -> ProjectKey {
        let workspace = PathBuf::from(workspace);
        ProjectKey { workspace, directory: directory.to_owned(), ecosystem: Ecosystem::Go }
    }

    fn coverage(at: u64) -> ProjectCoverage {
        let hashes = BTreeMap::from([("a.go".to_owned(), ContentHash::of(b"a"))]);
        ProjectCoverage { recording: Recording::default(), hashes, is_part: false, at }
    }

    #[test]
    fn workspaces_and_projects_have_recordings_of_their_own() {
        let store = CoverageStore::default();
        store.set(key("/a", "."), coverage(1));
        store.set(key("/a", "web"), coverage(2));
        store.set(key("/b", "."), coverage(3));
        store.set(key("/a", "."), coverage(4));
        let times = |workspace: &str| {
            store.of(workspace.as_ref()).iter().map(|coverage| coverage.at).collect::<Vec<_>>()
        };
        assert_eq!((times("/a"), times("/b"), times("/c")), (vec![4, 2], vec![3], vec![]));
    }

    #[test]
    fn the_oldest_recording_is_dropped_first() {
        let store = CoverageStore::default();
        for number in 0..MAX_PROJECTS as u64 + 2 {
            store.set(key(&format!("/{number}"), "."), coverage(number));
        }
        let is_there = |name: &str| !store.of(name.as_ref()).is_empty();
        assert_eq!((is_there("/0"), is_there("/1"), is_there("/2")), (false, false, true));
    }

    #[test]
    fn saved_recordings_are_restored_and_never_replace_newer_ones() {
        let store = CoverageStore::default();
        assert_eq!(store.to_json(), None);
        store.set(key("/a", "."), coverage(1));
        let saved = store.to_json().unwrap().to_string();
        let other = CoverageStore::default();
        other.restore(&saved);
        assert_eq!(other.of("/a".as_ref()), store.of("/a".as_ref()));
        other.set(key("/a", "."), coverage(2));
        other.restore(&saved);
        assert_eq!(other.of("/a".as_ref())[0].at, 2);
        other.restore("[1");
    }
}
