//! What trackers promise.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

/// The tracker that is built in, on a real file.
mod local;
