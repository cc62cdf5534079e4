//! Records and logs of jobs on disk, which outlive the server that ran them.
//!
//! A server that keeps them has a directory of its own, open to its user alone, with two files for each
//! job: `NAME.json`, the record, and `NAME.log`, the output. The name is a digest of the job's id, since the
//! id itself gives access. The record is written before the command starts, and again with the end.
//!
//! The server holds a lock on the log as long as it has the job in memory; the kernel releases it when the
//! process ends, however it ends. No other server finds a job whose log is locked, so that clients with servers
//! of their own have nothing of each other. A record without an end whose log is not locked belongs to a job that
//! ended with its server.
//!
//! Records are a convenience for clients that come back. A directory that cannot be written stops no command;
//! its log is then an unnamed file, as that of every command whose call waits for it.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use carrel_domain::{Timestamp, hex};
use carrel_exec::{ExitStatus, JobId, Outcome, Owner, Stop};
use carrel_fsroot::{Durability, Root, WriteOptions};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tracing::warn;

/// Jobs that are kept; the oldest that do not run are dropped first.
const MAX_KEPT_JOBS: usize = 128;

/// Bytes of logs that are kept together; the oldest jobs are dropped first.
const MAX_KEPT_BYTES: u64 = 1 << 30;

/// Bounds the memory that one record takes.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// Bounds the command in a record.
const MAX_COMMAND_BYTES: usize = 4 * 1024;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const RECORD: &str = "json";
const LOG: &str = "log";

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobEnd {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Lost,
    /// A client ended it.
    Killed,
    /// The session that started it ended.
    EndedWithSession,
    EndedWithServer,
}

impl JobEnd {
    pub(super) fn of(outcome: &Outcome, cause: Option<Self>) -> Self {
        match (outcome.stop, cause, outcome.end) {
            (Some(Stop::Cancelled), Some(cause), _) => cause,
            (Some(Stop::Deadline), _, _) => Self::TimedOut,
            (_, _, ExitStatus::Exited(status)) => Self::Exited(status),
            (_, _, ExitStatus::Signaled(signal)) => Self::Signaled(signal),
            (_, _, ExitStatus::Lost) => Self::Lost,
        }
    }

    /// Returns the state as tools show it: `completed (exit 0)`, `ended_with_server`.
    pub(super) fn status(self) -> String {
        match self {
            Self::Exited(status) => format!("completed (exit {status})"),
            Self::Signaled(signal) => format!("completed (signal {signal})"),
            Self::TimedOut => "completed (timed out)".to_owned(),
            Self::Lost => "lost".to_owned(),
            Self::Killed => "killed".to_owned(),
            Self::EndedWithSession => "ended_with_session".to_owned(),
            Self::EndedWithServer => "ended_with_server".to_owned(),
        }
    }
}

/// A job on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobRecord {
    /// A digest of the owner's name.
    owner: String,
    /// The directory of its workspace.
    pub(super) directory: PathBuf,
    /// With secrets masked.
    pub(super) command: String,
    pub(super) started: Timestamp,
    end: Option<JobEnd>,
}

impl JobRecord {
    pub(super) fn new(
        owner: &Owner,
        directory: &Path,
        mut command: String,
        started: Timestamp,
    ) -> Self {
        command.truncate(command.floor_char_boundary(MAX_COMMAND_BYTES));
        let owner = digest(owner.as_str());
        Self { owner, directory: directory.to_owned(), command, started, end: None }
    }

    pub(super) fn belongs_to(&self, owner: &Owner) -> bool {
        self.owner == digest(owner.as_str())
    }
}

/// The jobs in the directory of a server.
#[derive(Debug)]
pub(crate) struct JobRecords {
    path: PathBuf,
    /// Opened with the first use; none if that failed.
    root: OnceLock<Option<Root>>,
}

/// A job that runs here and has a record.
#[derive(Clone, Debug)]
pub(super) struct KeptJob {
    records: Arc<JobRecords>,
    name: String,
    record: JobRecord,
}

/// A job that ended and is in no server's memory.
#[derive(Debug)]
pub(super) struct StoredJob {
    pub(super) record: JobRecord,
    pub(super) end: JobEnd,
    pub(super) log_bytes: u64,
    log: File,
}

