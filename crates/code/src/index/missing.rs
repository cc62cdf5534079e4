//! The files of an index that a walk of the tree has not found.
//!
//! A walk that has seen everything decides: what it does not list has gone, or is ignored now. One that was cut, or
//! that could not read a directory, says nothing about the rest, so that each file is looked for on its own. Files that
//! are there stay in the index, and so do those of which that cannot be told; files that have gone leave it.

use std::path::Path;

use carrel_fsroot::{FileKind, Root};
use carrel_search::FileList;

/// Tells whether a file of the index is to leave it after a walk.
pub(super) fn has_gone(root: &Root, list: &FileList, path: &Path) -> bool {
    if list.files.binary_search_by(|file| file.path.as_path().cmp(path)).is_ok() {
        return false;
    }
    if !list.is_cut && list.unreadable.total == 0 {
        return true;
    }
    match root.link_metadata(path) {
        Ok(metadata) => metadata.kind != FileKind::File || is_visited(list, path),
        Err(error) => error.is_not_found(),
    }
}

/// Tells whether the walk has seen the place of a file, so that a file that it does not list is ignored.
fn is_visited(list: &FileList, path: &Path) -> bool {
    let unreadable = &list.unreadable;
    let are_all_known = unreadable.total == unreadable.first.len() as u64;
    let is_below = unreadable.first.iter().any(|failure| path.starts_with(&failure.path));
    !list.is_cut && are_all_known && !is_below
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests build trees")]
mod tests {
    use super::*;
    use carrel_search::{Cancel, ReadFailure, Scope, source_files};
    use pretty_assertions::assert_eq;

    /// Returns the files that leave an index after a walk.
    fn gone(change: impl Fn(&mut FileList)) -> Vec<&'static str> {
        let directory = tempfile::tempdir().unwrap();
        for path in ["closed/kept.py", "open/kept.py", "open/listed.py"] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = Root::open(directory.path()).unwrap();
        let mut list = source_files(&Scope::whole(&root), |_| true, &Cancel::new()).unwrap();
        list.files.retain(|file| file.path == Path::new("open/listed.py"));
        change(&mut list);
        let known = [
            "closed/deleted.py",
            "closed/kept.py",
            "open/deleted.py",
            "open/kept.py",
            "open/listed.py",
        ];
        known.into_iter().filter(|path| has_gone(&root, &list, Path::new(path))).collect()
    }

    #[test]
    fn a_whole_walk_decides() {
        let all_but_listed =
            ["closed/deleted.py", "closed/kept.py", "open/deleted.py", "open/kept.py"];
        assert_eq!(gone(|_| {}), all_but_listed);
    }

    #[test]
    fn after_a_cut_walk_only_deleted_files_leave() {
        assert_eq!(gone(|list| list.is_cut = true), ["closed/deleted.py", "open/deleted.py"]);
    }

    #[test]
    fn files_below_an_unreadable_directory_stay_unless_they_were_deleted() {
        let close = |list: &mut FileList| {
            list.unreadable.total = 1;
            let reason = "permission denied".to_owned();
            list.unreadable.first.push(ReadFailure { path: "closed".into(), reason });
        };
        assert_eq!(gone(close), ["closed/deleted.py", "open/deleted.py", "open/kept.py"]);
        let several = |list: &mut FileList| {
            close(list);
            list.unreadable.total = 99;
        };
        assert_eq!(gone(several), ["closed/deleted.py", "open/deleted.py"]);
    }
}
