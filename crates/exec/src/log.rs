//! The full output of a command in a file, up to a limit.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// Where all output of a command goes.
#[derive(Debug)]
pub struct LogFile {
    /// The file, open for writing.
    pub file: File,
    /// Output beyond this is not written.
    pub limit: ByteSize,
}

/// How a log file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogEnd {
    /// All output is in it.
    Complete,
    /// The limit was reached; the last line says so.
    Truncated,
    /// It could not be written any further.
    Failed,
}

/// A log file being written.
#[derive(Debug)]
pub(crate) struct Log {
    file: Arc<File>,
    limit: ByteSize,
    written: u64,
    end: LogEnd,
}

impl Log {
    pub(crate) fn new(LogFile { file, limit }: LogFile) -> Self {
        Self { file: Arc::new(file), limit, written: 0, end: LogEnd::Complete }
    }

    /// Adds output. Once the log is full or broken this does nothing, so that the command goes on.
    pub(crate) async fn append(&mut self, bytes: &[u8]) {
        if self.end != LogEnd::Complete {
            return;
        }
        let room = self.limit.as_u64() - self.written;
        let fitting = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let mut text = bytes[..fitting].to_vec();
        self.written += fitting as u64;
        if fitting < bytes.len() {
            self.end = LogEnd::Truncated;
            text.extend_from_slice(
                format!("\n… log limit of {} reached …\n", self.limit).as_bytes(),
            );
        }
        if let Err(error) = self.write(text).await {
            self.end = LogEnd::Failed;
            warn!(%error, "could not write the log of a command, the rest of it is lost");
        }
    }

    /// Writes off the async threads: a full disk cache makes a write wait for the disk.
    async fn write(&self, text: Vec<u8>) -> io::Result<()> {
        let file = Arc::clone(&self.file);
        tokio::task::spawn_blocking(move || (&*file).write_all(&text))
            .await
            .map_err(io::Error::other)?
    }

    pub(crate) fn end(&self) -> LogEnd {
        self.end
    }
}
