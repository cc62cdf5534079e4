//! The files that a command changed, by a comparison of the tree before and after it.
//!
//! Only files that no ignore rule excludes are compared, by their modification times, and none in directories of
//! build output and caches. A file that another call changes at the same time is listed as well.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carrel_search::{Cancel, GlobRequest, Scope};

use crate::blocking::blocking;
use crate::files::shown;
use crate::tool_context::ToolContext;

/// Bounds the files of a tree that is compared; larger ones are not.
const MAX_FILES: usize = 20_000;

/// Bounds the time for one look at the tree.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Bounds the files of one reply.
const MAX_LISTED: usize = 50;

/// Names of directories of Carrel and git, which commands may change at any time, and of build output and
/// caches, of which a run changes hundreds of files.
const SKIPPED: [&str; 22] = [
    ".git",
    ".carrel",
    "target",
    "node_modules",
    "__pycache__",
    ".cache",
    ".cargo",
    ".config",
    ".gradle",
    ".m2",
    ".npm",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".nyc_output",
    ".phpunit.cache",
    ".phpunit.result.cache",
    ".stack-work",
    ".zig-cache",
    "_build",
    "dist-newstyle",
];

/// Names of files that `CMake`, Meson and Ninja write into the top of a build directory.
const BUILD_MARKERS: [&str; 2] = ["CMakeCache.txt", "build.ninja"];

/// The files of a tree with their modification times.
#[derive(Debug)]
pub(super) struct TreeState(BTreeMap<PathBuf, SystemTime>);

/// The files that were created, changed or deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedFiles {
    /// The first paths, relative to the workspace.
    pub(super) listed: Vec<String>,
    /// Number of further files.
    pub(super) omitted: usize,
    /// True if the tree is too large to be compared.
    pub(super) unknown: bool,
}

impl TreeState {
    /// Looks at the tree; `None` if it is too large or cannot be read.
    pub(super) async fn of(context: &ToolContext) -> Option<Self> {
        let workspace = Arc::clone(context.workspace());
        let report = blocking(move || {
            let scope = Scope { hidden: true, ..Scope::whole(workspace.files()) };
            let request = GlobRequest { limit: MAX_FILES, time: MAX_TIME, ..GlobRequest::new("*") };
            Ok(carrel_search::glob(&scope, &request, &Cancel::new()).ok())
        });
        let report = report.await.ok().flatten()?;
        let is_kept = |path: &PathBuf| {
            !path
                .iter()
                .any(|part| SKIPPED.iter().any(|name| part.as_encoded_bytes() == name.as_bytes()))
        };
        let is_marker = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| BUILD_MARKERS.iter().any(|marker| name == *marker))
        };
        let found = report.files.iter().map(|file| &file.path).filter(is_marker);
        // A build in the tree's own directory leaves all of it source.
        let builds =
            found.filter_map(|path| path.parent()).filter(|top| !top.as_os_str().is_empty());
        let builds: Vec<PathBuf> = builds.map(Into::into).collect();
        let is_source = |path: &PathBuf| !builds.iter().any(|build| path.starts_with(build));
        let files = report.files.into_iter().map(|file| (file.path, file.modified));
        let files = files.filter(|(path, _)| is_kept(path) && is_source(path)).collect();
        report.truncation.is_none().then_some(Self(files))
    }

    /// Compares the tree with its state now.
    pub(super) async fn changes(before: Option<Self>, context: &ToolContext) -> ChangedFiles {
        let (Some(Self(before)), Some(Self(now))) = (before, Self::of(context).await) else {
            return ChangedFiles { unknown: true, ..ChangedFiles::default() };
        };
        let changed = now.iter().filter(|(path, modified)| before.get(*path) != Some(modified));
        let deleted = before.keys().filter(|path| !now.contains_key(*path));
        let mut all: Vec<String> =
            changed.map(|(path, _)| path).chain(deleted).map(|path| shown(path)).collect();
        all.sort_unstable();
        let omitted = all.len().saturating_sub(MAX_LISTED);
        all.truncate(MAX_LISTED);
        ChangedFiles { listed: all, omitted, unknown: false }
    }
}

impl ChangedFiles {
    /// Returns a line for the reply; `None` if nothing changed.
    pub(super) fn line(&self) -> Option<String> {
        match (self.unknown, self.listed.as_slice(), self.omitted) {
            (true, _, _) => {
                Some("changed files: unknown, the tree is too large to compare".to_owned())
            }
            (false, [], _) => None,
            (false, listed, 0) => Some(format!("changed files: {}", listed.join(", "))),
            (false, listed, more) => {
                Some(format!("changed files: {} and {more} more", listed.join(", ")))
            }
        }
    }
}
