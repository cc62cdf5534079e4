//! Reads the log of a command from any position, while it runs and afterwards.
//!
//! A reader shares the file with the writer and follows its progress through a watch channel: a length
//! up to which the file can be read. Each read states its own position, so any number of readers can
//! poll or wait independently.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use carrel_domain::{Code, Coded};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::capture::without_torn_end;
use crate::log_file::LogEnd;
use crate::tasks::blocking;

/// The most bytes of one read, so that no reader can load a whole log into memory.
pub const MAX_READ_BYTES: usize = 1 << 20;

/// A position in a log, in bytes from its beginning.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cursor(pub u64);

impl Cursor {
    /// The beginning.
    pub const START: Self = Self(0);

    fn plus(self, bytes: usize) -> Self {
        Self(self.0 + bytes as u64)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes as the command printed them.
    pub bytes: Vec<u8>,
    /// The position of the next part.
    pub next: Cursor,
    /// Set if the command has ended and nothing follows.
    pub end: bool,
    /// Set if output is missing: the limit was reached, or writing failed.
    pub truncated: bool,
}

impl Chunk {
    /// Returns the bytes as text, with invalid sequences replaced, and the position of the next part.
    ///
    /// A character that is cut at the end is left to the next part, unless there is nothing else: the
    /// cursor advances whenever there are bytes.
    pub fn to_text(&self) -> (String, Cursor) {
        let whole = without_torn_end(&self.bytes);
        let kept = if self.end || whole.is_empty() { &self.bytes[..] } else { whole };
        let left = (self.bytes.len() - kept.len()) as u64;
        (String::from_utf8_lossy(kept).into_owned(), Cursor(self.next.0 - left))
    }
}

/// The reason why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The position is beyond the log.
    #[error("cursor {cursor} is beyond the log, which has 0 to {end}")]
    BeyondEnd {
        /// The requested position.
        cursor: Cursor,
        /// The end of the log.
        end: Cursor,
    },
    /// The file could not be read.
    #[error("could not read the log of a command")]
    Io(#[source] io::Error),
}

impl Coded for ReadError {
    fn code(&self) -> Code {
        match self {
            Self::BeyondEnd { .. } => Code::InvalidCursor,
            Self::Io(_) => Code::Io,
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::BeyondEnd { cursor, end } => {
                json!({ "cursor": cursor, "first": Cursor::START, "last": end })
            }
            Self::Io(_) => json!({}),
        }
    }
}

/// The state of a log file. The writer drops its end of the channel when the log is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogProgress {
    pub(crate) length: u64,
    pub(crate) end: LogEnd,
}

/// A reader of a command's log. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LogReader {
    /// Set as soon as there is anything to read.
    file: Arc<OnceLock<File>>,
    progress: watch::Receiver<LogProgress>,
}

impl LogReader {
    pub(crate) fn new(file: Arc<OnceLock<File>>, progress: watch::Receiver<LogProgress>) -> Self {
        Self { file, progress }
    }

    /// Returns the end of the log at this moment.
    pub fn end(&self) -> Cursor {
        Cursor(self.progress.borrow().length)
    }

    /// Reads at most `at_most` bytes, and never more than [`MAX_READ_BYTES`], without waiting for
    /// more output. A command that is still running may have none beyond `from`.
    pub async fn read(&self, from: Cursor, at_most: usize) -> Result<Chunk, ReadError> {
        // Checked before the length: nothing is added after the end.
        let over = self.progress.has_changed().is_err();
        let LogProgress { length, end } = *self.progress.borrow();
        let left = Self::left(from, Cursor(length))?;
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(at_most).min(MAX_READ_BYTES);
        let bytes = self.read_at(from, wanted).await.map_err(ReadError::Io)?;
        let next = from.plus(bytes.len());
        let truncated = end != LogEnd::Complete;
        Ok(Chunk { bytes, next, end: over && next.0 == length, truncated })
    }

    /// Waits until the log is longer than `from`. Returns `false` if it never will be.
    pub async fn reaches_beyond(&self, from: Cursor) -> Result<bool, ReadError> {
        Self::left(from, self.end())?;
        let mut progress = self.progress.clone();
        Ok(progress.wait_for(|progress| progress.length > from.0).await.is_ok())
    }

    fn left(from: Cursor, end: Cursor) -> Result<u64, ReadError> {
        end.0.checked_sub(from.0).ok_or(ReadError::BeyondEnd { cursor: from, end })
    }

    /// Reads on a blocking thread. `pread` does not move the writer's position.
    async fn read_at(&self, from: Cursor, length: usize) -> io::Result<Vec<u8>> {
        if length == 0 {
            return Ok(Vec::new());
        }
        let file = Arc::clone(&self.file);
        let reading = blocking(move || {
            let file = file.get().ok_or(io::ErrorKind::NotFound)?;
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, from.0).map(|()| bytes)
        });
        reading.await.map_err(io::Error::other).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn text(bytes: &[u8], end: bool) -> (String, u64) {
        let next = Cursor(100 + bytes.len() as u64);
        let chunk = Chunk { bytes: bytes.to_vec(), next, end, truncated: false };
        let (text, next) = chunk.to_text();
        (text, next.0)
    }

    #[test]
    fn text_leaves_a_torn_character_to_the_next_part() {
        assert_eq!(text("aé".as_bytes(), false), ("aé".into(), 103));
        assert_eq!(text(b"a\xc3", false), ("a".into(), 101));
        assert_eq!(text(b"a\xc3", true), ("a\u{fffd}".into(), 102));
        assert_eq!(text(b"\xc3", false), ("\u{fffd}".into(), 101));
        assert_eq!(text(b"a\xffb", false), ("a\u{fffd}b".into(), 103));
        assert_eq!(text(b"", false), (String::new(), 100));
    }
}
