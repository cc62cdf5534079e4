//! Fingerprints of a workspace's contents, to find out whether work had an effect.
//!
//! A repository is asked through git, by the same safe means as for its state: git compares contents by the index,
//! so a file that was only touched is unchanged, and it leaves ignored files out, so a log or a cache in an
//! ignored directory is no effect. Files that git lists as changed are hashed. Branches count by the tree and the
//! parents of their commit, so an amended commit with the same contents is unchanged as well. Directories outside
//! every repository, and those about which git cannot tell, are hashed file by file.
//!
//! The costs are bounded by [`MAX_FILES`], [`MAX_BYTES`] and [`DEADLINE`]. A repository of
//! 100,000 files takes 0.5 s with warm caches, measured on two cores without optimisation.

use std::collections::HashSet;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carrel_domain::{ByteSize, hex};
use carrel_exec::{CaptureLimits, LazySpawner, Stdin};
use carrel_fsroot::{FileKind, Metadata, Root, WalkControl};
use sha2::{Digest as _, Sha256};
use tracing::debug;

use super::repositories::{self, FoundRepository};
use super::{CAPTURE, UNPUSHED};
use crate::blocking::blocking;
use crate::error::Error;
use crate::workspaces::Workspaces;

/// The time for all git commands about one workspace; afterwards its files are hashed instead.
const DEADLINE: Duration = Duration::from_secs(20);

/// Files that are hashed. A workspace with more changed ones has no fingerprint of its files.
const MAX_FILES: usize = 200_000;

/// Bytes of contents that are hashed. For files beyond them the modification time counts instead.
const MAX_BYTES: u64 = 64 << 20;

/// The part of a file that is in memory while it is hashed.
const CHUNK_BYTES: usize = 64 << 10;

const MAX_HEAD_BYTES: u64 = 4096;

/// The most output of `git status`: some two hundred thousand paths.
const STATUS_CAPTURE: CaptureLimits =
    CaptureLimits { head: ByteSize::mib(16), tail: ByteSize::kib(1) };

/// Nested repositories have fingerprints of their own. Renames need not be found to be noticed.
const STATUS: [&str; 6] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--untracked-files=all",
    "--ignore-submodules=all",
    "--no-renames",
];

/// Branches of remotes are left out: a fetch is no work. A push shows in the number of unpushed commits.
const REFERENCES: [&str; 5] = [
    "for-each-ref",
    "--format=%(refname) %(objecttype) %(tree) %(parent) %(*objectname)",
    "refs/heads",
    "refs/tags",
    "refs/stash",
];

/// The git files that change with a commit or a checkout, for repositories about which git cannot tell.
const REFERENCE_FILES: [&str; 3] = [".git/HEAD", ".git/packed-refs", ".git/refs"];

/// The fingerprint of a workspace. Equal ones mean that nothing changed that counts as work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// A SHA-256 over names, modes and contents of files, ignored ones aside; `None` if there are too many.
    pub files: Option<String>,
    /// A SHA-256 over branches, tags and stashes of all repositories.
    pub commits: String,
}

/// The answers of git about one repository.
struct GitTree {
    path: PathBuf,
    status: Vec<u8>,
    commits: String,
}

impl Workspaces {
    pub(crate) async fn fingerprint(
        &self,
        workspace: &Root,
        spawner: &LazySpawner,
    ) -> Result<Fingerprint, Error> {
        let until = Instant::now() + DEADLINE;
        let clone = || workspace.try_clone().map_err(Error::files("could not open the workspace"));
        let files = clone()?;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for found in blocking(move || repositories::repositories(&files)).await? {
            let FoundRepository { path, git_directory } = found;
            let asked = self.git_tree(workspace, &path, git_directory, spawner, until).await;
            match asked {
                Ok(tree) => known.push(tree),
                Err(reason) => {
                    debug!(path = %path.display(), reason, "git cannot tell, so files are hashed");
                    unknown.push(path);
                }
            }
        }
        let files = clone()?;
        blocking(move || Ok(fingerprint(&files, &known, &unknown))).await
    }

