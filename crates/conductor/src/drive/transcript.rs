//! Transcripts of runs: one JSON object per line and event, in `runs/<key>/<run>.jsonl`.
//!
//! One thread writes the files of all runs, so that no run waits for the disk; a run that produces lines
//! faster than the thread writes them is slowed down by the bounded queue. Lines are flushed when the queue is
//! empty, not synced: a transcript is an aid to people, and its loss in a power failure costs no state.
//! Secrets are redacted before a line is queued. Size is bounded per line, per run and per issue.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{Clock, Identifier, Secret, WorkspaceKey};
use carrel_fsroot::Root;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use super::conductor_directory::ConductorDirectory;
use crate::claimed_issue::RunId;
use crate::effect::Dispatch;

/// The size of one transcript; then it ends with `transcript_full`.
const MAX_BYTES: usize = 16 << 20;

/// The length of one line; a longer one is replaced by its beginning.
const MAX_LINE_BYTES: usize = 256 << 10;

/// Transcripts per issue; the oldest are removed when a run starts.
const MAX_KEPT: usize = 20;

/// Lines that wait for the thread.
const QUEUED_LINES: usize = 256;

/// A handle to the transcript thread, which ends with the last handle.
#[derive(Clone, Debug)]
pub(super) struct TranscriptWriter {
    requests: mpsc::Sender<WriteRequest>,
    directory: Arc<Path>,
}

#[derive(Debug)]
enum WriteRequest {
    Begin(u64, PathBuf),
    Line(u64, String),
    Close(u64, oneshot::Sender<()>),
}

impl TranscriptWriter {
    pub(super) fn start(home: &ConductorDirectory) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUED_LINES);
        let writer = WriterThread { files: Arc::clone(&home.files), open: HashMap::new() };
        std::thread::Builder::new()
            .name("transcripts".to_owned())
            .spawn(move || writer.run(queue))?;
        Ok(Self { requests, directory: home.path.as_path().into() })
    }

    pub(super) fn path(&self, identifier: &str, run: RunId) -> PathBuf {
        self.directory.join(relative_path(identifier, run.0))
    }

    /// Begins the transcript of a run. If it cannot be written, that is logged once and the run continues.
    pub(super) async fn begin(
        &self,
        start: &Dispatch,
        secrets: Vec<Secret>,
        clock: Arc<dyn Clock>,
    ) -> Transcript {
        let run = start.run.0;
        // A thread that has ended has logged its error.
        let path = relative_path(&start.issue.identifier, run);
        let _ = self.requests.send(WriteRequest::Begin(run, path)).await;
        Transcript { run, requests: self.requests.clone(), secrets, clock }
    }
}

