//! The full output of a command in a file, up to a limit.
//!
//! Writing happens on blocking threads, one write at a time: the next output is read from the command
//! only after the last is in the file. So a slow disk slows the command down and costs no memory. A log
//! that is full or broken stops nothing; the command goes on without it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::log_reader::{LogProgress, LogReader};

/// A file for the whole output of a command: the bytes of both streams in the order of arrival. Separate
/// streams arrive through two pipes, so their order is that of reading; combined output is exactly in
/// the order of writing.
#[derive(Debug)]
pub struct LogFile {
    /// The file, empty and open for writing, and for reading if a [`LogReader`] is used. If absent, an
    /// unnamed temporary file is made with the first output.
    pub file: Option<File>,
    /// Output beyond this is not written.
    pub limit: ByteSize,
}

/// The completeness of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogEnd {
    /// The whole output is in it.
    Complete,
    /// The limit was reached; the last line says so.
    Truncated,
    /// Writing failed; the rest is missing.
    Failed,
}

#[derive(Debug)]
pub(crate) struct Log {
    file: Arc<OnceLock<File>>,
    limit: ByteSize,
    written: u64,
    end: LogEnd,
    /// The write in progress; a full disk cache makes it block. Returns the number of bytes.
    writing: Option<JoinHandle<io::Result<u64>>>,
    progress: watch::Sender<LogProgress>,
}

impl Log {
    pub(crate) fn new(LogFile { file, limit }: LogFile) -> Self {
        let file = file.map_or_else(OnceLock::new, OnceLock::from);
        let end = LogEnd::Complete;
        let file = Arc::new(file);
        let progress = watch::Sender::new(LogProgress { length: 0, end });
        Self { file, limit, written: 0, end, writing: None, progress }
    }

    pub(crate) fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.file), self.progress.subscribe())
    }

    /// Waits for the write in progress. Cancel-safe.
    pub(crate) async fn flushed(&mut self) {
        let Some(writing) = &mut self.writing else { return };
        let written = writing.await.map_err(io::Error::other).flatten();
        self.writing = None;
        let length = written.unwrap_or_else(|error| {
            self.end = LogEnd::Failed;
            warn!(%error, "could not write the log of a command, the rest of it is lost");
            0
        });
        self.publish(length);
    }

    /// Publishes the new length and state to readers.
    fn publish(&self, length: u64) {
        self.progress.send_modify(|progress| {
            progress.length += length;
            progress.end = self.end;
        });
    }

    /// Starts to write output; [`Log::flushed`] must have returned. Does nothing once the log is full or
    /// broken.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.end != LogEnd::Complete || self.writing.is_some() {
            return;
        }
        let left = self.limit.as_u64() - self.written;
        let fitting = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let mut text = bytes[..fitting].to_vec();
        self.written += fitting as u64;
        if fitting < bytes.len() {
            self.end = LogEnd::Truncated;
            text.extend_from_slice(
                format!("\n… log limit of {} reached …\n", self.limit).as_bytes(),
            );
        }
        let file = Arc::clone(&self.file);
        let write = move || {
            let mut file = made(&file)?;
            file.write_all(&text).map(|()| text.len() as u64)
        };
        self.writing = Some(tokio::task::spawn_blocking(write));
    }

    /// Closes the log. One with a write still in progress is incomplete.
    pub(crate) fn finish(mut self) -> LogEnd {
        if self.writing.is_some() {
            self.end = LogEnd::Failed;
            self.publish(0);
        }
        self.end
    }
}

fn made(file: &OnceLock<File>) -> io::Result<&File> {
    if let Some(file) = file.get() {
        return Ok(file);
    }
    let made = tempfile::tempfile()?;
    Ok(file.get_or_init(|| made))
}
