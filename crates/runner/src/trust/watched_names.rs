//! Which names of a directory are looked at.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use carrel_fsroot::{Entry, FileKind, Root};

use super::watch_rules::{MAX_MODULE_DEPTH, Watch};

/// How many entries are listed to find places, submodules and work trees.
const MAX_LISTED: usize = 64 * 1024;

/// How many directories out of one such list are looked at.
const MAX_DIRECTORIES: usize = 4096;

/// Up to how many entries a directory is listed where its names are all known: to ask for each of those
/// takes longer.
const FEW: usize = 256;

/// Returns the names to look at, those of `before` first, and whether those are all.
pub(super) fn watched_names(
    directory: &Root,
    watch: Watch,
    before: Vec<OsString>,
) -> (Vec<OsString>, bool) {
    let more = lists(directory, watch);
    let limit = if more { MAX_LISTED } else { FEW };
    let listed = directory.list_at_most(Path::new("."), limit).ok().flatten();
    let is_there = |name: &&str| listed.as_ref().is_none_or(|listed| may_be_among(name, listed));
    let mut names: Vec<OsString> =
        watch.names().into_iter().filter(is_there).map(OsString::from).collect();
    if !more {
        return (names, true);
    }
    let mut complete = listed.is_some();
    // Those that were known are kept, however many are put beside them.
    let known: HashSet<&OsString> = before.iter().collect();
    let mut found: Vec<OsString> = listed
        .into_iter()
        .flatten()
        .filter(|entry| counts(entry.kind, watch) && !known.contains(&entry.name))
        .map(|entry| entry.name)
        .collect();
    let room = MAX_DIRECTORIES.saturating_sub(before.len());
    complete &= found.len() <= room;
    found.truncate(room);
    let found = before.into_iter().chain(found).filter(|name| !names.contains(name));
    let found: Vec<_> = found.collect();
    names.extend(found);
    (names, complete)
}

/// Tells whether a name may lead to one of the entries. A file system may find an entry that is spelled in
/// another way, and with letters beyond ASCII in ways that only it knows.
fn may_be_among(name: &str, entries: &[Entry]) -> bool {
    let may_be = |entry: &Entry| !entry.name.is_ascii() || entry.name.eq_ignore_ascii_case(name);
    entries.iter().any(may_be)
}

/// Tells whether an entry that no table names is looked at: a link may lead to a place.
fn counts(kind: FileKind, watch: Watch) -> bool {
    let of_places = matches!(watch, Watch::Top { .. } | Watch::Repositories);
    kind == FileKind::Directory || (kind == FileKind::Link && of_places)
}

/// Returns all names of a watched tree; `None` if there are more than `room`.
pub(super) fn tree_names(directory: &Root, watch: Watch, room: usize) -> Option<Vec<OsString>> {
    let entries = directory.list_at_most(Path::new("."), MAX_LISTED).ok()??;
    let entries = entries.into_iter().map(|entry| entry.name);
    let names: Vec<_> = entries.filter(|name| !watch.leaves_out(name)).collect();
    (names.len() <= room).then_some(names)
}

/// Tells whether names beyond the fixed ones are looked for.
fn lists(directory: &Root, watch: Watch) -> bool {
    match watch {
        Watch::Top { .. } | Watch::Repositories | Watch::Modules(_) | Watch::Worktrees(_) => true,
        // Without a `HEAD` it is the first part of a longer name.
        Watch::Module(depth) => depth < MAX_MODULE_DEPTH && !has(directory, "HEAD"),
        Watch::Place { .. }
        | Watch::DotGit
        | Watch::GitDirectory(_)
        | Watch::Names(_)
        | Watch::File(_)
        | Watch::Tree { .. } => false,
    }
}

/// Finds out whether git takes a place for a repository because of what is in it.
pub(super) fn with_bareness(directory: &Root, watch: Watch) -> Watch {
    let is_bare = || {
        has(directory, "HEAD")
            && (has(directory, "commondir")
                || (has(directory, "objects") && has(directory, "refs")))
    };
    match watch {
        Watch::Top { .. } => Watch::Top { bare: is_bare() },
        Watch::Place { .. } => Watch::Place { bare: is_bare() },
        other => other,
    }
}

/// Tells whether git would take a place for a repository once a name is in it, and does not yet.
pub(super) fn makes_bare(root: &Root, place: &Path, name: &OsStr) -> bool {
    const PARTS: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];
    if !PARTS.iter().any(|part| *part == name) || has_at(root, place, name) {
        return false;
    }
    let has = |part: &str| name == part || has_at(root, place, OsStr::new(part));
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

fn has_at(root: &Root, place: &Path, name: &OsStr) -> bool {
    root.link_metadata(&place.join(name)).is_ok()
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
