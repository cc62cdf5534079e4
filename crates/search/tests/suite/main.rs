//! Guarantees of the search, tested on real trees.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::format_collect,
    clippy::single_range_in_vec_init,
    reason = "tests build the trees that are searched, and fail by panicking"
)]

/// The same trees seen by the `rg` program.
mod agreement;
/// Hostile trees and processes.
mod hostile;
/// Ignore files, hidden names and fixed exclusions.
mod ignoring;
/// Listing directories.
mod listing;
/// Finding files by their names.
mod names;
/// Pages, budgets and the order of results.
mod paging;
/// Matching and reports.
mod text;
/// Lists that follow a watch.
mod watching;

use std::path::{Path, PathBuf};

use carrel_fsroot::Root;
use carrel_search::{
    Cancel, Error, GlobRequest, GrepReport, GrepRequest, Order, Scope, glob, grep,
};

/// A directory `inside` that is the workspace, beside an `outside` that nothing may show.
struct TestTree {
    directory: tempfile::TempDir,
    root: Root,
}

impl TestTree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("inside")).unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(directory.path().join("outside/secret"), "needle outside\n").unwrap();
        let root = Root::open(&directory.path().join("inside")).unwrap();
        Self { directory, root }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let tree_fixture = Self::new();
        for (path, contents) in files {
            tree_fixture.file(path, contents);
        }
        tree_fixture
    }

    fn inside(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join("inside").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.directory.path().join("outside").join(path)
    }

    fn file(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
        let path = self.inside(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.inside(path)).unwrap();
    }

    fn scope(&self) -> Scope<'_> {
        Scope::whole(&self.root)
    }

    fn at(&self, path: &str) -> Scope<'_> {
        Scope::at(&self.root, path)
    }
}

fn find(scope: &Scope<'_>, request: &GrepRequest) -> GrepReport {
    grep(scope, request, &Cancel::new()).unwrap()
}

fn text_of(scope: &Scope<'_>, pattern: &str) -> String {
    find(scope, &GrepRequest::new(pattern)).text()
}

/// Returns the files of a scope that match a glob, in the order of paths.
fn names_in(scope: &Scope<'_>, pattern: &str) -> Vec<String> {
    let request = GlobRequest { order: Order::Path, limit: 10_000, ..GlobRequest::new(pattern) };
    let report = glob(scope, &request, &Cancel::new()).unwrap();
    report.files.iter().map(|file| file.path.to_str().unwrap().to_owned()).collect()
}

/// Returns all files that a scope shows, in the order of paths.
fn shown_in(scope: &Scope<'_>) -> Vec<String> {
    names_in(scope, "*")
}

fn refused(scope: &Scope<'_>, request: &GrepRequest) -> Error {
    grep(scope, request, &Cancel::new()).unwrap_err()
}
