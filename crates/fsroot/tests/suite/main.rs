//! The guarantees of the crate, tested with real files and real processes.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests build the outside that the root must not reach, and fail by panicking"
)]

/// Attributes, times and contents of single entries.
mod attributes;
/// Writes of exactly the entry that a name stands for.
mod exact;
/// Names that the browsing view hides.
mod hiding;
/// Every operation against every hostile path.
mod hostile;
/// Absolute links that stay inside.
mod links;
/// Trees in another mount namespace.
mod overlay;
/// Other processes that swap what is being used.
mod race;
/// Operations and paths picked at random.
mod random;
mod random_paths;
/// Reading, listing, walking, counting.
mod reading;
/// Removing trees of every shape.
mod removing;
/// Walks that their caller directs, step by step.
mod stepping;
/// Writing, renaming, making directories.
mod writing;

use std::path::{Path, PathBuf};

use carrel_fsroot::Root;

/// A directory `inside` that is the root, beside an `outside` that nothing may touch.
struct TestTree {
    directory: tempfile::TempDir,
    root: Root,
}

impl TestTree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("inside")).unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(directory.path().join("outside/secret"), "outside").unwrap();
        let root = Root::open(&directory.path().join("inside")).unwrap();
        Self { directory, root }
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.directory.path().join("inside").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.directory.path().join("outside").join(path)
    }

    fn file(&self, path: &str, contents: &str) {
        let path = self.inside(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.inside(path)).unwrap();
    }

    fn fifo(&self, path: &str) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, self.inside(path), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }
}

/// Shortens `Path::new` in tables.
fn p(path: &str) -> &Path {
    Path::new(path)
}
