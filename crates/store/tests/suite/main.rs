//! What the stores promise.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

/// A server that is killed, away, silent, or cut off at the worst moment.
mod attacks;
/// Connections that nobody else can read.
mod encryption;
/// The same on a real server, and what only a server has to show.
mod postgres;
/// The suite of all stores on one file, and what only a file has to show.
mod sqlite;
/// Who may write for the conductor, and what happens to whoever may not any more.
mod tenure;
