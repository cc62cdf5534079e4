//! The guarantees of the crate, tested with real files.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests lay out their own trees and fail by panicking"
)]

/// Deleting, retention, garbage.
mod collecting;
/// Differences between two states.
mod comparing;
/// Taking and listing snapshots.
mod creating;
/// Stores whose files were damaged.
mod damaged;
/// Processes that are killed, and processes that share a store.
mod killing;
/// Trees picked at random.
mod random_trees;
/// Putting the work of a fork onto a workspace that moved on.
mod rebasing;
/// Putting a state back.
mod restoring;
/// Finding what changed, and what is left out.
mod scanning;
/// Taking calls back.
mod undoing;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use carrel_fsroot::{Durability, Root};
use carrel_snapshot::{
    ChangeKind, CreateRequest, Created, Renames, RestoreOptions, Restored, Side, Snapshot,
    SnapshotName, Store, Trust,
};

/// A workspace beside the store of its snapshots, and an outside that nothing may touch.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["workspace", "store", "outside"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        std::fs::write(directory.path().join("outside/secret"), "outside").unwrap();
        Self { directory }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.root("store"), self.root("workspace")).unwrap()
    }

    pub(crate) fn root(&self, name: &str) -> Root {
        Root::open(&self.directory.path().join(name)).unwrap()
    }

    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.directory.path().join("outside").join(path)
    }

    pub(crate) fn stored(&self, path: &str) -> PathBuf {
        self.directory.path().join("store").join(path)
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join("workspace").join(path)
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.path(path)).unwrap();
    }

    pub(crate) fn mode(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.path(path), PermissionsExt::from_mode(mode)).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.symlink_metadata().unwrap().is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn read_bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    /// Returns everything in the workspace.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Found> {
        let mut tree = BTreeMap::new();
        collect(&self.path(""), Path::new(""), &mut tree);
        tree
    }
}

/// An entry of a tree, as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    File { mode: u32, content: Vec<u8> },
    Directory { mode: u32 },
    Link(OsString),
    Special,
}

fn collect(directory: &Path, below: &Path, tree: &mut BTreeMap<PathBuf, Found>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), below.join(entry.file_name()));
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        let found = if metadata.is_dir() {
            collect(&path, &name, tree);
            Found::Directory { mode }
        } else if metadata.is_symlink() {
            Found::Link(std::fs::read_link(&path).unwrap().into())
        } else if metadata.is_file() {
            Found::File { mode, content: std::fs::read(&path).unwrap() }
        } else {
            Found::Special
        };
        tree.insert(name, found);
    }
}

pub(crate) fn named(name: &str) -> SnapshotName {
    SnapshotName::new(name).unwrap()
}

pub(crate) fn take(store: &Store, name: &str) -> Snapshot {
    create(store, name).snapshot
}

pub(crate) fn create(store: &Store, name: &str) -> Created {
    store.create(&CreateRequest::named(named(name))).unwrap()
}

/// Options for tests that are not about power loss.
pub(crate) fn unsynced() -> RestoreOptions {
    RestoreOptions { durability: Durability::Buffered, ..RestoreOptions::default() }
}

pub(crate) fn restore(store: &Store, name: &str) -> Restored {
    store.restore(&named(name).into(), unsynced()).unwrap()
}

/// Returns the differences from a snapshot to the present, as text.
pub(crate) fn since(store: &Store, name: &str) -> Vec<String> {
    let old = Side::Snapshot(named(name).into());
    let comparison = store.compare(&old, &Side::Now, Renames::Joined, &Trust::Keys).unwrap();
    comparison.changes.iter().map(|change| shown(&change.kind, &change.path)).collect()
}

pub(crate) fn shown(kind: &ChangeKind, path: &Path) -> String {
    let path = path.as_os_str().as_bytes().escape_ascii();
    match kind {
        ChangeKind::Renamed { from } => {
            format!("renamed {} -> {path}", from.as_os_str().as_bytes().escape_ascii())
        }
        kind => format!("{} {path}", kind.as_str()),
    }
}
