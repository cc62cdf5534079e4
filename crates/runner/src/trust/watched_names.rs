//! The names of a directory that a scan visits.
//!
//! Where only the names of a table are watched, the directory is listed if that is cheaper than asking for each
//! name. Where directories of any name are watched (project directories, submodules, work trees), the
//! listing is bounded, and names of the earlier snapshot come first: a command that adds thousands of
//! directories cannot push a known repository out of the watch.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use carrel_fsroot::{Entry, FileKind, Root};

use super::watch_rules::{MAX_MODULE_SEARCH_DEPTH, WatchRule};

/// The most entries that are listed to find project directories, submodules and work trees.
const MAX_LISTED: usize = 64 * 1024;

/// The most directories that are watched out of one such listing.
const MAX_DIRECTORIES: usize = 4096;

/// The largest directory that is listed first where only the names of the tables are watched. Asking for
/// each of them costs a call for every name, 23 in a project directory and 44 in the workspace; a listing
/// of this size takes a few.
const LIST_UP_TO: usize = 256;

/// Directories that git makes in a git directory and in which it looks for no submodule.
const GIT_INTERNALS: [&str; 7] = ["branches", "info", "lfs", "logs", "objects", "refs", "rr-cache"];

/// Returns the names to visit, those of `before` first, and whether they are all that the rule watches.
pub(super) fn watched_names(
    directory: &Root,
    rule: WatchRule,
    before: Vec<OsString>,
) -> (Vec<OsString>, bool) {
    let more = watches_any_name(rule);
    let limit = if more { MAX_LISTED } else { LIST_UP_TO };
    let entries = directory.list_at_most(Path::new("."), limit).ok().flatten();
    let is_there = |name: &&str| entries.as_ref().is_none_or(|found| may_be_among(name, found));
    let mut names: Vec<OsString> =
        rule.table_names().into_iter().filter(is_there).map(OsString::from).collect();
    if !more {
        return (names, true);
    }
    let mut complete = entries.is_some();
    // Known names stay, however many new ones are added beside them.
    let known: HashSet<&OsString> = before.iter().collect();
    let is_repository =
        matches!(rule, WatchRule::Module(_)) && looks_bare(|part| has(directory, part));
    let is_internal = |name: &OsStr| is_repository && GIT_INTERNALS.iter().any(|one| *one == name);
    let mut found: Vec<OsString> = entries
        .into_iter()
        .flatten()
        .filter(|entry| is_watched_kind(entry.kind, rule) && !is_internal(&entry.name))
        .filter(|entry| !known.contains(&entry.name))
        .map(|entry| entry.name)
        .collect();
    let slots_left = MAX_DIRECTORIES.saturating_sub(before.len());
    complete &= found.len() <= slots_left;
    found.truncate(slots_left);
    let found = before.into_iter().chain(found).filter(|name| !names.contains(name));
    let found: Vec<_> = found.collect();
    names.extend(found);
    (names, complete)
}

/// Returns whether opening a name could find one of the entries. A case-insensitive file system finds
/// other spellings, and folds letters beyond ASCII in ways that only it knows.
fn may_be_among(name: &str, entries: &[Entry]) -> bool {
    let may_be = |entry: &Entry| !entry.name.is_ascii() || entry.name.eq_ignore_ascii_case(name);
    entries.iter().any(may_be)
}

/// Returns whether an entry is watched whose name is in no table. A link may stand for a project directory.
fn is_watched_kind(kind: FileKind, rule: WatchRule) -> bool {
    let holds_projects =
        matches!(rule, WatchRule::WorkspaceRoot { .. } | WatchRule::Repositories { .. });
    kind == FileKind::Directory || (kind == FileKind::Link && holds_projects)
}

/// Returns all names of a directory that is watched as a whole; `None` if there are too many to list.
pub(super) fn tree_names(directory: &Root, rule: WatchRule) -> Option<Vec<OsString>> {
    let entries = directory.list_at_most(Path::new("."), MAX_LISTED).ok()??;
    let entries = entries.into_iter().map(|entry| entry.name);
    Some(entries.filter(|name| !rule.ignores(name)).collect())
}

/// Returns whether a rule watches directories of any name.
///
/// A submodule's git directory is searched as well, since it may be made to look like one by a command:
/// with a `HEAD` in `modules/libs`, git still obeys `modules/libs/a`.
fn watches_any_name(rule: WatchRule) -> bool {
    match rule {
        WatchRule::Module(depth) => depth < MAX_MODULE_SEARCH_DEPTH,
        other => other.watches_other_directories(),
    }
}

/// Completes a rule with whether git takes the directory itself for a bare repository.
pub(super) fn with_bareness(directory: &Root, rule: WatchRule) -> WatchRule {
    let is_bare = || looks_bare(|part| has(directory, part));
    match rule {
        WatchRule::WorkspaceRoot { .. } => WatchRule::WorkspaceRoot { bare: is_bare() },
        WatchRule::Project { .. } => WatchRule::Project { bare: is_bare() },
        WatchRule::Repositories { .. } => WatchRule::Repositories { bare: is_bare() },
        other => other,
    }
}

/// Returns whether adding a name to a directory would make git take it for a bare repository.
pub(super) fn makes_bare(root: &Root, directory: &Path, name: &OsStr) -> bool {
    const PARTS: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];
    let exists = |name: &OsStr| root.link_metadata(&directory.join(name)).is_ok();
    PARTS.iter().any(|part| *part == name)
        && !exists(name)
        && looks_bare(|part| name == part || exists(OsStr::new(part)))
}

/// Returns whether git takes a directory with these names for a repository.
fn looks_bare(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

fn has(directory: &Root, name: &str) -> bool {
    directory.link_metadata(Path::new(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_be(name: &str, entries: &[&str]) -> bool {
        let entry = |name: &&str| Entry { name: name.into(), kind: FileKind::File };
        may_be_among(name, &entries.iter().map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn a_name_is_asked_for_unless_no_file_system_would_find_it() {
        assert!(may_be(".git", &["src", ".git"]));
        assert!(may_be(".git", &["src", ".GIT"]));
        assert!(may_be(".zshrc", &["src", ".z\u{17f}hrc"]));
        assert!(!may_be(".git", &["src", ".gitignore"]));
        assert!(!may_be(".git", &[]));
    }
}
