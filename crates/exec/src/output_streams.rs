//! The pipes or the terminal that a command writes to, read by the server.
//!
//! Each piece that arrives goes to three consumers: the bounded capture, the log and a live reader. The
//! next piece is read only when the log has written the last and the live reader has a free slot, so the
//! slowest consumer slows the command down and memory stays constant.

use std::future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use carrel_domain::ByteSize;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Receiver;

use crate::capture::{Capture, CaptureLimits, Captured};
use crate::command_spec::Output;
use crate::live_output::{Feed, LiveOutput, StreamName};
use crate::log_file::{Log, LogEnd, LogFile};
use crate::log_reader::LogReader;
use crate::terminal::{Terminal, TerminalConnection, TerminalInput};

/// The bytes of one read: the default size of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

/// The bytes of a read until one was full: most commands print little.
const FIRST_CHUNK_BYTES: usize = 4 << 10;

/// The most bytes that are drained after the command has ended: the largest size of a pipe, and more
/// than a terminal holds. A process outside the command may have the pipe open and never stop writing.
const MAX_DRAIN_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Stream {
    /// None before a terminal is attached, and after end of file.
    source: Option<Receiver>,
    chunk: Vec<u8>,
    capture: Capture,
}

#[derive(Debug)]
pub(crate) struct OutputStreams {
    /// Stdout and stderr. A terminal takes the place of stdout.
    both: [Stream; 2],
    input: Option<TerminalInput>,
    log: Option<Log>,
    feed: Option<Feed>,
}

/// The writing ends of the pipes, for the command.
#[derive(Debug)]
pub(crate) struct OutputWriters {
    stdout: OwnedFd,
    /// None for combined output.
    stderr: Option<OwnedFd>,
}

/// Bytes in the buffer of a stream that no consumer has yet.
#[derive(Debug)]
pub(crate) struct ReadChunk {
    stream: usize,
    length: usize,
}

impl OutputStreams {
    /// Returns the reading and the writing ends. A terminal is opened by the init and attached later.
    pub(crate) fn open(
        output: Output,
        log: Option<LogFile>,
    ) -> io::Result<(Self, Option<OutputWriters>)> {
        let (both, writers) = match output {
            Output::Combined(limits) => {
                let (stream, stdout) = Stream::open(limits)?;
                ([stream, Stream::closed()], Some(OutputWriters { stdout, stderr: None }))
            }
            Output::Separate { stdout, stderr } => {
                let (first, stdout) = Stream::open(stdout)?;
                let (second, stderr) = Stream::open(stderr)?;
                ([first, second], Some(OutputWriters { stdout, stderr: Some(stderr) }))
            }
            Output::Terminal { size: _, limits } => {
                ([Stream::new(None, limits), Stream::closed()], None)
            }
        };
        Ok((Self { both, input: None, log: log.map(Log::new), feed: None }, writers))
    }

    pub(crate) fn attach_terminal(
        &mut self,
        TerminalConnection { output, input }: TerminalConnection,
    ) {
        self.both[0].source = Some(output);
        self.input = Some(input);
    }

    pub(crate) fn terminal(&self) -> Option<Terminal> {
        self.input.as_ref().map(TerminalInput::terminal)
    }

    pub(crate) fn log_reader(&self) -> Option<LogReader> {
        self.log.as_ref().map(Log::reader)
    }

    /// Forwards output from here on, to this reader alone.
    pub(crate) fn live(&mut self) -> LiveOutput {
        let (feed, live) = Feed::open();
        self.feed = Some(feed);
        live
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.feed.is_some()
    }

    /// Waits until the consumers are ready and then for output, for ever if there will be none.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> ReadChunk {
        self.log_flushed().await;
        self.reader_ready().await;
        let [stdout, stderr] = &mut self.both;
        tokio::select! {
            length = stdout.read() => ReadChunk { stream: 0, length },
            length = stderr.read() => ReadChunk { stream: 1, length },
        }
    }

    async fn log_flushed(&mut self) {
        if let Some(log) = &mut self.log {
            log.flushed().await;
        }
    }

    async fn reader_ready(&self) {
        if let Some(feed) = &self.feed {
            feed.ready().await;
        }
    }

    pub(crate) fn consume(&mut self, ReadChunk { stream, length }: ReadChunk) {
        let Stream { chunk, capture, .. } = &mut self.both[stream];
        let filled = length == chunk.len();
        let bytes = &chunk[..length];
        capture.push(bytes);
        if let Some(log) = &mut self.log {
            log.append(bytes);
        }
        if let Some(feed) = &self.feed {
            feed.send(StreamName::ALL[stream], bytes);
        }
        if filled {
            chunk.resize(CHUNK_BYTES, 0);
        }
    }

    /// Reads what is in the pipes without waiting for more, and waits for the log.
    pub(crate) async fn drain(&mut self) {
        for stream in 0..self.both.len() {
            let mut left = MAX_DRAIN_BYTES;
            while left > 0 {
                self.log_flushed().await;
                self.reader_ready().await;
                let length = self.both[stream].read_now();
                if length == 0 {
                    break;
                }
                left = left.saturating_sub(length);
                self.consume(ReadChunk { stream, length });
            }
        }
        self.log_flushed().await;
    }

    /// Returns the captures of stdout and stderr, and the completeness of the log.
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

    /// Waits for bytes and reads them into the buffer. Never returns after end of file.
    async fn read(&mut self) -> usize {
        while let Some(source) = &self.source {
            // tokio's `read` takes a short read as a sign that no more is there, which is wrong for a
            // terminal.
            match source.readable().await.and_then(|()| source.try_read(&mut self.chunk)) {
                Ok(length) if length > 0 => return length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A terminal ends with `EIO`.
                Ok(_) | Err(_) => self.source = None,
            }
        }
        future::pending().await
    }

    /// Reads available bytes into the buffer and returns their number.
    fn read_now(&mut self) -> usize {
        // The reactor may not know of the bytes yet.
        let read = |source| rustix::io::read(source, &mut self.chunk).ok();
        self.source.as_ref().and_then(read).unwrap_or(0)
    }
}

impl OutputWriters {
    pub(crate) fn stdout(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }

    pub(crate) fn stderr(&self) -> BorrowedFd<'_> {
        self.stderr.as_ref().unwrap_or(&self.stdout).as_fd()
    }
}
