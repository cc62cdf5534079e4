//! What the stores promise.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

/// The suite of all stores on one file, and what only a file has to show.
mod sqlite;