    async fn git_tree(
        &self,
        workspace: &Root,
        path: &Path,
        git_directory: Result<Root, String>,
        spawner: &LazySpawner,
        until: Instant,
    ) -> Result<GitTree, String> {
        let git_directory = git_directory?;
        let head = git_directory.read(Path::new("HEAD"), MAX_HEAD_BYTES);
        let head = head.map_err(|error| error.to_string())?;
        let worktree = workspace.open_root(path).map_err(|error| error.to_string())?;
        let repository = self.open_repository(worktree, git_directory, spawner, until).await?;
        let query = repository.query();
        let detached = !head.starts_with(b"ref:");
        let head_commit = async {
            let show = ["log", "-1", "--format=%T %P", "HEAD", "--"];
            if detached { query.git(&show, Stdin::Empty).await } else { Ok(String::new()) }
        };
        let (status, references, unpushed, head_commit) = tokio::try_join!(
            query.output(&STATUS, Stdin::Empty, STATUS_CAPTURE),
            query.output(&REFERENCES, Stdin::Empty, CAPTURE),
            query.git(&UNPUSHED, Stdin::Empty),
            head_commit,
        )?;
        let head = if detached { head_commit } else { String::from_utf8_lossy(&head).into_owned() };
        let references = hex::encode(&Sha256::digest(&references));
        let commits = format!("{head}\n{references}\n{unpushed}");
        Ok(GitTree { path: path.to_owned(), status, commits })
    }
}

fn fingerprint(workspace: &Root, known: &[GitTree], unknown: &[PathBuf]) -> Fingerprint {
    let mut files = Sum::new();
    let mut commits = Sum::new();
    for tree in known {
        for sum in [&mut files, &mut commits] {
            sum.field(tree.path.as_os_str().as_bytes());
        }
        commits.field(tree.commits.as_bytes());
        files.field(&tree.status);
        for path in changed_paths(&tree.status) {
            files.add_path(workspace, &tree.path.join(path));
        }
    }
    for repository in unknown {
        for part in REFERENCE_FILES {
            let path = repository.join(part);
            match workspace.link_metadata(&path) {
                Ok(found) if found.kind == FileKind::Directory => {
                    commits.add_tree(workspace, &path, &HashSet::new());
                }
                Ok(_) => commits.add_path(workspace, &path),
                Err(_) => {}
            }
        }
    }
    let known: HashSet<&Path> = known.iter().map(|tree| tree.path.as_path()).collect();
    if !known.contains(Path::new(".")) {
        files.add_tree(workspace, Path::new("."), &known);
    }
    Fingerprint { files: files.finish(), commits: commits.finish().unwrap_or_default() }
}

/// Returns the paths in the output of [`STATUS`], relative to the work tree. Nested repositories, which end with a
/// slash, are left out.
fn changed_paths(status: &[u8]) -> impl Iterator<Item = PathBuf> {
    status.split(|byte| *byte == 0).filter_map(|entry| {
        let fields = match entry.first()? {
            b'1' => 8,
            b'u' => 10,
            b'?' => 1,
            _ => return None,
        };
        let path = entry.splitn(fields + 1, |byte| *byte == b' ').nth(fields)?;
        let is_file = !path.is_empty() && !path.ends_with(b"/");
        is_file.then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
    })
}

struct Sum {
    hash: Sha256,
    files: usize,
    bytes: u64,
}

impl Sum {
    fn new() -> Self {
        Self { hash: Sha256::new(), files: 0, bytes: 0 }
    }

    /// Returns the sum; `None` if there were too many files.
    fn finish(self) -> Option<String> {
        (self.files <= MAX_FILES).then(|| hex::encode(&self.hash.finalize()))
    }