/// Opens a transcript and returns it with its current length; `None` if it was removed.
pub(super) fn open(
    files: &Root,
    identifier: &str,
    run: u64,
) -> Result<Option<(File, u64)>, carrel_fsroot::Error> {
    match files.open_file(&relative_path(identifier, run)) {
        Ok((file, metadata)) => Ok(Some((file, metadata.size))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the path of a transcript relative to the conductor's directory.
fn relative_path(identifier: &str, run: u64) -> PathBuf {
    let identifier = Identifier::parse(identifier);
    let key = identifier.map(|identifier| WorkspaceKey::derive(&identifier).to_string());
    let key = key.unwrap_or_else(|_| "issue".to_owned());
    Path::new("runs").join(key).join(format!("{run}.jsonl"))
}

#[derive(Debug)]
pub(super) struct Transcript {
    run: u64,
    requests: mpsc::Sender<WriteRequest>,
    secrets: Vec<Secret>,
    clock: Arc<dyn Clock>,
}

impl Transcript {
    /// Appends an event. The members of an object are merged into the line.
    pub(super) async fn note(&self, event: &str, detail: Value) {
        let mut line = json!({ "at": self.clock.now(), "event": event });
        match detail {
            Value::Object(fields) => line.as_object_mut().expect("made above").extend(fields),
            Value::Null => {}
            other => line["detail"] = other,
        }
        let line = self.secrets.iter().fold(line.to_string(), |text, secret| secret.mask(&text));
        let _ = self.requests.send(WriteRequest::Line(self.run, truncate_line(line, event))).await;
    }

    /// Ends the transcript, and returns when it is written.
    pub(super) async fn close(&self) {
        let (done, written) = oneshot::channel();
        let _ = self.requests.send(WriteRequest::Close(self.run, done)).await;
        let _ = written.await;
    }
}

/// Replaces a line that exceeds [`MAX_LINE_BYTES`].
fn truncate_line(line: String, event: &str) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    let beginning: String = line.chars().take(MAX_LINE_BYTES / 8).collect();
    json!({ "event": event, "cut": beginning, "bytes": line.len() }).to_string()
}

struct WriterThread {
    files: Arc<Root>,
    open: HashMap<u64, OpenTranscript>,
}

struct OpenTranscript {
    file: BufWriter<File>,
    left: usize,
}

impl WriterThread {
    fn run(mut self, mut requests: mpsc::Receiver<WriteRequest>) {
        while let Some(request) = requests.blocking_recv() {
            let (run, written, done) = match request {
                WriteRequest::Begin(run, path) => (run, self.begin(run, &path), None),
                WriteRequest::Line(run, line) => {
                    (run, self.write(run, &line, requests.is_empty()), None)
                }
                WriteRequest::Close(run, done) => (run, self.close(run), Some(done)),
            };
            if let Err(error) = written {
                self.open.remove(&run);
                warn!(run, %error, "A transcript cannot be written");
            }
            if let Some(done) = done {
                let _ = done.send(());
            }
        }
    }

    fn begin(&mut self, run: u64, path: &Path) -> Result<(), Box<dyn Error>> {
        let directory = path.parent().unwrap_or(Path::new("runs"));
        self.files.create_directories(directory, 0o700)?;
        remove_oldest(&self.files, directory);
        let file = BufWriter::new(self.files.open_or_create(path, 0o600)?);
        self.open.insert(run, OpenTranscript { file, left: MAX_BYTES });
        Ok(())
    }

    fn write(&mut self, run: u64, line: &str, nothing_waits: bool) -> Result<(), Box<dyn Error>> {
        let Some(transcript) = self.open.get_mut(&run) else { return Ok(()) };
        Ok(transcript.write(line, nothing_waits)?)
    }

    fn close(&mut self, run: u64) -> Result<(), Box<dyn Error>> {
        let Some(mut transcript) = self.open.remove(&run) else { return Ok(()) };
        Ok(transcript.file.flush()?)
    }
}

impl OpenTranscript {
    fn write(&mut self, line: &str, nothing_waits: bool) -> io::Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        if line.len() + 1 > self.left {
            self.left = 0;
            writeln!(self.file, "{}", json!({ "event": "transcript_full" }))?;
            return self.file.flush();
        }
        self.left -= line.len() + 1;
        writeln!(self.file, "{line}")?;
        if nothing_waits { self.file.flush() } else { Ok(()) }
    }
}

/// Removes the oldest transcripts of an issue. A failed removal is repeated at the next run.
fn remove_oldest(files: &Root, directory: &Path) {
    let Ok(entries) = files.list(directory) else { return };
    let number = |name: &OsStr| name.to_str()?.strip_suffix(".jsonl")?.parse::<u64>().ok();
    let runs = entries.iter().filter_map(|entry| Some((number(&entry.name)?, &entry.name)));
    let mut runs: Vec<_> = runs.collect();
    runs.sort_unstable();
    let surplus = (runs.len() + 1).saturating_sub(MAX_KEPT);
    for (_, name) in runs.into_iter().take(surplus) {
        let _ = files.remove_file(&directory.join(name));
    }
}
