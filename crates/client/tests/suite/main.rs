//! What holds of the client.
//!
//! - `replies`: replies, errors and what is neither
//! - `events`: events across broken connections
//! - `script`: a server that says what it is told to
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod events;
mod replies;
mod script;
