//! The full output of a command in a file, up to a limit.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
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
    /// The write that is under way, off the async threads: a full disk cache makes it wait.
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl Log {
    pub(crate) fn new(LogFile { file, limit }: LogFile) -> Self {
        Self { file: Arc::new(file), limit, written: 0, end: LogEnd::Complete, writing: None }
    }

    /// Waits until what was added is written. Nothing is lost if the wait is given up.
    pub(crate) async fn settled(&mut self) {
        let Some(writing) = &mut self.writing else { return };
        let written = writing.await.map_err(io::Error::other).flatten();
        self.writing = None;
        if let Err(error) = written {
            self.end = LogEnd::Failed;
            warn!(%error, "could not write the log of a command, the rest of it is lost");
        }
    }

    /// Adds output to a log that is settled. Once the log is full or broken this does nothing, so
    /// that the command goes on.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.end != LogEnd::Complete || self.writing.is_some() {
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
        let file = Arc::clone(&self.file);
        self.writing = Some(tokio::task::spawn_blocking(move || (&*file).write_all(&text)));
    }

    /// Returns how the log ended. One that did not settle is not complete.
    pub(crate) fn end(&self) -> LogEnd {
        if self.writing.is_some() { LogEnd::Failed } else { self.end }
    }
}
