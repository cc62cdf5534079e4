//! The output of a command while it runs.
//!
//! A bounded channel between the command's wait loop and one reader. Nothing is read from the command
//! before the channel has a free slot, so a slow reader slows the command down and costs no memory. The
//! wait loop itself does not block on the reader: deadline and cancellation hold regardless.

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

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

/// The output of a running command as it arrives. See [`crate::RunningCommand::live`].
///
/// Output that is not taken holds up the command. Dropping this lets the command go on.
#[derive(Debug)]
pub struct LiveOutput {
    pieces: mpsc::Receiver<Piece>,
}

impl LiveOutput {
    /// Waits for the next piece, in the order of arrival; `None` after the end of the command.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Piece> {
        self.pieces.recv().await
    }
}

/// The writing end, in the command's wait loop. Never cloned, so a slot that was waited for stays free
/// until it is used.
#[derive(Debug)]
pub(crate) struct Feed(mpsc::Sender<Piece>);

impl Feed {
    pub(crate) fn open() -> (Self, LiveOutput) {
        let (sender, pieces) = mpsc::channel(MAX_WAITING_PIECES);
        (Self(sender), LiveOutput { pieces })
    }

    /// Waits until the channel has a free slot or no reader. Cancel-safe.
    pub(crate) async fn ready(&self) {
        // The permit itself is not kept: it would have to outlive a cancelled wait.
        let _ = self.0.reserve().await;
    }

    /// Sends a piece after [`Feed::ready`]. Without a reader it is dropped.
    pub(crate) fn send(&self, stream: StreamName, bytes: &[u8]) {
        let _ = self.0.try_send(Piece { stream, bytes: bytes.to_vec() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_reader_the_feed_is_always_ready() {
        let (feed, live) = Feed::open();
        drop(live);
        for _ in 0..=MAX_WAITING_PIECES {
            feed.ready().await;
            feed.send(StreamName::Stdout, b"x");
        }
    }
}