impl JobRecords {
    /// Keeps jobs in this directory, which is made when it is first needed.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, root: OnceLock::new() }
    }

    fn root(&self) -> Option<&Root> {
        let open = || {
            let mut builder = std::fs::DirBuilder::new();
            let made = builder.recursive(true).mode(DIRECTORY_MODE).create(&self.path);
            let opened = made
                .map_err(|error| error.to_string())
                .and_then(|()| Root::open(&self.path).map_err(|error| error.to_string()));
            opened.inspect_err(|error| warn!(%error, "logs of jobs will end with the server")).ok()
        };
        self.root.get_or_init(open).as_ref()
    }

    /// Writes the record of a job that is about to start, and returns the file for its output. It blocks.
    pub(super) fn begin(self: &Arc<Self>, id: JobId, record: JobRecord) -> Option<(KeptJob, File)> {
        let root = self.root()?;
        drop_oldest(root);
        let kept = KeptJob { records: Arc::clone(self), name: name(id), record };
        let begun = root
            .open_or_create(&kept.file(LOG), FILE_MODE)
            .map_err(|error| error.to_string())
            .and_then(|log| log.try_lock().map(|()| log).map_err(|error| error.to_string()))
            .and_then(|log| kept.write(root).map(|()| log));
        let begun = begun
            .inspect_err(|error| warn!(%error, "the log of a job will end with the server"))
            .ok();
        begun.map(|log| (kept, log))
    }

    /// Finds a job by its id, unless a server has it in memory. It blocks.
    pub(super) fn find(&self, id: JobId) -> Option<StoredJob> {
        let root = self.root()?;
        let name = name(id);
        let (log, metadata) = root.open_file(&file(&name, LOG)).ok()?;
        log.try_lock_shared().ok()?;
        let record = read_record(root, &name)?;
        let end = record.end.unwrap_or(JobEnd::EndedWithServer);
        Some(StoredJob { record, end, log_bytes: metadata.size, log })
    }

    /// Deletes a job. It blocks.
    pub(super) fn remove(&self, id: JobId) {
        if let Some(root) = self.root() {
            remove(root, &name(id));
        }
    }
}

impl KeptJob {
    /// Writes the end. It blocks.
    pub(super) fn end(mut self, end: JobEnd) {
        let records = Arc::clone(&self.records);
        let Some(root) = records.root() else { return };
        // A job that was dropped to make room, or killed by its client, stays away.
        if root.link_metadata(&self.file(RECORD)).is_err() {
            return;
        }
        self.record.end = Some(end);
        if let Err(error) = self.write(root) {
            warn!(error, "could not record the end of a job");
        }
    }

    /// Deletes the record of a command that did not start. It blocks.
    pub(super) fn discard(self) {
        if let Some(root) = self.records.root() {
            remove(root, &self.name);
        }
    }

    fn write(&self, root: &Root) -> Result<(), String> {
        let text = serde_json::to_vec(&self.record).map_err(|error| error.to_string())?;
        let options = WriteOptions {
            durability: Durability::Atomic,
            new_mode: Some(FILE_MODE),
            ..WriteOptions::default()
        };
        root.write(&self.file(RECORD), &text, options).map_err(|error| error.to_string())
    }

    fn file(&self, extension: &str) -> PathBuf {
        file(&self.name, extension)
    }
}

impl StoredJob {
    /// Reads a part of the log. It blocks.
    pub(super) fn read(&self, from: u64, at_most: usize) -> std::io::Result<Vec<u8>> {
        let left = usize::try_from(self.log_bytes.saturating_sub(from)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(at_most)];
        self.log.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }
}

/// Makes room for one more job.
fn drop_oldest(root: &Root) {
    let listed = root.list(Path::new(".")).unwrap_or_default();
    let logs = listed.iter().filter_map(|entry| {
        let path = Path::new(&entry.name);
        (path.extension()? == LOG).then_some(())?;
        let metadata = root.link_metadata(path).ok()?;
        let name = path.file_stem()?.to_str()?.to_owned();
        Some((metadata.modified, metadata.allocated, name))
    });
    let mut logs: Vec<_> = logs.collect();
    logs.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes = 0;
    for (index, (_, size, name)) in logs.iter().enumerate() {
        bytes += size;
        let is_surplus = index + 1 >= MAX_KEPT_JOBS || bytes > MAX_KEPT_BYTES;
        if is_surplus && !is_running(root, name) {
            remove(root, name);
        }
    }
}

/// Returns whether a job has no end and a server holds its log.
fn is_running(root: &Root, name: &str) -> bool {
    let log = root.open_file(&file(name, LOG));
    log.is_ok_and(|(log, _)| log.try_lock_shared().is_err())
        && read_record(root, name).is_some_and(|record| record.end.is_none())
}

fn read_record(root: &Root, name: &str) -> Option<JobRecord> {
    let text = root.read_strict(&file(name, RECORD), MAX_RECORD_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}

fn remove(root: &Root, name: &str) {
    for extension in [RECORD, LOG] {
        // One of them may be gone already.
        let _ = root.remove_file(&file(name, extension));
    }
}

fn file(name: &str, extension: &str) -> PathBuf {
    PathBuf::from(format!("{name}.{extension}"))
}

fn name(id: JobId) -> String {
    digest(&id.to_string())
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text)[..16])
}
