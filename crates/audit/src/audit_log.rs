//! The audit log: one JSON line for each tool call and each change through the API.
//!
//! The file is created with its first event. In a server a thread of its own appends events within
//! [`FLUSH_AFTER`]; calls never wait for the disk. If the disk falls behind by [`MAX_WAITING`]
//! events, further ones are dropped and counted in the next record (`lost`). A crash loses at most the events
//! of the last [`FLUSH_AFTER`]. Events hold no arguments and no output: they name the tool, the workspace and
//! the outcome, and a hash stands for the arguments. At [`MAX_FILE_BYTES`] the file is renamed to `.1`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use carrel_domain::{Clock as _, SystemClock, Timestamp};
use serde::Serialize;
use serde_json::Value;
use tracing::{debug, warn};

use crate::interface::Interface;

/// Events of this time are written together.
const FLUSH_AFTER: Duration = Duration::from_millis(50);

/// Bounds the buffer of encoded events.
const MAX_WRITE_BYTES: usize = 1 << 16;

/// Capacity of the channel to the writer.
const MAX_WAITING: usize = 16_384;

/// The size at which the file is rotated to `.1`.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// An event of the audit log. Optional fields are `null` where they do not apply.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event")]
#[expect(missing_docs, reason = "each variant describes its fields")]
pub enum AuditEvent {
    /// A tool call. `arguments` is half of the SHA-256 of the arguments, `outcome` is `ok`, `failed`, `refused`
    /// or `timeout`, `code` the code of a failure, and `bytes` the size of the content in the reply.
    #[serde(rename = "tool.call")]
    ToolCall {
        tool: String,
        workspace: Option<String>,
        arguments: String,
        outcome: &'static str,
        code: Option<&'static str>,
        duration_ms: f64,
        bytes: usize,
    },
    /// A request of the API that changes something or was refused. `route` has the names of parameters in place
    /// of their values; `status` is 499 if the client disconnected before the reply.
    #[serde(rename = "api.call")]
    ApiCall {
        method: String,
        route: String,
        workspace: Option<String>,
        status: u16,
        request_id: String,
        duration_ms: f64,
    },
    /// The profile of a project was detected, or has changed. `directory` is relative to the workspace; commands
    /// are as a person would type them.
    #[serde(rename = "lifecycle.workspace.profile")]
    WorkspaceProfile {
        workspace: String,
        directory: String,
        ecosystem: String,
        package_manager: Option<String>,
        install_command: Option<String>,
        lint_command: Option<String>,
        format_command: Option<String>,
        test_command: Option<String>,
        typecheck_command: Option<String>,
    },
    /// The formatter of a project ran, on request or after an edit. `files` are the files or the directory that it was
    /// limited to; `has_errors` is true if it did not pass.
    #[serde(rename = "lifecycle.effect.format")]
    EffectFormat { workspace: String, files: Vec<String>, has_errors: bool },
    /// The linter of a project ran, on request or after an edit. The fields are those of a formatter.
    #[serde(rename = "lifecycle.effect.lint")]
    EffectLint { workspace: String, files: Vec<String>, has_errors: bool },
    /// The dependencies of a project were installed, with `command`; `has_errors` is true if that failed.
    #[serde(rename = "lifecycle.effect.install")]
    EffectInstall { workspace: String, command: String, has_errors: bool },
    /// A session uses a workspace for the first time. `sandbox_root` is the directory of the workspace.
    #[serde(rename = "lifecycle.workspace.sandbox")]
    WorkspaceSandbox { workspace: String, sandbox_root: PathBuf, read_only: bool },
    /// Writes are not serialised with other processes, for example because the lock file cannot be created.
    #[serde(rename = "lifecycle.workspace.unlocked")]
    WorkspaceUnlocked { workspace: String, reason: String },
    /// A fork was ended since nothing had used it for long. `snapshot` is the one of its base, `base`, that has its
    /// work; there is none if it changed nothing that a snapshot has.
    #[serde(rename = "lifecycle.workspace.fork_expired")]
    ForkExpired { workspace: String, base: String, snapshot: Option<String> },
    /// A path or an operation outside the boundary of a workspace was denied. `tool` is the tool, or `exec`,
    /// `hook`, `agent`, or method and route of the API. `code` is that of a refused call, and `detail` names
    /// its object or lists the denials of the sandbox.
    #[serde(rename = "lifecycle.sandbox.violation")]
    SandboxViolation {
        tool: String,
        workspace: Option<String>,
        layer: ViolationLayer,
        code: Option<&'static str>,
        detail: Value,
    },
}

