//! The full output of a command in a file, up to a limit.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use carrel_domain::ByteSize;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::reader::{LogReader, Progress};

/// Where all output of a command goes: the bytes of both streams as they are, in the order in which
/// they arrive. Streams that are kept apart arrive through two pipes, so their order is that of
/// reading them; combined output is exactly in the order of writing.
#[derive(Debug)]
pub struct LogFile {
    /// The file, empty and open for writing; for reading as well if a [`LogReader`] is to read it. If it
    /// is nothing, a file without a name is made when there is something to write.
    pub file: Option<File>,
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
    file: Arc<OnceLock<File>>,
    limit: ByteSize,
    written: u64,
    end: LogEnd,
    /// The write that is under way, off the async threads: a full disk cache makes it wait.
    /// It returns how much it has written.
    writing: Option<JoinHandle<io::Result<u64>>>,
    progress: watch::Sender<Progress>,
}

impl Log {
    pub(crate) fn new(LogFile { file, limit }: LogFile) -> Self {
        let (file, end) = (file.map_or_else(OnceLock::new, OnceLock::from), LogEnd::Complete);
        let file = Arc::new(file);
        let progress = watch::Sender::new(Progress { length: 0, end });
        Self { file, limit, written: 0, end, writing: None, progress }
    }

    pub(crate) fn reader(&self) -> LogReader {
        LogReader::new(Arc::clone(&self.file), self.progress.subscribe())
    }

    /// Waits until what was added is written. Nothing is lost if the wait is given up.
    pub(crate) async fn settled(&mut self) {
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

    /// Tells readers of bytes that they find in the file, and how the log is.
    fn publish(&self, length: u64) {
        self.progress.send_modify(|progress| {
            progress.length += length;
            progress.end = self.end;
        });
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
        let write = move || {
            let mut file = made(&file)?;
            file.write_all(&text).map(|()| text.len() as u64)
        };
        self.writing = Some(tokio::task::spawn_blocking(write));
    }

    /// Returns how the log ended, and tells its readers. One that did not settle is not complete.
    pub(crate) fn finish(mut self) -> LogEnd {
        if self.writing.is_some() {
            self.end = LogEnd::Failed;
            self.publish(0);
        }
        self.end
    }
}

/// Returns the file, which is made if it is not there yet.
fn made(file: &OnceLock<File>) -> io::Result<&File> {
    if let Some(file) = file.get() {
        return Ok(file);
    }
    let made = tempfile::tempfile()?;
    Ok(file.get_or_init(|| made))
}
