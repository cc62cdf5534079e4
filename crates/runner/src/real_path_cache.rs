//! A short-lived cache of resolved paths of the host.
//!
//! Every cell binds the same few dozen paths of the policy and the toolchains, and resolving them takes
//! a system call for each component. Cells that are made at the same time share the results. A stale
//! result is safe: a cell follows no link while it mounts, so a path that has changed fails.

use carrel_domain::sync;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The time for which a result is used.
const VALID_FOR: Duration = Duration::from_secs(1);

/// The most paths that are kept, which bounds the memory.
const MAX_PATHS: usize = 1024;

/// Real paths, or `None` for paths that do not exist, with the time of their resolution.
#[derive(Debug, Default)]
pub(crate) struct RealPathCache(Mutex<HashMap<PathBuf, (Instant, Option<PathBuf>)>>);

impl RealPathCache {
    /// Returns the real path, or `None` if there is none.
    pub(crate) fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let now = Instant::now();
        let mut paths = sync::lock(&self.0);
        if let Some((_, real)) = paths.get(path).filter(|(since, _)| now - *since < VALID_FOR) {
            return real.clone();
        }
        if paths.len() >= MAX_PATHS {
            paths.clear();
        }
        let real = canonicalize(path);
        paths.insert(path.to_owned(), (now, real.clone()));
        real
    }
}

#[expect(clippy::disallowed_methods, reason = "an operator's path of the host")]
fn canonicalize(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}
