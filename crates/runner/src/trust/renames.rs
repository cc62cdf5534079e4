//! Renamed directories keep their trusted contents.
//!
//! `mv repo repo2` must neither report every hook of `repo` as removed nor accept those of `repo2` as
//! new. So before two snapshots are compared, baseline entries below a project or git directory are
//! moved to the path at which the same directory is now. A directory is the same if inode number and
//! birth time agree or, on file systems without birth times, if also a file inside is the same: inode
//! numbers are reused at once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use carrel_fsroot::Identity;

use super::diff::below;
use super::directory_link::rebased;
use super::snapshot::{Snapshot, WatchedEntry};

/// Moves the baseline of renamed directories to their paths in a later snapshot.
///
/// If something else stands at the old path, the baseline stays there too, so that the newcomer is
/// compared with it. Returns the baseline entries of paths that are vacant now.
pub(super) fn follow_renames(trusted: &mut Snapshot, seen: &Snapshot) -> Snapshot {
    let mut vanished = Snapshot::new();
    let arrived = seen
        .iter()
        .filter(|(path, entry)| entry.is_tracked_across_renames() && !trusted.contains_key(*path));
    let arrived: HashMap<Identity, &PathBuf> =
        arrived.map(|(path, entry)| (entry.stamp.identity, path)).collect();
    if arrived.is_empty() {
        return vanished;
    }
    let left = |path: &Path, entry: &WatchedEntry| {
        seen.get(path).is_none_or(|now| now.stamp.identity != entry.stamp.identity)
    };
    let renames: Vec<(PathBuf, PathBuf)> = trusted
        .iter()
        .filter(|(path, entry)| entry.is_tracked_across_renames() && left(path, entry))
        .filter_map(|(from, entry)| {
            arrived.get(&entry.stamp.identity).map(|to| (from.clone(), (*to).clone()))
        })
        .collect();
    for (from, to) in renames {
        if !is_same(trusted, &from, seen, &to) {
            continue;
        }
        let moved = rebased(trusted, &from, &to);
        trusted.extend(moved);
        if !seen.contains_key(&from) {
            let vacant: Vec<_> = below(trusted, &from).map(|(path, _)| path.clone()).collect();
            for path in [from].into_iter().chain(vacant) {
                vanished.extend(trusted.remove(&path).map(|entry| (path, entry)));
            }
        }
    }
    vanished
}

/// Returns whether the directory at one path of the baseline is the one at another path now.
pub(super) fn is_same(trusted: &Snapshot, from: &Path, seen: &Snapshot, to: &Path) -> bool {
    let (Some(old), Some(new)) = (trusted.get(from), seen.get(to)) else { return false };
    // The identity comes first: a scan of the files below, for each pair of directories, would be slow.
    old.stamp.identity == new.stamp.identity
        && match (old.created_at, new.created_at) {
            (Some(old), Some(new)) => old == new,
            _ => shares_a_file(trusted, from, seen, to),
        }
}

fn shares_a_file(trusted: &Snapshot, from: &Path, seen: &Snapshot, to: &Path) -> bool {
    below(trusted, from).any(|(path, entry)| {
        let now = path.strip_prefix(from).ok().and_then(|rest| seen.get(&to.join(rest)));
        now.is_some_and(|now| now.stamp.is_same_file(&entry.stamp))
    })
}