    /// Adds everything below a directory but `.git` and the work trees that git has told about. What cannot be read
    /// is left out.
    fn add_tree(&mut self, root: &Root, below: &Path, known: &HashSet<&Path>) {
        let top = below == Path::new(".");
        let walked = root.walk(
            below,
            |visit| {
                let path = if top { visit.path.to_owned() } else { below.join(visit.path) };
                let is_git = visit.path.file_name().is_some_and(|name| name == ".git");
                if is_git || known.contains(path.as_path()) {
                    return Ok(WalkControl::Skip);
                }
                if let Ok(Some(found)) = visit.metadata() {
                    self.add(root, &path, &found);
                }
                let stops = self.files > MAX_FILES;
                Ok(if stops { WalkControl::Stop } else { WalkControl::Continue })
            },
            |_| Ok(()),
        );
        if walked.is_err() {
            self.field(b"incomplete");
        }
    }

    fn add_path(&mut self, root: &Root, path: &Path) {
        match root.link_metadata(path) {
            Ok(found) => self.add(root, path, &found),
            Err(_) => self.field(b"gone"),
        }
    }

    fn add(&mut self, root: &Root, path: &Path, found: &Metadata) {
        self.files += 1;
        if self.files > MAX_FILES {
            return;
        }
        self.field(path.as_os_str().as_bytes());
        self.field(&found.mode.to_le_bytes());
        match found.kind {
            FileKind::File => self.add_contents(root, path, found),
            FileKind::Link => {
                let target = root.read_link(path).unwrap_or_default();
                self.field(target.as_os_str().as_bytes());
            }
            _ => {}
        }
    }

    fn add_contents(&mut self, root: &Root, path: &Path, found: &Metadata) {
        self.field(&found.size.to_le_bytes());
        self.bytes = self.bytes.saturating_add(found.size);
        if self.bytes <= MAX_BYTES
            && let Ok((file, _)) = root.open_file(path)
        {
            // A file that grows meanwhile differs in its size next time.
            let mut file = file.take(found.size);
            let mut chunk = vec![0; CHUNK_BYTES];
            while let Ok(read @ 1..) = file.read(&mut chunk) {
                self.hash.update(&chunk[..read]);
            }
        } else {
            let changed = found.modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            self.field(&changed.as_nanos().to_le_bytes());
        }
    }

    /// Hashes a field with its length, so that no two sequences of fields hash alike.
    fn field(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test plays the agent")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn without_git_contents_names_and_references_count_and_times_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let files = Root::open(directory.path()).unwrap();
        fs::create_dir_all(at(".git/refs/heads")).unwrap();
        fs::write(at(".git/refs/heads/main"), "one").unwrap();
        fs::write(at(".git/index"), "one").unwrap();
        fs::write(at("a"), "one").unwrap();
        let look = || fingerprint(&files, &[], &[PathBuf::from(".")]);
        let mut last = look();
        let mut differs = |what: &str, expected: (bool, bool)| {
            let now = look();
            assert_eq!((now.files != last.files, now.commits != last.commits), expected, "{what}");
            last = now;
        };
        fs::write(at("a"), "one").unwrap();
        fs::write(at(".git/index"), "two").unwrap();
        differs("the same again", (false, false));
        fs::write(at("a"), "two").unwrap();
        differs("contents", (true, false));
        fs::rename(at("a"), at("b")).unwrap();
        differs("a name", (true, false));
        fs::write(at(".git/refs/heads/main"), "two").unwrap();
        differs("a commit", (false, true));
    }

    #[test]
    fn the_paths_of_a_status_are_found_whatever_they_are_called() {
        let status = b"1 .M N... 100644 100644 100644 aaaa bbbb a b\n\xff\0? new file\0? nested/\0\
                       u UU N... 100644 100644 100644 100644 aaaa bbbb cccc both\0";
        let paths: Vec<_> = changed_paths(status).map(PathBuf::into_os_string).collect();
        let bytes: Vec<_> = paths.iter().map(|path| path.as_bytes()).collect();
        assert_eq!(bytes, [&b"a b\n\xff"[..], b"new file", b"both"]);
        assert_eq!(changed_paths(b"").count(), 0);
    }
}
