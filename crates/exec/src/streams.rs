//! The pipes, or the terminal, that a command writes to.

use std::future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use carrel_domain::ByteSize;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, timeout_at};

use crate::capture::{Capture, CaptureLimits, Captured};
use crate::live_output::{Feed, LiveOutput, Patience, StreamName};
use crate::log::{Log, LogEnd, LogFile};
use crate::reader::LogReader;
use crate::spec::Output;
use crate::terminal::{Keyboard, Screen, Terminal};

/// How much is read at once: what a pipe holds unless somebody changed it.
const CHUNK_BYTES: usize = 64 << 10;

/// How much is read at once before there was that much: most commands print little.
const FIRST_CHUNK_BYTES: usize = 4 << 10;

/// How much is read at most from a pipe that nobody of the command writes to any more: what a pipe
/// can hold, and more than a terminal can. Somebody else may have it open and never stop writing.
const MAX_DRAIN_BYTES: usize = 1 << 20;

/// How long somebody who reads live output may hold up a command that is over. Its last bytes are
/// kept and logged without them then.
const READER_PATIENCE: Duration = Duration::from_secs(1);

/// One pipe or terminal, read by the server.
#[derive(Debug)]
struct Stream {
    /// None before there is something to read, and once the end was read.
    source: Option<Receiver>,
    chunk: Vec<u8>,
    capture: Capture,
}

/// All output of a command.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Stdout and stderr. A terminal is in place of stdout.
    both: [Stream; 2],
    keyboard: Option<Keyboard>,
    log: Option<Log>,
    feed: Option<Feed>,
    patience: Patience,
}

/// The ends of the pipes that go to the command.
#[derive(Debug)]
pub(crate) struct Writers {
    stdout: OwnedFd,
    /// None if stderr goes where stdout does.
    stderr: Option<OwnedFd>,
}

/// Says that one of the streams has read so many bytes, which are not kept yet.
#[derive(Debug)]
pub(crate) struct Arrived {
    stream: usize,
    length: usize,
}

impl Streams {
    /// Returns the ends for the server and for the command. A terminal is opened by the init, and
    /// shown here later.
    pub(crate) fn open(
        output: Output,
        log: Option<LogFile>,
    ) -> io::Result<(Self, Option<Writers>)> {
        let (both, writers) = match output {
            Output::Combined(limits) => {
                let (stream, stdout) = Stream::open(limits)?;
                ([stream, Stream::closed()], Some(Writers { stdout, stderr: None }))
            }
            Output::Separate { stdout, stderr } => {
                let (first, stdout) = Stream::open(stdout)?;
                let (second, stderr) = Stream::open(stderr)?;
                ([first, second], Some(Writers { stdout, stderr: Some(stderr) }))
            }
            Output::Terminal { size: _, limits } => {
                ([Stream::new(None, limits), Stream::closed()], None)
            }
        };
        Ok((
            Self {
                both,
                keyboard: None,
                log: log.map(Log::new),
                feed: None,
                patience: Patience::default(),
            },
            writers,
        ))
    }

    /// Reads a terminal from here on.
    pub(crate) fn show(&mut self, Screen { output, keyboard }: Screen) {
        self.both[0].source = Some(output);
        self.keyboard = Some(keyboard);
    }

    /// Returns the terminal, if there is one.
    pub(crate) fn terminal(&self) -> Option<Terminal> {
        self.keyboard.as_ref().map(Keyboard::terminal)
    }

    /// Returns a reader of the log, if there is one.
    pub(crate) fn log_reader(&self) -> Option<LogReader> {
        self.log.as_ref().map(Log::reader)
    }

    /// Hands on output from here on, to this reader alone.
    pub(crate) fn live(&mut self, patience: Patience) -> LiveOutput {
        let (feed, live) = Feed::open();
        self.feed = Some(feed);
        self.patience = patience;
        live
    }

    /// Returns whether a reader may take as long as it likes.
    pub(crate) fn is_patient(&self) -> bool {
        self.feed.is_some() && self.patience == Patience::Unlimited
    }

