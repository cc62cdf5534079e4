//! What a root and its workspaces promise, without hooks. Everything that runs a
//! hook or kills a process is tested through the `carrel` command.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build the state that a crash or a person leaves behind, and fail by panicking"
)]

/// Forks that are made together.
mod forks;
/// Unsaved work that outlives its workspace.
mod kept;
/// Create, reuse, repair, remove.
mod lifecycle;
/// Where a workspace may be.
mod locations;
/// Counting and limits.
mod quotas;
/// Which directories can be roots.
mod roots;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{ByteSize, Identifier, SystemClock};
use carrel_exec::LazySpawner;
use carrel_workspace::{
    Create, Created, DEFAULT_KEEP_UNSAVED, Error, Hooks, Quota, Remove, Removed, RootOptions,
    Target, UnsavedWork, Workspaces,
};

/// A root in a directory of its own.
struct TestRoot {
    directory: tempfile::TempDir,
    workspaces: Workspaces,
}

impl TestRoot {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspaces = open(&directory.path().join("root")).unwrap();
        Self { directory, workspaces }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("root").join(name)
    }

    async fn create(&self, text: &str) -> Result<Created, Error> {
        self.workspaces.create(Create::new(identifier(text)), &no_hooks()).await
    }

    async fn remove(&self, text: &str) -> Result<Removed, Error> {
        self.remove_target(Target::Identifier(identifier(text))).await
    }

    async fn remove_target(&self, target: Target) -> Result<Removed, Error> {
        self.workspaces.remove(Remove { target, unsaved: UnsavedWork::Discard }, &no_hooks()).await
    }

    /// Edits a record as a crash or another version would leave it.
    fn edit_record(&self, key: &str, from: &str, to: &str) {
        let path = self.path(".carrel/records").join(format!("{key}.json"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }
}

fn options(root: &Path) -> RootOptions {
    let quota = Quota { bytes: ByteSize::mib(10), files: Some(1000) };
    RootOptions {
        root: root.to_owned(),
        home: None,
        quota,
        keep_unsaved: DEFAULT_KEEP_UNSAVED,
        clock: Arc::new(SystemClock),
    }
}

fn open(root: &Path) -> Result<Workspaces, Error> {
    Workspaces::open_or_create(&options(root))
}

fn identifier(text: &str) -> Identifier {
    Identifier::parse(text).unwrap()
}

fn no_hooks() -> Hooks {
    Hooks::none(LazySpawner::new("/nonexistent".into()))
}
