//! What happened, one line for each call.
//!
//! AuditLog come from the core, so every door has the same. They are written by a thread of their own,
//! within [`FLUSH_AFTER`]; a disk that does not keep up costs events, which is counted and said, but
//! never delays a call.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use carrel_domain::{Clock as _, SystemClock, Timestamp};
use serde::Serialize;
use serde_json::Value;
use tracing::{debug, warn};

use crate::interface::Interface;

/// How long an event waits for others before it is written.
const FLUSH_AFTER: Duration = Duration::from_millis(50);

/// What is written at once, so that a burst of events takes little memory.
const MAX_WRITE_BYTES: usize = 1 << 16;

/// AuditLog that wait to be written. More are counted as lost.
const MAX_WAITING: usize = 16_384;

/// The size at which the file is put aside as `.1` and a new one begun.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event")]
pub enum AuditEvent {
    /// A tool was called.
    #[serde(rename = "tool.call")]
    ToolCall {
        /// The tool.
        tool: String,
        /// The workspace, if the call was about one.
        workspace: Option<String>,
        /// The first half of the SHA-256 of the arguments: events hold no text of tenants.
        arguments: String,
        /// `ok`, `failed`, or `refused`.
        outcome: &'static str,
        /// The code of the failure.
        code: Option<&'static str>,
        /// How long it took.
        duration_ms: f64,
        /// How much it answered.
        bytes: usize,
    },
    /// The API was asked to change something, or refused something.
    #[serde(rename = "api.call")]
    ApiCall {
        /// What it was asked to do.
        method: String,
        /// The route, with the names of its parts in place of what the caller wrote there.
        route: String,
        /// The workspace, if the call was about one.
        workspace: Option<String>,
        /// What was answered; 499 if the caller was gone before.
        status: u16,
        /// What the caller was told the request is called.
        request_id: String,
        /// How long it took.
        duration_ms: f64,
    },
    /// What the project files of a workspace say was found out, or has changed.
    #[serde(rename = "lifecycle.workspace.profile")]
    WorkspaceProfile {
        /// The workspace.
        workspace: String,
        /// The directory of the project, relative to it.
        directory: String,
        /// `rust`, `node`, …
        ecosystem: String,
        /// `cargo`, `npm`, …
        package_manager: Option<String>,
        /// The commands, as a person would type them.
        install_command: Option<String>,
        /// See `install_command`.
        lint_command: Option<String>,
        /// See `install_command`.
        format_command: Option<String>,
        /// See `install_command`.
        test_command: Option<String>,
        /// See `install_command`.
        typecheck_command: Option<String>,
    },
    /// A session uses a workspace for the first time.
    #[serde(rename = "lifecycle.workspace.sandbox")]
    WorkspaceSandbox {
        /// The workspace.
        workspace: String,
        /// The directory that bounds it.
        sandbox_root: PathBuf,
        /// Whether its files may be changed.
        read_only: bool,
    },
    /// Files are written, and other processes that write the same ones are not waited for.
    #[serde(rename = "lifecycle.workspace.unlocked")]
    WorkspaceUnlocked {
        /// The workspace.
        workspace: String,
        /// Why there is no lock between processes.
        reason: String,
    },
    /// Something was kept from leaving its workspace.
    #[serde(rename = "lifecycle.sandbox.violation")]
    SandboxViolation {
        /// The tool.
        tool: String,
        /// The workspace.
        workspace: Option<String>,
        /// `argument` if Carrel refused before anything ran, `kernel` if the walls did.
        layer: &'static str,
        /// The code, for a refusal.
        code: Option<&'static str>,
        /// What was refused.
        detail: Value,
    },
}

/// An event with when it happened and to whom.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditRecord {
    /// When.
    pub at: Timestamp,
    /// A number that grows by one.
    pub sequence: u64,
    /// The session.
    pub session: String,
    /// The door.
    pub interface: Interface,
    /// AuditLog before this one that could not be written.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: AuditEvent,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Takes events. Cheap to clone; the last one that goes waits until all is written.
#[derive(Clone, Debug)]
pub struct AuditLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sender: Option<SyncSender<AuditRecord>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    sequence: AtomicU64,
    lost: AtomicU64,
}

impl AuditLog {
    /// Keeps no events; they are only logged.
    pub fn none() -> Self {
        Self::of(None, None)
    }

    /// Appends events to a file.
    pub fn to_file(path: &Path) -> io::Result<Self> {
        let log = LogFile::open(path)?;
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let writer = std::thread::Builder::new()
            .name("events".into())
            .spawn(move || write_all(&receiver, log))?;
        Ok(Self::of(Some(sender), Some(writer)))
    }

    /// Hands events to whoever holds the other end.
    pub fn to_receiver() -> (Self, Receiver<AuditRecord>) {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        (Self::of(Some(sender), None), receiver)
    }

    fn of(sender: Option<SyncSender<AuditRecord>>, writer: Option<JoinHandle<()>>) -> Self {
        let (sequence, lost) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(Inner { sender, writer: Mutex::new(writer), sequence, lost }))
    }

    /// Takes an event.
    pub fn add(&self, session: &str, interface: Interface, event: AuditEvent) {
        debug!(session, ?event, "event");
        let Some(sender) = &self.0.sender else { return };
        let sequence = self.0.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let lost = self.0.lost.swap(0, Ordering::Relaxed);
        let (at, session) = (SystemClock.now(), session.to_owned());
        let record = AuditRecord { at, sequence, session, interface, lost, event };
        if sender.try_send(record).is_err() {
            self.0.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when nobody can send any more; it may be waiting for more to write.
        self.sender = None;
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            writer.thread().unpark();
            // A writer that panicked has said so.
            let _ = writer.join();
        }
    }
}

fn write_all(receiver: &Receiver<AuditRecord>, mut log: LogFile) {
    let mut waiting = Vec::new();
    while let Ok(first) = receiver.recv() {
        encode(&first, &mut waiting);
        // Many events become one write. Whoever sends meanwhile need not wake this thread, which
        // would cost a call more than everything else about its event.
        std::thread::park_timeout(FLUSH_AFTER);
        for record in receiver.try_iter() {
            encode(&record, &mut waiting);
            if waiting.len() >= MAX_WRITE_BYTES {
                flush(&mut log, &mut waiting);
            }
        }
        flush(&mut log, &mut waiting);
    }
}

fn encode(record: &AuditRecord, waiting: &mut Vec<u8>) {
    serde_json::to_writer(&mut *waiting, record).expect("a record is valid JSON");
    waiting.push(b'\n');
}

fn flush(log: &mut LogFile, waiting: &mut Vec<u8>) {
    if let Err(error) = log.append(waiting) {
        warn!(%error, "could not write events");
    }
    waiting.clear();
}

/// The file that events go to.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open_append(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.length > MAX_FILE_BYTES {
            rotate(&self.path)?;
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the server's own file")]
fn open_append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    File::options().append(true).create(true).mode(0o600).open(path)
}

#[expect(clippy::disallowed_methods, reason = "the server's own file")]
fn rotate(path: &Path) -> io::Result<()> {
    std::fs::rename(path, path.with_added_extension("1"))
}
