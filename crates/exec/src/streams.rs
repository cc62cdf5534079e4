//! The pipes that a command writes to.

use std::future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use carrel_domain::ByteSize;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::capture::{Capture, CaptureLimits, Captured};
use crate::log::{Log, LogEnd, LogFile};
use crate::spec::Output;

/// How much is read at once: what a pipe holds unless somebody changed it.
const CHUNK_BYTES: usize = 64 << 10;

/// How much is read at most from a pipe that nobody of the command writes to any more: what a pipe
/// can hold. Somebody else may have it open and never stop writing.
const MAX_DRAIN_BYTES: usize = 1 << 20;

/// One pipe, read by the server.
#[derive(Debug)]
struct Stream {
    /// None once the end was read.
    pipe: Option<Receiver>,
    chunk: Vec<u8>,
    capture: Capture,
}

/// All output of a command.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Stdout and stderr.
    streams: [Stream; 2],
    log: Option<Log>,
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
    /// Returns the ends for the server and for the command.
    pub(crate) fn open(output: Output, log: Option<LogFile>) -> io::Result<(Self, Writers)> {
        let (streams, writers) = match output {
            Output::Combined(limits) => {
                let (stream, stdout) = Stream::open(limits)?;
                ([stream, Stream::closed()], Writers { stdout, stderr: None })
            }
            Output::Separate { stdout, stderr } => {
                let (first, stdout) = Stream::open(stdout)?;
                let (second, stderr) = Stream::open(stderr)?;
                ([first, second], Writers { stdout, stderr: Some(stderr) })
            }
        };
        Ok((Self { streams, log: log.map(Log::new) }, writers))
    }

    /// Waits for output, forever if there will be none. Nothing is lost if the wait is given up.
    ///
    /// Nothing is read before the log has what was read last, so a slow disk slows the command down
    /// and costs no memory. It holds up nobody but this wait.
    pub(crate) async fn next(&mut self) -> Arrived {
        self.settled().await;
        let [stdout, stderr] = &mut self.streams;
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

    /// Keeps what has arrived.
    pub(crate) fn keep(&mut self, Arrived { stream, length }: Arrived) {
        let Stream { chunk, capture, .. } = &mut self.streams[stream];
        capture.push(&chunk[..length]);
        if let Some(log) = &mut self.log {
            log.append(&chunk[..length]);
        }
    }

    /// Reads what is left in the pipes without waiting for more, and waits for the log.
    pub(crate) async fn drain(&mut self) {
        for stream in 0..self.streams.len() {
            let mut left = MAX_DRAIN_BYTES;
            while left > 0 {
                self.settled().await;
                let length = self.streams[stream].read_now();
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
        let [stdout, stderr] = self.streams.map(|stream| stream.capture.finish());
        (stdout, stderr, self.log.map(|log| log.end()))
    }
}

impl Stream {
    fn open(limits: CaptureLimits) -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let pipe = Some(Receiver::from_owned_fd(reader)?);
        Ok((Self { pipe, chunk: vec![0; CHUNK_BYTES], capture: Capture::new(limits) }, writer))
    }

    fn closed() -> Self {
        let nothing = CaptureLimits { head: ByteSize::bytes(0), tail: ByteSize::bytes(0) };
        Self { pipe: None, chunk: Vec::new(), capture: Capture::new(nothing) }
    }

    /// Waits for bytes and puts them into the chunk. Never returns after the end.
    async fn read(&mut self) -> usize {
        if let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut self.chunk).await {
                Ok(length) if length > 0 => return length,
                Ok(_) | Err(_) => self.pipe = None,
            }
        }
        future::pending().await
    }

    /// Puts bytes that are there into the chunk, and returns how many.
    fn read_now(&mut self) -> usize {
        // The pipe is read without asking the reactor, which may not have heard of the bytes yet.
        let read = |pipe| rustix::io::read(pipe, &mut self.chunk).ok();
        self.pipe.as_ref().and_then(read).unwrap_or(0)
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
