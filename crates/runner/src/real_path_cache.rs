//! Where paths of the operator lead.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use carrel_domain::sync;

/// How long an answer is good for. Cells that are made at the same time share it; a cell follows no link,
/// so one that is made from an answer which is not true any more fails.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// How many answers are kept.
const MAX_KEPT: usize = 1024;

/// Where paths lead: the real path, or nothing if there is nothing.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts(Mutex<HashMap<PathBuf, (Instant, Option<PathBuf>)>>);

impl Whereabouts {
    /// Returns where a path leads.
    pub(crate) fn of(&self, path: &Path) -> Option<PathBuf> {
        let now = Instant::now();
        let mut kept = sync::lock(&self.0);
        if let Some((_, real)) = kept.get(path).filter(|(since, _)| now - *since < GOOD_FOR) {
            return real.clone();
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let real = real(path);
        kept.insert(path.to_owned(), (now, real.clone()));
        real
    }
}

#[expect(clippy::disallowed_methods, reason = "an operator's path of the host")]
fn real(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}
