//! The output of a command while it runs.
//!
//! A bounded channel between the command's wait loop and one reader. Nothing is read from the command
//! before the channel has a free slot, so a slow reader slows the command down and costs no memory. The
//! wait loop itself does not block on the reader: deadline and cancellation hold regardless.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// The most pieces that wait for a reader. Each has at most 64 KiB, the size of a pipe.
const MAX_WAITING_PIECES: usize = 16;

/// A stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    /// Standard output; with combined output or a terminal, both.
    Stdout,
    /// Standard error.
    Stderr,
}

impl StreamName {
    pub(crate) const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];
}

/// Some bytes that a command printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The stream that it came from.
    pub stream: StreamName,
    /// The bytes. A piece may end inside a character.
    pub bytes: Vec<u8>,
}

/// The time for which a command that has ended waits for its reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReaderTimeout {
    /// One second, because a caller waits for the outcome.
    #[default]
    OneSecond,
    /// Without end, because the reader is also the one that waits for the outcome.
    Unlimited,
}

/// The output of a running command as it arrives. See [`crate::RunningCommand::live`].
///
/// Output that is not taken holds up the command. Dropping this lets the command go on.
#[derive(Debug)]
pub struct LiveOutput {
    pieces: mpsc::Receiver<Piece>,
    missed: Arc<AtomicU64>,
}

impl LiveOutput {
    /// Waits for the next piece, in the order of arrival; `None` after the end of the command.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Piece> {
        self.pieces.recv().await
    }

    /// Returns the number of last bytes that are missing because the reader did not take them in time
    /// after the command's end. Final once [`LiveOutput::next`] has returned `None`.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Acquire)
    }
}

/// The writing end, in the command's wait loop.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Never cloned, so a slot that was waited for stays free until it is used.
    pieces: mpsc::Sender<Piece>,
    missed: Arc<AtomicU64>,
}

impl Feed {
    pub(crate) fn open() -> (Self, LiveOutput) {
        let (sender, pieces) = mpsc::channel(MAX_WAITING_PIECES);
        let missed = Arc::<AtomicU64>::default();
        (Self { pieces: sender, missed: Arc::clone(&missed) }, LiveOutput { pieces, missed })
    }

    /// Waits until the channel has a free slot or no reader. Cancel-safe.
    pub(crate) async fn ready(&self) {
        // The permit itself is not kept: it would have to outlive a cancelled wait.
        let _ = self.pieces.reserve().await;
    }

    /// Sends a piece. If the channel is full, this piece and all later ones are counted as missed, so
    /// that the reader has no gap.
    pub(crate) fn send(&self, stream: StreamName, bytes: &[u8]) {
        let is_complete = self.missed.load(Ordering::Acquire) == 0;
        let piece = || Piece { stream, bytes: bytes.to_vec() };
        if !is_complete || matches!(self.pieces.try_send(piece()), Err(TrySendError::Full(_))) {
            self.missed.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[tokio::test]
    async fn a_reader_that_misses_something_has_everything_before_it() {
        let (feed, mut live) = Feed::open();
        for number in 0..=MAX_WAITING_PIECES {
            feed.send(StreamName::Stdout, number.to_string().as_bytes());
        }
        let mut seen = vec![live.next().await.unwrap()];
        feed.send(StreamName::Stderr, b"late");
        drop(feed);
        while let Some(piece) = live.next().await {
            seen.push(piece);
        }
        let piece = |number: usize| Piece {
            stream: StreamName::Stdout,
            bytes: number.to_string().into_bytes(),
        };
        assert_eq!(seen, (0..MAX_WAITING_PIECES).map(piece).collect::<Vec<_>>());
        assert_eq!(live.missed(), "16late".len() as u64);
    }

    #[tokio::test]
    async fn without_a_reader_the_feed_is_always_ready_and_nothing_is_missed() {
        let (feed, live) = Feed::open();
        drop(live);
        for _ in 0..=MAX_WAITING_PIECES {
            feed.ready().await;
            feed.send(StreamName::Stdout, b"x");
        }
        assert_eq!(feed.missed.load(Ordering::Acquire), 0);
    }
}
