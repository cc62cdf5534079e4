//! Which directories are as the last scan found them.
//!
//! Nearly all of a scan is waiting for the kernel to look at one file after the other, so the looking is shared by a few
//! threads: each takes the next directories of the last scan and looks at their names. The scan itself then goes through
//! the tree in order, and passes over what was just looked at.
//!
//! A directory counts as unchanged if its own key, those of its files, links and rules, and its mode are the known ones.
//! What is in the directories below it does not matter. Anything else is left to the scan, which looks again.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use carrel_fsroot::{Directory, Error, FileKind};

use crate::change_key::ChangeKey;
use crate::scan::DIRECTORY_MODE;
use crate::scan_cache::{Known, KnownDirectory, State};
use crate::scan_level::rule_keys;
use crate::scan_options::{Ignored, ScanOptions, Trust};

/// More threads wait for the same locks and memory.
const MAX_THREADS: usize = 4;

/// The entries from which on another thread is worth its start.
const MANY_ENTRIES: usize = if cfg!(test) { 1 } else { 500 };

/// The directories that a thread takes at once.
const BATCH: usize = if cfg!(test) { 1 } else { 16 };

/// The most bytes of a path that are opened in one step, half of `PATH_MAX`.
const MAX_STEP_BYTES: usize = 2048;

/// A directory of the last scan.
struct Place<'a> {
    path: PathBuf,
    /// None for the top, whose mode is not recorded.
    mode: Option<u32>,
    known: &'a KnownDirectory,
}

/// What the looking goes by.
struct Look<'a> {
    top: &'a Directory,
    options: &'a ScanOptions,
    held: &'a BTreeSet<PathBuf>,
}

/// Returns the directories below an open one that are as the last scan found them, by their paths.
pub(crate) fn unchanged(
    top: &Directory,
    options: &ScanOptions,
    held: &BTreeSet<PathBuf>,
    known: &KnownDirectory,
) -> HashSet<PathBuf> {
    if options.trust == Trust::Nothing {
        return HashSet::new();
    }
    let mut places = Vec::new();
    let mut entries = 0;
    collect(Place { path: PathBuf::new(), mode: None, known }, &mut places, &mut entries);
    let look = Look { top, options, held };
    let next = AtomicUsize::new(0);
    let helpers = if entries < MANY_ENTRIES { 0 } else { cores().min(MAX_THREADS) - 1 };
    let found = std::thread::scope(|scope| {
        let work = || look.at_next(&places, &next);
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        // Where there can be no more threads this one does all of it.
        let helpers: Vec<_> = (0..helpers).filter_map(spawn).collect();
        let mut found = work();
        for helper in helpers {
            match helper.join() {
                Ok(more) => found.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        found
    });
    found.into_iter().map(|place| std::mem::take(&mut places[place].path)).collect()
}

/// Adds a directory and those below it, from the highest to the deepest.
fn collect<'a>(place: Place<'a>, places: &mut Vec<Place<'a>>, entries: &mut usize) {
    if place.path.as_os_str().as_bytes().len() > MAX_STEP_BYTES {
        return;
    }
    let Place { known, .. } = place;
    let path = place.path.clone();
    *entries += known.children.len();
    if known.is_settled && known.list.is_some() {
        places.push(place);
    }
    for child in &known.children {
        if let State::Directory { mode, directory } = &child.state {
            let path = path.join(&child.name);
            collect(Place { path, mode: Some(*mode), known: directory }, places, entries);
        }
    }
}

/// Returns the number of cores that this process may use.
fn cores() -> usize {
    // Asking reads files of the control group.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

impl Look<'_> {
    /// Looks at the next directories until none is left, and returns which are unchanged.
    fn at_next(&self, places: &[Place<'_>], next: &AtomicUsize) -> Vec<usize> {
        let mut found = Vec::new();
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            if from >= places.len() {
                return found;
            }
            let batch = from..(from + BATCH).min(places.len());
            // What cannot be looked at is the scan's to explain.
            let is_unchanged = |place: &usize| self.is_unchanged(&places[*place]).unwrap_or(false);
            found.extend(batch.filter(is_unchanged));
        }
    }

    fn is_unchanged(&self, place: &Place<'_>) -> Result<bool, Error> {
        let below = place.mode.map(|_| self.top.look_up(&place.path)).transpose()?;
        let directory = below.as_ref().unwrap_or(self.top);
        let metadata = directory.metadata()?;
        let is_same_mode = place.mode.is_none_or(|mode| mode == metadata.mode & DIRECTORY_MODE);
        if !is_same_mode || place.known.key != ChangeKey::of(&metadata) {
            return Ok(false);
        }
        for child in &place.known.children {
            if !self.is_same(directory, &place.path, child)? {
                return Ok(false);
            }
        }
        Ok(rule_keys(directory, &place.known.children) == place.known.rule_keys)
    }

    fn is_same(&self, directory: &Directory, path: &Path, child: &Known) -> Result<bool, Error> {
        let (known, kind) = match &child.state {
            State::File { key, is_settled: true, .. } if self.trusts(path, child) => {
                (key, FileKind::File)
            }
            State::Link { key, .. } => (key, FileKind::Link),
            State::Directory { .. } | State::Repository => return Ok(true),
            State::LeftOut(_) => return Ok(self.leaves_alone(path, child)),
            State::File { .. } | State::Unknown => return Ok(false),
        };
        let found = directory.link_metadata(Path::new(&child.name))?;
        Ok(found.kind == kind && ChangeKey::of(&found) == *known)
    }

    fn trusts(&self, path: &Path, child: &Known) -> bool {
        self.options.trust.includes(|| path.join(&child.name))
    }

    /// Returns whether an entry is left out for the ignore rules alone.
    fn leaves_alone(&self, path: &Path, child: &Known) -> bool {
        let is_held = || !self.held.is_empty() && self.held.contains(&path.join(&child.name));
        child.is_ignored && self.options.ignored == Ignored::LeftAlone && !is_held()
    }
}
