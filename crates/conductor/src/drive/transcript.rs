//! What happened in a run, line by line on the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use carrel_domain::{Clock, Identifier, Secret, WorkspaceKey};
use carrel_fsroot::Root;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use super::home::Home;
use crate::entry::RunId;
use crate::event::Start;

/// How much one run may say.
const MAX_BYTES: usize = 16 << 20;

/// How much one line may say.
const MAX_LINE_BYTES: usize = 256 << 10;

/// How many runs of an issue keep their transcripts.
const KEPT: usize = 20;

/// Lines that may wait for the disk. Whoever says more waits.
const WAITING: usize = 256;

/// What writes transcripts: one thread for all runs, which ends with the last of them.
#[derive(Clone, Debug)]
pub(super) struct Scribe {
    orders: mpsc::Sender<Order>,
    directory: Arc<Path>,
}

#[derive(Debug)]
enum Order {
    Begin(u64, PathBuf),
    Line(u64, String),
    /// Answered when everything is written.
    End(u64, oneshot::Sender<()>),
}

impl Scribe {
    /// Starts the thread.
    pub(super) fn start(home: &Home) -> io::Result<Self> {
        let (orders, queue) = mpsc::channel(WAITING);
        let shelf = Shelf { files: Arc::clone(home.files()), books: HashMap::new() };
        std::thread::Builder::new()
            .name("transcripts".to_owned())
            .spawn(move || shelf.keep(queue))?;
        Ok(Self { orders, directory: home.path().into() })
    }

    /// Returns the file of a run.
    pub(super) fn path(&self, identifier: &str, run: RunId) -> PathBuf {
        self.directory.join(relative(identifier, run.0))
    }

    /// Begins the transcript of a run. What cannot be written is missing, and said once.
    pub(super) async fn begin(
        &self,
        start: &Start,
        secrets: Vec<Secret>,
        clock: Arc<dyn Clock>,
    ) -> Transcript {
        let run = start.run.0;
        // If nobody writes any more, that has been said.
        let _ = self.orders.send(Order::Begin(run, relative(&start.issue.identifier, run))).await;
        Transcript { run, orders: self.orders.clone(), secrets, clock }
    }
}

/// Opens what was written down about a run, with its present length; nothing if it is not kept any more.
pub(super) fn open(
    files: &Root,
    identifier: &str,
    run: u64,
) -> Result<Option<(File, u64)>, carrel_fsroot::Error> {
    match files.open_file(&relative(identifier, run)) {
        Ok((file, metadata)) => Ok(Some((file, metadata.size))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the file of a run below the conductor's own directory.
fn relative(identifier: &str, run: u64) -> PathBuf {
    let identifier = Identifier::parse(identifier);
    let key = identifier.map(|identifier| WorkspaceKey::derive(&identifier).to_string());
    let key = key.unwrap_or_else(|_| "issue".to_owned());
    Path::new("runs").join(key).join(format!("{run}.jsonl"))
}

/// The transcript of a run.
#[derive(Debug)]
pub(super) struct Transcript {
    run: u64,
    orders: mpsc::Sender<Order>,
    secrets: Vec<Secret>,
    clock: Arc<dyn Clock>,
}

impl Transcript {
    /// Writes down that something happened.
    pub(super) async fn note(&self, event: &str, detail: Value) {
        let mut line = json!({ "at": self.clock.now(), "event": event });
        match detail {
            Value::Object(fields) => line.as_object_mut().expect("made above").extend(fields),
            Value::Null => {}
            other => line["detail"] = other,
        }
        let line = self.secrets.iter().fold(line.to_string(), |text, secret| secret.mask(&text));
        let _ = self.orders.send(Order::Line(self.run, cut(line, event))).await;
    }

    /// Waits until everything is written.
    pub(super) async fn close(&self) {
        let (done, written) = oneshot::channel();
        let _ = self.orders.send(Order::End(self.run, done)).await;
        let _ = written.await;
    }
}

/// Replaces a line that is too long.
fn cut(line: String, event: &str) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    let beginning: String = line.chars().take(MAX_LINE_BYTES / 8).collect();
    json!({ "event": event, "cut": beginning, "bytes": line.len() }).to_string()
}

/// The transcripts that are being written.
struct Shelf {
    files: Arc<Root>,
    books: HashMap<u64, Book>,
}

struct Book {
    file: BufWriter<File>,
    left: usize,
}

impl Shelf {
    fn keep(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.blocking_recv() {
            match order {
                Order::Begin(run, path) => match self.open(&path) {
                    Ok(file) => {
                        self.books.insert(run, Book { file, left: MAX_BYTES });
                    }
                    Err(error) => complain(run, &error),
                },
                Order::Line(run, line) => {
                    let book = self.books.get_mut(&run);
                    let written = book.map_or(Ok(()), |book| book.write(&line, orders.is_empty()));
                    self.judge(run, written);
                }
                Order::End(run, done) => {
                    let written =
                        self.books.remove(&run).map_or(Ok(()), |mut book| book.file.flush());
                    self.judge(run, written);
                    let _ = done.send(());
                }
            }
        }
    }

    fn open(&self, path: &Path) -> Result<BufWriter<File>, carrel_fsroot::Error> {
        let directory = path.parent().unwrap_or(Path::new("runs"));
        self.files.create_directories(directory, 0o700)?;
        forget_old(&self.files, directory);
        self.files.open_or_create(path, 0o600).map(BufWriter::new)
    }

    /// Gives a transcript up that cannot be written.
    fn judge(&mut self, run: u64, written: io::Result<()>) {
        if let Err(error) = written {
            self.books.remove(&run);
            complain(run, &error);
        }
    }
}

fn complain(run: u64, error: &dyn std::fmt::Display) {
    warn!(run, %error, "A transcript cannot be written");
}

impl Book {
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

/// Removes the oldest transcripts of an issue. What cannot be removed is tried again at the next run.
fn forget_old(files: &Root, directory: &Path) {
    let Ok(entries) = files.list(directory) else { return };
    let mut runs: Vec<(u64, PathBuf)> = entries
        .iter()
        .filter_map(|entry| {
            let number = entry.name.to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
            Some((number, directory.join(&entry.name)))
        })
        .collect();
    runs.sort_unstable();
    let surplus = (runs.len() + 1).saturating_sub(KEPT);
    for (_, path) in runs.into_iter().take(surplus) {
        let _ = files.remove_file(&path);
    }
}