/// The part of Carrel that refused an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationLayer {
    /// Carrel refused the call before anything ran.
    Argument,
    /// The sandbox denied an operation of a command.
    Kernel,
}

/// An event with its time, session and interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditRecord {
    /// The time at which the event was added.
    pub at: Timestamp,
    /// Numbered from 1 for each log; a gap means lost events.
    pub sequence: u64,
    /// The id of the session, or the subject of an API token.
    pub session: String,
    /// The interface of the call.
    pub interface: Interface,
    /// Number of events dropped before this one.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Encoded with its fields at the top level of the record.
    #[serde(flatten)]
    pub event: AuditEvent,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A handle to the log. Cheap to clone; dropping the last clone waits until all events are written.
#[derive(Clone, Debug)]
pub struct AuditLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sink: Sink,
    sequence: AtomicU64,
    lost: AtomicU64,
}

/// The destination of events.
#[derive(Debug)]
enum Sink {
    Nowhere,
    Receiver(SyncSender<AuditRecord>),
    /// A file with a writer thread, which starts with the first event; none if it could not.
    Writer(PathBuf, OnceLock<Option<Writer>>),
    /// A file that is opened for each event.
    Direct(PathBuf),
}

/// A thread that writes events to a file. Dropping it waits until all of them are written.
#[derive(Debug)]
struct Writer {
    sender: Option<SyncSender<AuditRecord>>,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Makes a log that writes no file; events go to `tracing` only.
    pub fn none() -> Self {
        Self::of(Sink::Nowhere)
    }

    /// Makes the log of a server, which appends to a file with a writer thread.
    pub fn to_file(path: &Path) -> Self {
        Self::of(Sink::Writer(path.to_owned(), OnceLock::new()))
    }

    /// Makes the log of a program that ends with its one operation. An event is written before the call
    /// returns; without events the log costs nothing.
    pub fn direct(path: &Path) -> Self {
        Self::of(Sink::Direct(path.to_owned()))
    }

    /// Makes a log whose events a receiver gets, for tests.
    pub fn to_receiver() -> (Self, Receiver<AuditRecord>) {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        (Self::of(Sink::Receiver(sender)), receiver)
    }

    fn of(sink: Sink) -> Self {
        let sequence = AtomicU64::new(0);
        let lost = AtomicU64::new(0);
        Self(Arc::new(Inner { sink, sequence, lost }))
    }

    /// Adds an event. Never waits for the disk, unless the log is [direct](Self::direct).
    pub fn add(&self, session: &str, interface: Interface, event: AuditEvent) {
        debug!(session, ?event, "event");
        if matches!(self.0.sink, Sink::Nowhere) {
            return;
        }
        let sequence = self.0.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let lost = self.0.lost.swap(0, Ordering::Relaxed);
        let at = SystemClock.now();
        let session = session.to_owned();
        let record = AuditRecord { at, sequence, session, interface, lost, event };
        if !self.0.sink.take(record) {
            self.0.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

impl Sink {
    /// Takes a record. Returns whether it did.
    fn take(&self, record: AuditRecord) -> bool {
        match self {
            Self::Nowhere => true,
            Self::Receiver(sender) => sender.try_send(record).is_ok(),
            Self::Writer(path, writer) => {
                let writer = writer.get_or_init(|| Writer::start(path));
                let sender = writer.as_ref().and_then(|writer| writer.sender.as_ref());
                sender.is_some_and(|sender| sender.try_send(record).is_ok())
            }
            Self::Direct(path) => {
                let mut line = Vec::new();
                encode(&record, &mut line);
                let written = LogFile::open(path).and_then(|mut log| log.append(&line));
                written.inspect_err(|error| warn!(%error, "events are not kept")).is_ok()
            }
        }
    }
}

impl Writer {
    /// Opens the file and starts the thread. Work goes on without events if that fails.
    fn start(path: &Path) -> Option<Self> {
        let started = LogFile::open(path).and_then(|log| {
            let (sender, receiver) = sync_channel(MAX_WAITING);
            let thread = std::thread::Builder::new().name("events".into());
            let thread = thread.spawn(move || write_all(&receiver, log))?;
            Ok(Self { sender: Some(sender), thread: Some(thread) })
        });
        started.inspect_err(|error| warn!(%error, "events are not kept")).ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread ends when the channel closes, and may be parked until then.
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was already reported by itself.
            let _ = thread.join();
        }
    }
}

fn write_all(receiver: &Receiver<AuditRecord>, mut log: LogFile) {
    let mut waiting = Vec::new();
    while let Ok(first) = receiver.recv() {
        encode(&first, &mut waiting);
        // Parked and not in `recv`: senders then need not wake this thread for each event, and many events
        // become one write.
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
