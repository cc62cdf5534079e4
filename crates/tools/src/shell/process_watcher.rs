//! The watcher of a background command: error lines, idle timeout and exit become events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use carrel_domain::{Clock as _, Code, Failure, SystemClock, Timestamp, sync};
use carrel_exec::{Job, Piece, StreamName};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Bounds the events of one command. A full log drops its oldest tenth at once.
const MAX_EVENTS: usize = 1024;
const DROPPED_AT_ONCE: usize = 102;

/// A longer line is matched in parts, so that it cannot take all memory.
const MAX_LINE_BYTES: usize = 64 * 1024;

const MAX_SHOWN_BYTES: usize = 2000;

/// Bounds the compiled size of a pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// An event of a watched command.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct WatchEvent {
    pub(super) id: u64,
    #[schemars(with = "String")]
    pub(super) at: Timestamp,
    #[serde(flatten)]
    pub(super) kind: WatchKind,
}

/// The type of an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WatchKind {
    /// The command was started.
    Started,
    /// A line matched a pattern.
    Error {
        /// The pattern.
        pattern: String,
        /// The line.
        line: String,
    },
    /// The command printed nothing for too long and was killed.
    IdleTimeout {
        /// The configured time.
        reason: String,
    },
    /// The command ended.
    Exited {
        /// The exit code; 128 plus the number of a signal.
        exit_code: i32,
    },
}

#[derive(Debug)]
pub(crate) struct ProcessWatcher {
    pub(super) patterns: Vec<String>,
    expressions: Vec<Regex>,
    pub(super) idle: Option<Duration>,
    events: Mutex<WatchLog>,
}

#[derive(Debug, Default)]
struct WatchLog {
    kept: VecDeque<WatchEvent>,
    last: u64,
    dropped: u64,
}

pub(super) fn pattern(source: &str) -> Result<Regex, Failure> {
    let built = RegexBuilder::new(source).size_limit(MAX_PATTERN_BYTES).build();
    built.map_err(|error| {
        Failure::new(Code::InvalidPattern, error.to_string()).with("pattern", source)
    })
}

impl ProcessWatcher {
    pub(super) fn new(patterns: Vec<String>, idle: Option<Duration>) -> Result<Arc<Self>, Failure> {
        let compile = |(index, source): (usize, &String)| {
            pattern(source).map_err(|failure| {
                let what = format!("error_patterns[{index}] {source:?} failed to compile");
                Failure { code: Code::InvalidArguments, ..failure.during(&what) }
            })
        };
        let expressions = patterns.iter().enumerate().map(compile).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { patterns, expressions, idle, events: Mutex::default() }))
    }

    pub(super) fn since(&self, id: u64) -> (Vec<WatchEvent>, u64) {
        let events = self.events();
        let kept = events.kept.iter().filter(|event| event.id > id).cloned().collect();
        (kept, events.dropped)
    }

    pub(super) fn add(&self, kind: WatchKind) {
        let mut events = self.events();
        if events.kept.len() >= MAX_EVENTS {
            events.kept.drain(..DROPPED_AT_ONCE);
            events.dropped += DROPPED_AT_ONCE as u64;
        }
        events.last += 1;
        let event = WatchEvent { id: events.last, at: SystemClock.now(), kind };
        events.kept.push_back(event);
    }

    fn events(&self) -> MutexGuard<'_, WatchLog> {
        sync::lock(&self.events)
    }

    fn match_line(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']);
        let matched = self.expressions.iter().position(|expression| expression.is_match(line));
        if let Some(index) = matched {
            let pattern = self.patterns[index].clone();
            let shown = line.floor_char_boundary(MAX_SHOWN_BYTES);
            self.add(WatchKind::Error { pattern, line: line[..shown].to_owned() });
        }
    }

    pub(super) async fn follow(self: Arc<Self>, job: Job, mut pieces: mpsc::Receiver<Piece>) {
        let mut lines = Lines::default();
        let mut quiet_since = Instant::now();
        loop {
            tokio::select! {
                piece = pieces.recv() => match piece {
                    None => break,
                    Some(piece) => {
                        quiet_since = Instant::now();
                        if piece.stream == StreamName::Stderr {
                            lines.push(&piece.bytes, |line| self.match_line(line));
                        }
                    }
                },
                () = quiet_for(self.idle, quiet_since) => {
                    let idle = self.idle.unwrap_or_default().as_secs();
                    let reason = format!("no output for {idle}s (configured idle_timeout={idle}s)");
                    self.add(WatchKind::IdleTimeout { reason });
                    job.kill().await;
                    break;
                }
            }
        }
        lines.finish(|line| self.match_line(line));
        // Closes the channel, so that pending output does not delay the end.
        drop(pieces);
        let exit_code = match job.ended().await {
            carrel_exec::JobStatus::Ended(outcome) => match outcome.end {
                carrel_exec::ExitStatus::Exited(code) => code,
                carrel_exec::ExitStatus::Signaled(signal) => 128 + signal,
                carrel_exec::ExitStatus::Lost => -1,
            },
            carrel_exec::JobStatus::Running | carrel_exec::JobStatus::Lost => -1,
        };
        self.add(WatchKind::Exited { exit_code });
    }
}

async fn quiet_for(idle: Option<Duration>, since: Instant) {
    match idle {
        Some(idle) => tokio::time::sleep_until(since + idle).await,
        None => std::future::pending().await,
    }
}

#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if part.ends_with(b"\n") || self.begun.len() >= MAX_LINE_BYTES {
                take(&self.begun);
                self.begun.clear();
            }
        }
    }

    fn finish(&mut self, mut take: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            take(&self.begun);
            self.begun.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn lines_are_the_same_however_they_are_cut_and_none_grows_without_end() {
        let mut seen = Vec::new();
        let mut lines = Lines::default();
        for piece in [&b"one\ntw"[..], b"o\n", b"three"] {
            lines.push(piece, |line| seen.push(line.to_vec()));
        }
        lines.finish(|line| seen.push(line.to_vec()));
        assert_eq!(seen, [&b"one\n"[..], b"two\n", b"three"]);
        let mut longest = 0;
        lines.push(&vec![b'x'; 3 << 20], |line| longest = longest.max(line.len()));
        assert!(lines.begun.len() < MAX_LINE_BYTES && longest <= 3 << 20);
    }

    #[test]
    fn the_oldest_events_are_dropped_and_counted() {
        let watched = ProcessWatcher::new(Vec::new(), None).unwrap();
        for _ in 0..1200 {
            watched.add(WatchKind::Started);
        }
        let (events, dropped) = watched.since(0);
        assert_eq!((events.len() as u64 + dropped, events.last().unwrap().id), (1200, 1200));
        assert_eq!(watched.since(9999).0.len(), 0);
    }
}