    /// Waits for output, forever if there will be none. Nothing is lost if the wait is given up.
    ///
    /// Nothing is read before the log has what was read last and a live reader has room, so a slow
    /// disk or reader slows the command down and costs no memory. It holds up nobody but this wait.
    pub(crate) async fn next(&mut self) -> Arrived {
        self.settled().await;
        self.room().await;
        let [stdout, stderr] = &mut self.both;
        tokio::select! {
            length = stdout.read() => Arrived { stream: 0, length },
            length = stderr.read() => Arrived { stream: 1, length },
        }
    }

    async fn settled(&mut self) {
        if let Some(log) = &mut self.log {
            log.settled().await;
        }
    }

    async fn room(&self) {
        if let Some(feed) = &self.feed {
            feed.room().await;
        }
    }

    /// Keeps what has arrived.
    pub(crate) fn keep(&mut self, Arrived { stream, length }: Arrived) {
        let Stream { chunk, capture, .. } = &mut self.both[stream];
        let filled = length == chunk.len();
        let bytes = &chunk[..length];
        capture.push(bytes);
        if let Some(log) = &mut self.log {
            log.append(bytes);
        }
        if let Some(feed) = &self.feed {
            feed.give(StreamName::ALL[stream], bytes);
        }
        if filled {
            chunk.resize(CHUNK_BYTES, 0);
        }
    }

    /// Reads what is left without waiting for more, and waits for the log.
    pub(crate) async fn drain(&mut self) {
        let reader_until = match self.patience {
            Patience::Second => Some(Instant::now() + READER_PATIENCE),
            Patience::Unlimited => None,
        };
        for stream in 0..self.both.len() {
            let mut left = MAX_DRAIN_BYTES;
            while left > 0 {
                self.settled().await;
                // Too late is as good as no reader: what it misses is counted.
                match reader_until {
                    Some(until) => drop(timeout_at(until, self.room()).await),
                    None => self.room().await,
                }
                let length = self.both[stream].read_now();
                if length == 0 {
                    break;
                }
                left = left.saturating_sub(length);
                self.keep(Arrived { stream, length });
            }
        }
        self.settled().await;
    }

    /// Returns what was kept of stdout and stderr, and how the log ended.
    pub(crate) fn finish(self) -> (Captured, Captured, Option<LogEnd>) {
        let [stdout, stderr] = self.both.map(|stream| stream.capture.finish());
        (stdout, stderr, self.log.map(Log::finish))
    }
}

impl Stream {
    fn open(limits: CaptureLimits) -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Self::new(Some(Receiver::from_owned_fd(reader)?), limits), writer))
    }

    fn new(source: Option<Receiver>, limits: CaptureLimits) -> Self {
        Self { source, chunk: vec![0; FIRST_CHUNK_BYTES], capture: Capture::new(limits) }
    }

    fn closed() -> Self {
        let nothing = CaptureLimits { head: ByteSize::bytes(0), tail: ByteSize::bytes(0) };
        Self { source: None, chunk: Vec::new(), capture: Capture::new(nothing) }
    }

    /// Waits for bytes and puts them into the chunk. Never returns after the end.
    async fn read(&mut self) -> usize {
        while let Some(source) = &self.source {
            // A plain `read` takes fewer bytes than there was room for as a sign that no more are
            // there, which is wrong for a terminal.
            match source.readable().await.and_then(|()| source.try_read(&mut self.chunk)) {
                Ok(length) if length > 0 => return length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A terminal ends with an error.
                Ok(_) | Err(_) => self.source = None,
            }
        }
        future::pending().await
    }

    /// Puts bytes that are there into the chunk, and returns how many.
    fn read_now(&mut self) -> usize {
        // It is read without asking the reactor, which may not have heard of the bytes yet.
        let read = |source| rustix::io::read(source, &mut self.chunk).ok();
        self.source.as_ref().and_then(read).unwrap_or(0)
    }
}

impl Writers {
    pub(crate) fn stdout(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }

    pub(crate) fn stderr(&self) -> BorrowedFd<'_> {
        self.stderr.as_ref().unwrap_or(&self.stdout).as_fd()
    }
}
