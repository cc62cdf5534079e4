//! The state of files on disk: what has changed since it was looked at last.
//!
//! A file's stamp is its inode, its size and the times of its last change, which only the kernel sets. A file that
//! changed in the moment of its reading could change again without a new time on kernels with coarse clocks, so its
//! stamp counts as doubtful, and its content is compared the next time.

use std::fmt;
use std::path::Path;
use std::string::FromUtf8Error;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use carrel_fsroot::{Identity, Metadata, Root};

/// The step of the coarsest clock for file times, with a margin.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The largest file that is sent to a server.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 12 << 20;

/// The BLAKE3 digest of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Returns the digest of a content.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// Returns a digest that was computed elsewhere.
    pub const fn from_bytes(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Returns the bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The state of a file on disk, which changes with every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    identity: Identity,
    size: u64,
    modified: SystemTime,
    changed: SystemTime,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            identity: metadata.identity,
            size: metadata.size,
            modified: metadata.modified,
            changed: metadata.changed,
        }
    }

    /// Returns whether the file may have changed again at the time `looked` without a new stamp.
    pub(crate) fn is_doubtful(&self, looked: SystemTime) -> bool {
        let newest = self.modified.max(self.changed);
        looked.duration_since(newest).is_ok_and(|age| age < CLOCK_STEP) || newest > looked
    }
}

/// A file as it was read.
#[derive(Clone, Debug)]
pub(crate) struct ReadFile {
    pub(crate) stamp: Stamp,
    /// The text, or the bytes of a file that is not UTF-8.
    content: Result<String, Vec<u8>>,
    /// Computed when it is asked for: most files are compared with a text that is there.
    hash: OnceLock<ContentHash>,
}

impl ReadFile {
    /// Reads a file. Blocks.
    pub(crate) fn read(files: &Root, path: &Path) -> Result<Self, carrel_fsroot::Error> {
        let opened = files.read_opened(path, MAX_DOCUMENT_BYTES)?;
        let content = String::from_utf8(opened.bytes).map_err(FromUtf8Error::into_bytes);
        Ok(Self { stamp: Stamp::of(&opened.metadata), content, hash: OnceLock::new() })
    }

    /// Returns the text; none if the file is not UTF-8.
    pub(crate) fn text(&self) -> Option<&str> {
        self.content.as_deref().ok()
    }

    pub(crate) fn into_text(self) -> Option<String> {
        self.content.ok()
    }

    pub(crate) fn hash(&self) -> ContentHash {
        let bytes = || self.content.as_ref().map_or_else(Vec::as_slice, String::as_bytes);
        *self.hash.get_or_init(|| ContentHash::of(bytes()))
    }
}
