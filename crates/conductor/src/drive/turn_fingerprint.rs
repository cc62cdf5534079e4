//! Fingerprints of turns, to detect a turn without progress.
//!
//! A fingerprint covers paths, modes and contents of all files but `.git`, the git references, and the
//! agent's last message. File times do not count, so rewriting the same content is no progress.

use std::io::Read as _;
use std::path::Path;

use carrel_domain::hex;
use carrel_fsroot::{Error, FileKind, Metadata, Root, WalkControl};
use sha2::{Digest as _, Sha256};

use crate::claimed_issue::TurnFingerprint;

/// Files that are hashed. A larger tree has no fingerprint, and none of its turns counts as without
/// progress.
const MAX_FILES: usize = 200_000;

/// Bytes of contents that are hashed. For files beyond them the modification time counts instead.
const MAX_BYTES: u64 = 64 << 20;

/// The git files that change with a commit or a checkout. The index is left out, since reading commands
/// refresh it.
const GIT: [&str; 3] = [".git/HEAD", ".git/packed-refs", ".git/refs"];

/// Returns the fingerprint of a workspace and a message; `None` for a tree that is too large or unreadable.
pub(super) fn of(files: &Root, answer: &str) -> Option<TurnFingerprint> {
    let mut sum = Sum { hash: Sha256::new(), files: 0, bytes: 0 };
    sum.add_tree(files, Path::new(".")).ok()?;
    for part in GIT {
        let part = Path::new(part);
        match files.link_metadata(part) {
            Ok(found) if found.kind == FileKind::Directory => sum.add_tree(files, part).ok()?,
            Ok(found) => sum.add(files, part, &found),
            Err(_) => {}
        }
    }
    let tree = (sum.files <= MAX_FILES).then(|| hex::encode(&sum.hash.finalize()))?;
    Some(TurnFingerprint { tree, answer: hex::encode(&Sha256::digest(answer.as_bytes())) })
}

struct Sum {
    hash: Sha256,
    files: usize,
    bytes: u64,
}

impl Sum {
    fn add_tree(&mut self, files: &Root, below: &Path) -> Result<(), Error> {
        let top = below == Path::new(".");
        files.walk(
            below,
            |visit| {
                if top && visit.path.file_name().is_some_and(|name| name == ".git") {
                    return Ok(WalkControl::Skip);
                }
                self.files += 1;
                if self.files > MAX_FILES {
                    return Ok(WalkControl::Stop);
                }
                let path = if top { visit.path.to_owned() } else { below.join(visit.path) };
                if let Some(found) = visit.metadata()? {
                    self.add(files, &path, &found);
                }
                Ok(WalkControl::Continue)
            },
            |_| Ok(()),
        )
    }

    fn add(&mut self, files: &Root, path: &Path, found: &Metadata) {
        self.field(path.as_os_str().as_encoded_bytes());
        self.field(&found.mode.to_le_bytes());
        match found.kind {
            FileKind::File => self.add_contents(files, path, found),
            FileKind::Link => {
                let target = files.read_link(path).unwrap_or_default();
                self.field(target.as_os_str().as_encoded_bytes());
            }
            _ => {}
        }
    }

    fn add_contents(&mut self, files: &Root, path: &Path, found: &Metadata) {
        self.field(&found.size.to_le_bytes());
        self.bytes = self.bytes.saturating_add(found.size);
        if self.bytes <= MAX_BYTES
            && let Ok((file, _)) = files.open_file(path)
        {
            let mut contents = Vec::new();
            // A file that grows meanwhile differs in its size anyway.
            let _ = file.take(found.size).read_to_end(&mut contents);
            self.field(&contents);
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
    fn contents_names_and_commits_count_and_times_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let files = Root::open(directory.path()).unwrap();
        fs::create_dir_all(at(".git/refs/heads")).unwrap();
        fs::write(at(".git/refs/heads/main"), "one").unwrap();
        fs::write(at(".git/index"), "one").unwrap();
        fs::write(at("a"), "one").unwrap();
        let mut seen = vec![of(&files, "done").unwrap()];
        let mut changed = |what: &str, expected: bool| {
            let trace = of(&files, "done").unwrap();
            assert_eq!(!seen.contains(&trace), expected, "{what}");
            seen.push(trace);
        };
        fs::write(at("a"), "one").unwrap();
        fs::write(at(".git/index"), "two").unwrap();
        changed("the same again", false);
        fs::write(at("a"), "two").unwrap();
        changed("contents", true);
        fs::rename(at("a"), at("b")).unwrap();
        changed("a name", true);
        fs::write(at(".git/refs/heads/main"), "two").unwrap();
        changed("a commit", true);
        assert_ne!(of(&files, "other"), of(&files, "done"));
    }
}
