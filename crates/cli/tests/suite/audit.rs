//! Everything about a tree of files, to be compared with itself later.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What one entry is and holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: &'static str,
    pub(crate) contents: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) links: u64,
    pub(crate) inode: u64,
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
    pub(crate) accessed: (i64, i64),
}

/// A tree, by paths relative to its top, which is there as the empty path.
pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

/// Looks at everything in a tree. Access times are read before anything is opened.
pub(crate) fn tree(top: &Path) -> Tree {
    let mut found = Tree::new();
    let mut next = vec![PathBuf::new()];
    while let Some(relative) = next.pop() {
        let path = top.join(&relative);
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let kind = metadata.file_type();
        let (kind, contents) = match () {
            () if kind.is_symlink() => {
                let target = std::fs::read_link(&path).unwrap();
                ("link", target.as_os_str().as_bytes().to_vec())
            }
            () if kind.is_dir() => {
                let entries = std::fs::read_dir(&path).unwrap();
                next.extend(entries.map(|entry| relative.join(entry.unwrap().file_name())));
                ("directory", Vec::new())
            }
            () if kind.is_file() => ("file", std::fs::read(&path).unwrap()),
            () if kind.is_fifo() => ("fifo", Vec::new()),
            () if kind.is_socket() => ("socket", Vec::new()),
            () => ("device", Vec::new()),
        };
        let entry = Entry {
            kind,
            contents,
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            links: metadata.nlink(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            accessed: (metadata.atime(), metadata.atime_nsec()),
        };
        found.insert(relative, entry);
    }
    found
}

/// Forgets when things were looked at, which a look changes.
pub(crate) fn without_access(mut tree: Tree) -> Tree {
    for entry in tree.values_mut() {
        entry.accessed = (0, 0);
    }
    tree
}

/// Says in what two trees differ: one line for each entry, nothing if they are the same.
pub(crate) fn difference(before: &Tree, after: &Tree) -> Vec<String> {
    let short = |entry: &Entry| {
        let contents =
            String::from_utf8_lossy(&entry.contents).chars().take(60).collect::<String>();
        format!("{:?}", Entry { contents: contents.into_bytes(), ..entry.clone() })
    };
    let mut lines = Vec::new();
    for (path, old) in before {
        match after.get(path) {
            None => lines.push(format!("{} is gone", path.display())),
            Some(new) if new != old => {
                lines.push(format!("{}: {} → {}", path.display(), short(old), short(new)));
            }
            Some(_) => {}
        }
    }
    for (path, new) in after {
        if !before.contains_key(path) {
            lines.push(format!("{} is new: {}", path.display(), short(new)));
        }
    }
    lines
}
