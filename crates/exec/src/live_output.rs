//! What a command prints, handed on while it runs.
//!
//! There is one way out: a bounded channel that the command's wait loop fills. Nothing is read from
//! the command before there is room for it, so a slow reader slows the command down and costs no
//! memory. The loop goes on meanwhile: deadline and cancellation hold whatever the reader does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// How many pieces wait for a reader. Each is at most what is read from a pipe at once, 64 KiB.
const MAX_WAITING_PIECES: usize = 16;

/// Which stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    /// Standard output; with combined output or a terminal, both.
    Stdout,
    /// Standard error.
    Stderr,
}

impl StreamName {
    /// The streams in the order in which they are held.
    pub(crate) const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];
}

/// Some bytes that a command printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it was printed.
    pub stream: StreamName,
    /// The bytes, cut wherever the command or the pipe did: possibly inside a character.
    pub bytes: Vec<u8>,
}

/// How long a reader of live output may keep the end of a command waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A second: somebody waits for the outcome.
    #[default]
    Second,
    /// As long as it takes: the reader is the one who waits for the outcome.
    Unlimited,
}

/// The output of a running command as it arrives. See [`crate::Running::live`].
///
/// What is not taken holds up the command. Dropping this lets it go on unwatched.
#[derive(Debug)]
pub struct LiveOutput {
    pieces: mpsc::Receiver<Piece>,
    missed: Arc<AtomicU64>,
}

impl LiveOutput {
    /// Waits for the next piece, in the order of arrival; none when the command is over. Nothing is
    /// lost if the wait is given up.
    pub async fn next(&mut self) -> Option<Piece> {
        self.pieces.recv().await
    }

    /// Returns how many of the last bytes are not among the pieces, because they were not taken in
    /// time after the command's end. Final once [`LiveOutput::next`] has returned none.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Acquire)
    }
}

/// The end that the command's output goes into.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Never cloned: the room that was waited for is there until it is used.
    pieces: mpsc::Sender<Piece>,
    missed: Arc<AtomicU64>,
}

impl Feed {
    /// Returns both ends.
    pub(crate) fn open() -> (Self, LiveOutput) {
        let (sender, pieces) = mpsc::channel(MAX_WAITING_PIECES);
        let missed = Arc::<AtomicU64>::default();
        (Self { pieces: sender, missed: Arc::clone(&missed) }, LiveOutput { pieces, missed })
    }

    /// Waits until there is room for a piece, or nobody to take one. Nothing is lost if the wait is
    /// given up.
    pub(crate) async fn room(&self) {
        // The permit itself is not kept: it would have to outlive a wait that is given up.
        let _ = self.pieces.reserve().await;
    }

    /// Hands on what has arrived. Without room it is missed, and with it all that follows, so that
    /// the reader has no gap.
    pub(crate) fn give(&self, stream: StreamName, bytes: &[u8]) {
        let whole_so_far = self.missed.load(Ordering::Acquire) == 0;
        let piece = || Piece { stream, bytes: bytes.to_vec() };
        if !whole_so_far || matches!(self.pieces.try_send(piece()), Err(TrySendError::Full(_))) {
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
            feed.give(StreamName::Stdout, number.to_string().as_bytes());
        }
        let mut seen = vec![live.next().await.unwrap()];
        feed.give(StreamName::Stderr, b"late");
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
    async fn without_a_reader_there_is_always_room_and_nothing_is_missed() {
        let (feed, live) = Feed::open();
        drop(live);
        for _ in 0..=MAX_WAITING_PIECES {
            feed.room().await;
            feed.give(StreamName::Stdout, b"x");
        }
        assert_eq!(feed.missed.load(Ordering::Acquire), 0);
    }
}
