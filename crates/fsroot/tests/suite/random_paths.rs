//! Random operations on random paths; the fuzz target `paths` runs the same.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use carrel_fsroot::{Collision, Durability, Error, Root, UsageLimit, WalkControl, WriteOptions};

const SECRET: &[u8] = b"the outside";

/// How many bytes of the input make one operation with two paths.
const OPERATION_BYTES: usize = 24;

/// Names that lead somewhere interesting; a byte of the input picks one.
const NAMES: [&str; 16] = [
    "..", ".", "a", "b", "out", "absolute", "up", "loop", "file", "new", "home", "missing", "",
    "/", "a/..", "climb",
];

/// A root beside an `outside` that nothing may touch.
pub(crate) struct RandomWorld {
    directory: tempfile::TempDir,
    root: Root,
}

impl RandomWorld {
    /// Makes one in memory, which allows many operations each second.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        for name in ["inside", "outside"] {
            std::fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        std::fs::write(directory.path().join("outside/secret"), SECRET).expect("a file");
        let root = Root::open(&directory.path().join("inside")).expect("a root");
        Self { directory, root }
    }

    /// Does what the bytes say, and then looks whether the outside is untouched.
    pub(crate) fn run(&self, bytes: &[u8]) {
        self.restore();
        for step in bytes.chunks(OPERATION_BYTES) {
            let Some((operation, rest)) = step.split_first() else { continue };
            let (left, right) = rest.split_at(rest.len() / 2);
            // Most are refused; what counts is that none acts outside.
            let _ = self.act(*operation, &path(left), &path(right));
        }
        let outside = self.directory.path().join("outside");
        let names: Vec<_> = std::fs::read_dir(&outside)
            .expect("the outside is there")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(std::fs::read(outside.join("secret")).expect("the secret is there"), SECRET);
    }

    /// Puts back what earlier operations removed.
    fn restore(&self) {
        let inside = self.directory.path().join("inside");
        let links = [
            ("../outside", "out"),
            ("/etc", "absolute"),
            ("..", "a/up"),
            ("loop", "loop"),
            ("a", "b"),
        ];
        let absolute = [(inside.clone(), "home"), (inside.join("a/../../outside"), "climb")];
        // What is there already stays as earlier operations left it.
        let _ = std::fs::create_dir_all(inside.join("a"));
        let _ = std::fs::write(inside.join("file"), "inside");
        for (target, name) in links {
            let _ = symlink(target, inside.join(name));
        }
        for (target, name) in absolute {
            let _ = symlink(target, inside.join(name));
        }
    }

    fn act(&self, operation: u8, path: &Path, other: &Path) -> Result<(), Error> {
        let root = &self.root;
        let buffered = WriteOptions { durability: Durability::Buffered, ..WriteOptions::default() };
        match operation % 16 {
            0 => root.read(path, 100).map(|bytes| inside_only(&bytes)),
            1 => root.read_range(path, 0, 100).map(|range| inside_only(&range.bytes)),
            2 => root.browse().read(path, 100).map(|bytes| inside_only(&bytes)),
            3 => root.open_root(path)?.read(other, 100).map(|bytes| inside_only(&bytes)),
            4 => root.write(path, b"inside", buffered),
            5 => root.browse().write(path, b"inside", buffered),
            6 => root.open_or_create(path, 0o600).map(drop),
            7 => root.create_directories(path, 0o755),
            8 => root.rename(path, other, Collision::Replace),
            9 => root.remove_file(path),
            10 => root.remove_tree(path),
            11 => root.list(path).map(drop),
            12 => root.metadata(path).map(drop),
            13 => root.usage(path, UsageLimit { bytes: 1 << 20, inodes: 1000 }).map(drop),
            14 => root.walk(path, |_| Ok(WalkControl::Continue), |_| Ok(())),
            _ => root.open_root_strict(path).map(drop),
        }
    }
}

fn inside_only(bytes: &[u8]) {
    assert_ne!(bytes, SECRET, "the outside was read");
}

/// Reads two kinds of path: names from the table, and bytes as they are.
fn path(bytes: &[u8]) -> PathBuf {
    match bytes.split_first() {
        Some((kind, rest)) if kind % 2 == 0 => {
            let names: Vec<_> = rest.iter().map(|byte| NAMES[usize::from(byte % 16)]).collect();
            names.join("/").into()
        }
        Some((_, rest)) => OsStr::from_bytes(rest).into(),
        None => PathBuf::new(),
    }
}
